"""Turn a request into a stream of events.

Light to import: each function imports torch only while its runner warms up, side by side with it.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from kerneltruth.documents.checks import (
    CheckDocument,
    ChecksDocument,
    MinimizeDocument,
    ReplayDocument,
)
from kerneltruth.documents.exploits import ExploitsDocument
from kerneltruth.documents.runs import RunDocument
from kerneltruth.documents.suites import TimedSuiteDocument
from kerneltruth.documents.timing import TimeDocument
from kerneltruth.engine.devices import (
    ALL,
    begin,
    choose_device,
    choose_devices,
    choose_targets,
    device_name,
    new_runner,
)
from kerneltruth.engine.requests import (
    EXECUTORS,
    AnyAudit,
    AuditRequest,
    CheckRequest,
    ChecksRequest,
    D,
    EngineRequest,
    Events,
    ExploitsRequest,
    MinimizeRequest,
    ReplayRequest,
    RunRequest,
    TimeRequest,
)
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.host import Runner


def run(request: EngineRequest[D]) -> Events[D]:
    """Execute a request: yield steps and return the document of the command's `--json`.

    Nothing begins before the first step is taken; closing the generator stops all work.

    Raises:
        UserError: the request is wrong.
        EnvironmentFault: this machine cannot do it.
    """
    steps: Callable[[Any], Events[D]] = _STEPS[type(request)]
    return steps(request)


@contextlib.contextmanager
def warming(device: str, targets: tuple[str, ...]) -> Iterator[Runner]:
    """Give a runner of a device, whose processes import torch in parallel with this one.

    Raises:
        UserError, EnvironmentFault: as of `choose_device` and `choose_targets`.
    """
    with new_runner(choose_device(device), choose_targets(targets)) as runner:
        begin(runner)
        yield runner


def gpu_name(device: str) -> str | None:
    """Return the driver's name of the GPU that a command would use; None where it uses none.

    Raises:
        UserError, EnvironmentFault: as of `choose_device`.
    """
    chosen = choose_device(device)
    if chosen == "cpu":
        return None
    return device_name(chosen).partition("(")[2].removesuffix(")") or None


def on_one_thread(steps: Events[D]) -> Events[D]:
    """Judge with one torch thread, as parallel judges do; restore the caller's number after it."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return (yield from steps)
    finally:
        torch.set_num_threads(threads)


def _check(request: CheckRequest | ChecksRequest) -> Events[CheckDocument | ChecksDocument]:
    """Judge one file, or several."""
    start = time.monotonic()
    options = request.each if isinstance(request, ChecksRequest) else request
    if options.domain not in ("core", "extended"):
        raise UserError(f"--domain {options.domain!r}: must be core or extended")
    if isinstance(request, CheckRequest) and options.source is None:
        _require_file(options.file)
    with warming(options.device, options.targets) as runner:
        if isinstance(request, ChecksRequest):
            from kerneltruth.engine.several_files import judge_files

            return (yield from on_one_thread(judge_files(request, runner, start)))
        from kerneltruth.engine.one_file import judge_file

        return (yield from on_one_thread(judge_file(options, runner, start)))


def _run(options: RunRequest) -> Events[RunDocument]:
    """Judge every candidate."""
    start = time.monotonic()
    if options.executor not in EXECUTORS:
        raise UserError(f"--executor {options.executor!r}: must be one of {', '.join(EXECUTORS)}")
    if options.against and "perf" not in options.stages:
        raise UserError(
            f"--against {options.against[0]}: the stage {options.stages[-1]} times nothing; leave "
            "out --against, or use --stage perf"
        )
    if options.kernels and "perf" not in options.stages:
        raise UserError(
            f"--kernels: the stage {options.stages[-1]} times nothing; leave out --kernels, or use "
            "--stage perf"
        )
    if not options.candidates.exists():
        raise UserError(f"--candidates {options.candidates}: there is no such file or folder")
    options = replace(options, targets=choose_targets(options.targets))
    if options.device == ALL and options.executor != "local":
        raise UserError(f"--device {ALL}: Ray hands out GPUs itself; leave out --device")
    devices = choose_devices((options.device,))
    if options.kernels and devices[0] == "cpu":
        raise EnvironmentFault(
            "--kernels: shares of a device's time need a GPU; leave it out, or run this where "
            "`kerneltruth doctor` shows a device"
        )
    runners = [new_runner(name, options.targets) for name in devices]
    with contextlib.ExitStack() as ending:
        for runner in runners:
            ending.callback(runner.close)
        # From here on the runners' processes import torch, in parallel with this one.
        for runner in runners if options.executor == "local" else ():
            begin(runner, timed="perf" in options.stages)
        from kerneltruth.engine.submissions import judge_submissions

        return (yield from on_one_thread(judge_submissions(options, runners, start)))


def _audit(options: AuditRequest) -> Events[AnyAudit]:
    """Judge the corpus, or prove or time a suite.

    Raises:
        UserError: there is no such suite, or it goes with none of the options.
        EnvironmentFault: it is to be timed, and there is no GPU.
    """
    start = time.monotonic()
    if options.budget_s is not None and options.suite is None:
        raise UserError("--budget: needs --suite; the audit of the corpus has no budget")
    if options.timed and options.suite is None:
        raise UserError("--timed: needs --suite; it times PyTorch's functions of that suite")
    if options.out is not None and options.suite is not None:
        raise UserError("--out: the audit of a suite keeps no run; use --json")
    options = replace(options, targets=choose_targets(options.targets))
    if options.timed:
        return (yield from _time_suite(options, start))
    with warming(options.device, options.targets) as runner:
        if options.suite is not None:
            from kerneltruth.engine.suite_audit import audit_suite

            return (yield from on_one_thread(audit_suite(options, runner, start)))
        from kerneltruth.engine.corpus_audit import audit_corpus

        return (yield from on_one_thread(audit_corpus(options, runner, start)))


def _try_exploits(options: ExploitsRequest) -> Events[ExploitsDocument]:
    """Try the exploits of the corpus."""
    start = time.monotonic()
    with warming(options.device, ()) as runner:
        from kerneltruth.engine.exploits.audit import audit_exploits

        return (yield from on_one_thread(audit_exploits(options, runner, start)))


def _time_suite(options: AuditRequest, start: float) -> Events[TimedSuiteDocument]:
    device = choose_device(options.device)
    if device == "cpu":
        raise EnvironmentFault(
            "--timed: needs a GPU, because times on a CPU depend on the host's other work; run it "
            "where `kerneltruth doctor` lists a GPU"
        )
    with new_runner(device, ()) as runner:
        runner.start(("time",))
        from kerneltruth.engine.benchmark.timed_audit import time_suite

        return (yield from on_one_thread(time_suite(options, runner, start)))


def _time(options: TimeRequest) -> Events[TimeDocument]:
    """Time one file."""
    start = time.monotonic()
    if options.source is None:
        _require_file(options.file)
    if options.profile and shutil.which("ncu") is None:
        raise EnvironmentFault(
            "--profile: ncu is not installed; Nsight Compute comes with the CUDA toolkit"
        )
    with new_runner(choose_device(options.device), ()) as runner:
        runner.start(("time", "time_compiled") if _compiles(options) else ("time",))
        from kerneltruth.engine.benchmark.timed_file import time_file

        return (yield from on_one_thread(time_file(options, runner, start)))


def _replay(request: ReplayRequest) -> Events[ReplayDocument]:
    """Run findings again."""
    from kerneltruth.engine.replay import replay_findings

    return (yield from on_one_thread(replay_findings(request)))


def _minimize(request: MinimizeRequest) -> Events[MinimizeDocument]:
    """Shrink a finding."""
    from kerneltruth.engine.minimize import minimize_finding

    return (yield from on_one_thread(minimize_finding(request)))


def _require_file(path: Path) -> None:
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "there is no such file"
        raise UserError(f"cannot read {str(path)!r}: {what}; name a Python file")


def _compiles(options: TimeRequest) -> bool:
    """Return whether torch compiles a baseline; its compiler takes long to import."""
    return not options.baselines or any(name.startswith("compile") for name in options.baselines)


_STEPS: dict[type[Any], Callable[[Any], Events[Any]]] = {
    CheckRequest: _check,
    ChecksRequest: _check,
    RunRequest: _run,
    AuditRequest: _audit,
    ExploitsRequest: _try_exploits,
    TimeRequest: _time,
    ReplayRequest: _replay,
    MinimizeRequest: _minimize,
}
