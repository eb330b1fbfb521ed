"""Time one file: from options to the document of `time --json`; choose the baselines."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import cast

from msgspec import UNSET, UnsetType, structs

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.roofline.advice import profile_remarks
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.case import Case
from kerneltruth.documents.model import dumps
from kerneltruth.documents.timing import CandidateTimes, DeviceShare, ProfiledKernel, TimeDocument
from kerneltruth.engine.benchmark.baselines import CANDIDATE, baseline_sources
from kerneltruth.engine.benchmark.benchmarker import DEFAULT_BASELINES, Benchmarker
from kerneltruth.engine.benchmark.machine import Machine, is_known, known_machine
from kerneltruth.engine.benchmark.profiling import device_share, profile
from kerneltruth.engine.devices import device_name
from kerneltruth.engine.requests import SHORT_DTYPES, Step, TimeRequest
from kerneltruth.engine.run_directory import environment
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.candidate import Candidate, is_torch_only
from kerneltruth.runner.host import Runner
from kerneltruth.runner.languages import NEEDS_A_GPU
from kerneltruth.runs.store import now
from kerneltruth.suites.catalog import opened
from kerneltruth.suites.recognize import recognize
from kerneltruth.tasks.spec import Task

# The file that `--out` holds.
RESULT = "time.json"


def time_file(
    options: TimeRequest,
    runner: Runner,
    start: float,
    *,
    measure: Callable[..., Machine] = known_machine,
    make: Callable[..., Benchmarker] = Benchmarker,
    share: Callable[..., DeviceShare] = device_share,
) -> Generator[Step, None, TimeDocument]:
    """Time the file with a runner that is warming up; `start` is when the command began.

    `measure` gives what is known of the device, `make` what times, `share` whose kernels take the
    device's time.
    """
    with opened(options.suite, runner) as suite:
        options = replace(options, suite=suite)
        return (yield from _time_file(options, runner, start, measure, make, share))


def _time_file(
    options: TimeRequest,
    runner: Runner,
    start: float,
    measure: Callable[..., Machine],
    make: Callable[..., Benchmarker],
    share: Callable[..., DeviceShare],
) -> Generator[Step, None, TimeDocument]:
    candidate, task = recognize(
        options.file, options.task, options.suite, source=options.source, entry=options.entry
    )
    _refuse(options, candidate, task, runner.device)
    dtype = _dtype(options.dtype, task)
    if options.out is not None:
        _make_folder(options.out)
    started = now()
    if options.measure_again or not is_known(runner):
        yield Step(done=0, total=1, text="measuring what this device can do, and its noise, once")
    machine = measure(runner, anew=options.measure_again)
    benchmarker = make(
        runner,
        machine=machine,
        # Contents that a candidate could foresee would not test its work.
        seed=secrets.randbits(64) if options.seed is None else options.seed,
        baselines=options.baselines or DEFAULT_BASELINES,
        effort=Effort(
            budget_s=options.budget_s, deadline_s=options.deadline_s, energy=options.energy
        ),
        cold=True,
        sources=baseline_sources,
    )
    with contextlib.closing(benchmarker):
        yield Step(done=0, total=1, text=f"timing {task.key}")
        timed = yield from _as_steps(benchmarker.shapes(task, candidate, dtype=dtype))
    profiled, kernel = yield from _look_inside(options, runner, candidate, task, timed, share)
    own = {**structs.asdict(timed), "kernel": kernel, "seconds": time.monotonic() - start}
    document = TimeDocument(
        task=task.key,
        device=device_name(runner.device),
        candidate=candidate.ref,
        torch_only=is_torch_only(candidate),
        **own,
        profile=profiled,
        environment=environment(runner.device),
        started=started,
    )
    if options.out is not None:
        _write(options, document)
    return document


def _look_inside(
    options: TimeRequest,
    runner: Runner,
    candidate: Candidate,
    task: Task,
    timed: CandidateTimes,
    share: Callable[..., DeviceShare],
) -> Generator[Step, None, tuple[tuple[ProfiledKernel, ...] | UnsetType, DeviceShare | None]]:
    """Return what profilers say of the largest shape, as far as they are asked."""
    largest = timed_cases(task, dtype=_dtype(options.dtype, task))[-1]
    profiled: tuple[ProfiledKernel, ...] | UnsetType = UNSET
    kernel: DeviceShare | None = None
    looked_at = options.kernels
    if looked_at is None:
        looked_at = runner.device != "cpu" and timed.outcome == "timed"
    if options.profile:
        yield Step(done=0, total=1, text="profiling")
        profiled = _profiled(candidate, task, largest, device=runner.device, timed=timed)
    if looked_at:
        yield Step(done=0, total=1, text="looking at which kernels take the time")
        kernel = share(runner, candidate, task, largest)
    return profiled, kernel


def _refuse(options: TimeRequest, candidate: Candidate, task: Task, device: str) -> None:
    """Refuse what cannot be timed here, before anything is measured."""
    if device == "cpu" and candidate.language in NEEDS_A_GPU:
        raise EnvironmentFault(
            f"{options.file} is a {candidate.language} kernel, and without a GPU none is timed; "
            "run this where `kerneltruth doctor` shows a device"
        )
    if device == "cpu" and options.kernels:
        raise EnvironmentFault(
            "--kernels: shares of a device's time need a GPU; run this where `kerneltruth doctor` "
            "shows a device, or see what `kerneltruth check` counts"
        )
    if device == "cpu" and "control" in (options.baselines or ()):
        raise UserError(
            "--against control: the corpus's kernels are Triton, which is interpreted without a "
            "GPU, and that is not timed; use eager or compile"
        )
    if device != "cpu" and candidate.language == "numpy":
        raise UserError(
            f"{options.file} is a NumPy kernel, which runs on the host: use --device cpu"
        )
    if task.unrefereeable is not None:
        raise EnvironmentFault(
            f"no candidate of {task.key} can be judged, so none is timed: {task.unrefereeable}"
        )


def _as_steps(
    shapes: Generator[tuple[int, int, Case], None, CandidateTimes],
) -> Generator[Step, None, CandidateTimes]:
    try:
        while True:
            number, count, case = next(shapes)
            yield Step(done=number, total=count, text=f"timing {case.summary()}", notable=True)
    except StopIteration as end:
        return cast(CandidateTimes, end.value)
    finally:
        shapes.close()


def _profiled(
    candidate: Candidate, task: Task, case: Case, *, device: str, timed: CandidateTimes
) -> tuple[ProfiledKernel, ...]:
    kernels = [k for s in timed.shapes or () for k in s.kernels.get(CANDIDATE, ())]
    name = kernels[0].kernel if kernels else None
    return tuple(
        ProfiledKernel(
            kernel=seen.kernel,
            grid=seen.grid,
            block=seen.block,
            metrics=dict(seen.metrics),
            bound_by=seen.bound_by,
            remarks=tuple(remark.text for remark in profile_remarks(seen)),
        )
        for seen in profile(candidate, task, case, device=device, kernel=name)
    )


def _dtype(name: str | None, task: Task) -> str | None:
    if name is None:
        return None
    known = (*task.dtypes, *task.extended_dtypes)
    full = SHORT_DTYPES.get(name, name)
    if full not in known:
        raise UserError(f"--dtype {name!r}: {task.name} has {', '.join(known)}")
    return full


def _write(options: TimeRequest, document: TimeDocument) -> None:
    assert options.out is not None
    try:
        (options.out / RESULT).write_text(dumps(document, indent=1) + "\n", "utf-8")
    except OSError as error:
        raise EnvironmentFault(
            f"--out {options.out}: cannot be written: {error.strerror}"
        ) from error


def _make_folder(out: Path) -> None:
    """Make the folder of the result before anything is measured; never replace what is there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in (RESULT, "run.json"):
            if (out / name).exists():
                raise UserError(f"--out {out}: it holds a {name} already; name a new directory")
        if not os.access(out, os.W_OK | os.X_OK):
            raise EnvironmentFault(f"--out {out}: cannot be written: it is read-only")
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(f"--out {out}: is a file; name a directory") from error
    except OSError as error:
        raise EnvironmentFault(f"--out {out}: cannot be written: {error.strerror}") from error
