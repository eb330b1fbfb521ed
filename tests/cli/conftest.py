"""Commands as users call them: in this process with shared warm runners, or as a real process.

A real check spends seconds on importing torch three times; in this process it takes a fraction of
one. What depends on the process itself (signals, pipes, locale, imports) uses a real one.
"""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import kerneltruth
from kerneltruth.corpus import ENTRIES, source
from kerneltruth.documents.model import dumps, parse
from kerneltruth.documents.schema import DOCUMENTS
from kerneltruth.runner.host import LOAD_S, Runner

PACKAGE = Path(kerneltruth.__file__).parents[1]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


class _Shared:
    """Makes runners, keeps them warm between commands, and closes them at the end."""

    def __init__(self):
        self._runners = {}
        self.load_s = LOAD_S

    def __call__(self, **settings):
        key = (settings["device"], tuple(settings["targets"]))
        if key not in self._runners:
            runner = Runner(**settings)
            runner.end, runner.close = runner.close, lambda: None
            self._runners[key] = runner
        self._runners[key].load_s = self.load_s
        return self._runners[key]

    def end(self):
        for runner in self._runners.values():
            runner.end()


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def runners():
    shared = _Shared()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kerneltruth.engine.devices.Runner", shared)
        patch.setattr("kerneltruth.engine.evaluator.Runner", shared)
        yield shared
    shared.end()


def with_seed(arguments):
    """The arguments with a seed, for commands that would draw one."""
    words = [str(a) for a in arguments]
    drawn = words and words[0] in ("check", "run", "generate") and "--seed" not in words
    return [*words, "--seed", "0"] if drawn and "--help" not in words else words


def schema_of(words):
    """Which document a command prints as JSON."""
    if words[0] == "audit" and "--exploits" in words:
        return "audit-exploits"
    if words[0] == "audit" and "--timed" in words:
        return "audit-timed"
    of_suite = {"--suite", "--tasks", "--reference"} & {*words}
    return "audit-suite" if words[0] == "audit" and of_suite else words[0]


def hold_to_schema(words, out):
    """Whatever a command prints as JSON is what its model allows, and all of it."""
    if "--json" in words and out:
        found = json.loads(out, parse_constant=pytest.fail)
        name = "check-several" if "checks" in found else schema_of(words)
        assert json.loads(dumps(parse(DOCUMENTS[name], found))) == found


@pytest.fixture(scope="session")
def kt(runners):
    """Run a command in this process; `fixed=False` leaves it to draw its seed."""
    from kerneltruth import cli

    def run(*arguments, fixed=True):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            words = with_seed(arguments) if fixed else [str(a) for a in arguments]
            code = cli.invoke(words)
        hold_to_schema(words, out.getvalue())
        return Ran(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def environment():
    """The environment of a real process."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def process(environment):
    """Run a command as a process of its own."""

    def run(*arguments, **options):
        changed = options.pop("env", {})
        ran = subprocess.run(
            [sys.executable, "-m", "kerneltruth", *with_seed(arguments)],
            env={**environment, **changed},
            capture_output="stdout" not in options,
            text=True,
            check=False,
            timeout=180,
            **options,
        )
        return Ran(ran.returncode, ran.stdout or "", ran.stderr or "")

    return run


@pytest.fixture
def candidate(tmp_path):
    """Write a candidate's file."""

    def write(text, name="kernel.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def good(candidate):
    """A correct kernel in plain torch."""
    return candidate("import torch\ndef relu(x):\n    return torch.relu(x)\n", "good.py")


@pytest.fixture(scope="session")
def _failed_run(kt, tmp_path_factory):
    folder = tmp_path_factory.mktemp("failed") / "run"
    kernel = folder.parent / "relu_nan_swallowed.py"
    kernel.write_text(next(source(e) for e in ENTRIES if e.name == kernel.stem))
    arguments = ("--task", "relu", "--contract", "torch", "--cases", "40", "--device", "cpu")
    ran = kt("check", kernel, *arguments, "--out", folder)
    assert ran.code == 1, ran
    return folder


@pytest.fixture
def failed_run(_failed_run, tmp_path):
    """A run with one finding, the test's own to spoil."""
    return Path(shutil.copytree(_failed_run, tmp_path / "failed"))


@pytest.fixture
def finding(failed_run):
    """The finding of that run."""
    return next((failed_run / "findings").glob("*.json"))
