"""Define the baselines: how each is made, and in which process it runs."""

from __future__ import annotations

from collections.abc import Iterable

from kerneltruth.corpus import ENTRIES
from kerneltruth.corpus.entry import filename, source
from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.suites.pytorch import eager_of, own_function
from kerneltruth.tasks.spec import Task

# The `torch.compile` mode of each baseline made from eager PyTorch; None runs it as it is.
COMPILED = {
    "eager": None,
    "compile": "default",
    # Without graphs of its own: calls of all sides are captured, or of none.
    "compile_max_autotune": "max-autotune-no-cudagraphs",
}
BASELINES = (*COMPILED, "control")
# The timed side; among a task's baselines it is eager PyTorch, timed against itself.
CANDIDATE = "candidate"
# The process of the baselines that are made from eager PyTorch.
PYTORCH = "pytorch"


def process_of(name: str) -> str:
    """Return the process that a baseline runs in."""
    return PYTORCH if name in COMPILED else name


def check_baselines(names: Iterable[str]) -> None:
    """Refuse a name that is not a baseline.

    Raises:
        UserError: a name is not one of `BASELINES`.
    """
    for name in names:
        if name not in BASELINES:
            raise UserError(f"--against {name!r}: must be one of {', '.join(BASELINES)}")


def baseline_sources(task: Task) -> dict[str, Candidate]:
    """Return a task's baselines: eager PyTorch, and a control from the corpus."""
    found: dict[str, Candidate] = {}
    eager = eager_of(task) or own_function(task)
    if eager is not None:
        found["eager"] = eager
    for entry in ENTRIES:
        if entry.role == "control" and entry.task == task.key:
            control = read_candidate(
                source(entry), filename(entry), task_names=(task.name,), task=task.name
            )
            if control.language == "triton":
                return {**found, "control": control}
    return found
