# One set-up for every target: a virtual environment with pinned packages, made once and made
# again when the pins or the project's own declaration change.
#
#   make audit [ARGS="--json"]   judge the built-in corpus
#   make test  [ARGS="-k name"]  run the tests
#   make lint                    formatting, style, types, direction of imports
#   make bench                   run the scripts that produce the README's figures
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
.PHONY: help audit test lint bench study clean

help:
	@sed -n 's/^#   //p' Makefile

# make ends with 2 whenever a command fails; for the audit's own status (1: a kernel misjudged, 3: the
# machine's fault) call .venv/bin/kerneltruth.
audit: $(VENV)/.audit
	@$(BIN)/kerneltruth audit $(ARGS)

test: $(VENV)/.test
	@$(BIN)/python -m pytest -q $(ARGS)

lint: $(VENV)/.lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# Each prints a figure of the README; benchmarks/README.md says which. What needs a GPU or a run of
# another machine is in benchmarks/gpu_batch.sh.
BENCHES := audit control_cases published_workload compile_targets minimal_cases latency

bench: $(VENV)/.audit
	@set -e; for name in $(BENCHES); do \
	  echo "== $$name" >&2; $(BIN)/python "benchmarks/$$name.py" $(ARGS); \
	done

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

$(VENV)/.test: $(VENV)/.audit requirements/test.txt requirements/study.txt
	@$(PIP) install -r requirements/test.txt
	@touch $@

$(VENV)/.lint: $(VENV)/.audit requirements/lint.txt
	@$(PIP) install -r requirements/lint.txt
	@touch $@
