"""Options become requests; the seed of a run is given, recorded or drawn."""

import dataclasses
import json
from pathlib import Path

import pytest
import typer.main

from kerneltruth.analysis.study import AnalyzeOptions
from kerneltruth.cli import app
from kerneltruth.cli.options import request, settled_seed
from kerneltruth.engine.requests import (
    AuditRequest,
    CheckRequest,
    MinimizeRequest,
    ReplayRequest,
    RunRequest,
    TimeRequest,
)
from kerneltruth.generate.account import SpendingLimits
from kerneltruth.generate.chat import Sampling
from kerneltruth.generate.requests import Calling, GenerateRequest, TaskSelection

# The least isolation binds all processes that the command starts, before there is a request.
LEAST = {"isolation"}
# What a version before took under another name, and is refused with the new one.
EARLIER = {"run": {"baselines"}, "audit": {"baselines"}}
# What a command does with its document, and what its own code puts into fields.
SHOWN = {"as_json", "junit", "annotations", "exit_code"}
# A file of tasks is a suite, and so is a reference.
SUITE = {"tasks", "reference"}
MADE = {
    "check": {"paths"},
    "run": {"stage", "method", "model"},
    "generate": {"price_prompt", "price_completion"},
    "replay": {"findings", "run", "seed"},
    "minimize": {"finding", "run", "seed"},
    "analyze": {"device"},
    # It chooses another request than that of the corpus.
    "audit": {"exploits"},
}
REQUESTS = {
    "check": (CheckRequest,),
    "run": (RunRequest,),
    "time": (TimeRequest,),
    "audit": (AuditRequest,),
    "replay": (ReplayRequest,),
    "minimize": (MinimizeRequest,),
    "analyze": (AnalyzeOptions,),
    "generate": (GenerateRequest, Sampling, Calling, TaskSelection, SpendingLimits),
}


@pytest.mark.parametrize("command", REQUESTS)
def test_every_option_is_a_field_of_the_request(command):
    options = {p.name for p in typer.main.get_command(app).commands[command].params}
    fields = {f.name for kind in REQUESTS[command] for f in dataclasses.fields(kind)}
    assert options - fields - SUITE - LEAST == (
        (SHOWN & options) | MADE.get(command, set()) | EARLIER.get(command, set())
    )


def test_what_is_not_given_keeps_the_default_of_the_request():
    given = {"file": Path("a.py"), "dtypes": ["fp32"], "targets": None, "as_json": True}
    made = request(CheckRequest, given, seed=7)
    assert made == CheckRequest(file=Path("a.py"), dtypes=("fp32",), seed=7)


def test_a_file_of_tasks_is_the_suite():
    made = request(CheckRequest, {"file": Path("a.py"), "suite": None, "tasks": Path("my.py")})
    assert made.suite == "tasks:my.py"


def test_a_given_seed_counts_whatever_is_recorded(tmp_path):
    (tmp_path / "run.json").write_text('{"seed": 7}')
    assert settled_seed(3, tmp_path) == 3


@pytest.mark.parametrize(
    ("name", "manifest"),
    [("run.json", {"seed": 7}), ("generation.json", {"feedback": {"seed": 7, "cases": 3}})],
)
def test_what_goes_on_keeps_its_seed(tmp_path, name, manifest):
    (tmp_path / name).write_text(json.dumps(manifest))
    assert settled_seed(None, tmp_path) == 7


def test_a_seed_is_drawn_where_none_is_known(tmp_path):
    (tmp_path / "run.json").write_text("torn")
    (tmp_path / "generation.json").write_text('{"feedback": null}')
    drawn = {settled_seed(None, out) for out in (None, tmp_path, tmp_path / "new") for _ in "123"}
    assert len(drawn) > 1
    assert all(0 <= seed < 2**64 for seed in drawn)
