# One set-up for every target: a virtual environment with pinned packages, made once and made
# again when the pins or the project's own declaration change.
#
#   make audit [ARGS="--json"]   judge the built-in corpus
#   make test  [ARGS="-k name"]  run the tests but slow ones, of sweeps a sample; brings browsers,
#                                where it can
#   make test-fast               those marked `fast` and not `slow`: no process, judge, GPU, browser, Ray or network
#   make test-all                all tests, as continuous integration does
#   make lint                    formatting, style, types, direction of imports, names, links of documents
#   make docs                    build the site of docs/ in build/site; a broken link fails
#   make bench                   run the scripts that produce figures of docs/results
#   make compat                  the tests with the lowest, pinned and newest Triton and PyTorch
#   make study                   a whole small study, offline; the page is runs/study/report.html
#   make clean                   remove the environment and every cache

PYTHON ?= python3
ARGS   ?=
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
PINS   := requirements/audit.txt requirements/constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help audit test test-all test-fast lint docs bench compat compat-fast study clean

help:
	@sed -n 's/^#   //p' Makefile

# make ends with 2 whenever a command fails; for the audit's own status (1: a kernel misjudged, 3: the
# machine's fault) call .venv/bin/kerneltruth.
audit: $(VENV)/.audit
	@$(BIN)/kerneltruth audit $(ARGS)

# Groups of tests go to the processes in the order of the folders, which has the longest first.
PARALLEL := -n auto --maxprocesses 8 --no-loadscope-reorder
# Tests wait for children and browsers a third of their time.
test test-all: export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell expr $$(nproc) + 1)
# Python keeps what it compiles: each process would else compile all tests again.
test test-all test-fast: export PYTHONDONTWRITEBYTECODE :=

test: $(VENV)/.test $(VENV)/.browser
	@$(BIN)/python -m pytest -q $(PARALLEL) --sample $(ARGS)

test-all: $(VENV)/.test $(VENV)/.browser
	@$(BIN)/python -m pytest -q $(PARALLEL) $(ARGS)

test-fast: $(VENV)/.test
	@$(BIN)/python -m pytest -q $(PARALLEL) -m "fast and not slow" tests/unit $(ARGS)

lint: $(VENV)/.lint
	@$(BIN)/ruff check --no-cache .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy --config-file benchmarks/mypy.ini
	@$(BIN)/lint-imports
	@$(BIN)/python benchmarks/structure.py
	@$(BIN)/python benchmarks/words.py
	@$(BIN)/python benchmarks/check_links.py

docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

# Each prints a figure of docs/results; benchmarks/README.md says which. What needs a GPU or a run of
# another machine is in benchmarks/gpu_batch.sh.
BENCHES := audit control_cases published_workload compile_targets minimal_cases latency

bench: $(VENV)/.audit
	@set -e; for name in $(BENCHES); do \
	  echo "== $$name" >&2; $(BIN)/python "benchmarks/$$name.py" $(ARGS); \
	done

# Environments of several GB each, one after the other; compat-fast only replaces Triton.
compat: $(VENV)/.made
	@$(BIN)/python benchmarks/compat.py $(ARGS)

compat-fast: $(VENV)/.test
	@$(BIN)/python benchmarks/compat.py --fast $(VENV)

study: $(VENV)/.study
	@KERNELTRUTH=$(BIN)/kerneltruth sh examples/study/study.sh

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp comes last, so an interrupted set-up is begun anew.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  2>/dev/null || { echo "kerneltruth needs Python 3.11 to 3.13, and $(PYTHON) is" \
	  "$$($(PYTHON) --version 2>&1 | head -n 1); name another: make $(MAKECMDGOALS)" \
	  "PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV) (once; downloads torch and triton)" >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# setuptools is among the pins, so nothing unpinned is fetched to build the project.
$(VENV)/.audit: $(VENV)/.made $(PINS) pyproject.toml
	@$(PIP) install -r requirements/audit.txt
	@$(PIP) install --no-build-isolation --no-deps -e .
	@touch $@

$(VENV)/.study: $(VENV)/.audit requirements/study.txt
	@$(PIP) install -r requirements/study.txt
	@touch $@

$(VENV)/.test: $(VENV)/.audit requirements/test.txt requirements/study.txt requirements/kernelbench4.txt
	@$(PIP) install -r requirements/test.txt
	@touch $@

# Browsers that are there are used. Without one its tests of the page are skipped, which pytest says.
$(VENV)/.browser: $(VENV)/.made requirements/axe.txt
	@$(PIP) install --no-deps -r requirements/axe.txt
	@needed=; \
	for name in chromium chromium-browser google-chrome; do command -v $$name && break; done \
	  >/dev/null && command -v chromedriver >/dev/null || needed="chromium chromium-driver"; \
	command -v firefox-esr >/dev/null || command -v firefox >/dev/null || \
	  needed="$$needed firefox-esr"; \
	if [ -z "$$needed" ]; then exit; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing for the tests of the page: $$needed" >&2; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	    --no-install-recommends $$needed; } >$(VENV)/browser.log 2>&1 || \
	  echo "apt-get could not: see $(VENV)/browser.log" >&2; \
	else echo "there is no $$needed, and apt-get needs root" >&2; fi
	@touch $@

$(VENV)/.docs: $(VENV)/.made requirements/docs.txt
	@$(PIP) install -r requirements/docs.txt
	@touch $@

$(VENV)/.lint: $(VENV)/.audit requirements/lint.txt
	@$(PIP) install -r requirements/lint.txt
	@touch $@
