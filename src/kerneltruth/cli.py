"""The command line: parse, wire, print, exit code. No logic.

torch is imported by the commands that need it, never by this module: `--help` must be quick.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from kerneltruth import __version__
from kerneltruth.commands import exit_codes
from kerneltruth.errors import Interrupted

CLEANING_UP_S = 3.0

EXIT_CODES = (
    "Exit codes: 0 all good; 1 the judged thing is bad; 2 a mistake in the command; 3 no judgement "
    "was possible here (no such device, unsupported_here, unrefereeable, disk or memory full); "
    "4 a bug of kerneltruth; 130 interrupted."
)

app = typer.Typer(
    name="kerneltruth",
    help="Judges GPU kernels (Triton, CUDA) written by language models.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", min=0, max=2**64 - 1, metavar="N", help="Master seed of every random stream."
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Run directory; an unfinished one is resumed.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Judge processes; default: one per core.")
]
Timeout = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds allowed for one call of a kernel.")
]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Judges GPU kernels (Triton, CUDA) written by language models."""
    if version:
        typer.echo(f"kerneltruth {__version__}")
        raise typer.Exit


@app.command()
def audit(
    as_json: AsJson = False,
    device: Device = "auto",
    seed: Seed = 0,
    out: Out = None,
    workers: Workers = None,
    timeout: Timeout = 20.0,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Judge only these kernels (repeatable).")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Judge the whole corpus, not only a part.")
    ] = False,
    cases: Annotated[
        int | None,
        typer.Option("--cases", min=1, help="Cases per kernel (32), or per task and dtype (16)."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option("--suite", help="In place of the corpus, prove this suite's tasks."),
    ] = None,
    baselines: Annotated[
        bool, typer.Option(help="Run the peers' checks on the same kernels.")
    ] = True,
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Compile for this target (repeatable).")
    ] = None,
) -> None:
    """Judge the built-in corpus, and show what the peers' checks say of the same kernels."""
    from kerneltruth.commands.audit import AuditOptions, run_audit
    from kerneltruth.report.audit_view import audit_view

    options = AuditOptions(
        device=device,
        seed=seed,
        out=out,
        workers=workers,
        deadline_s=timeout,
        only=tuple(only or ()),
        full=full,
        cases=cases or (32 if suite is None else 16),
        baselines=baselines,
        targets=tuple(target or ("sm_90",)),
        suite=suite,
    )
    document = _follow(run_audit(options), quiet=as_json)
    if suite is not None:
        from kerneltruth.report.suite_view import suite_view

        _print(document, suite_view, as_json)
        raise typer.Exit(exit_codes.of_suite(document))
    _print(document, audit_view, as_json)
    raise typer.Exit(exit_codes.of_audit(document))


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="The kernel file to judge.")],
    task: Annotated[
        str | None, typer.Option("--task", help="Task; inferred from the entry where possible.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option("--suite", help="Where to look for the task: see `tasks`.")
    ] = None,
    dtype: Annotated[
        list[str] | None, typer.Option("--dtype", help="Only these dtypes (repeatable).")
    ] = None,
    strategy: Annotated[
        list[str] | None, typer.Option("--strategy", help="Only these strategies (repeatable).")
    ] = None,
    cases: Annotated[int, typer.Option("--cases", min=1, help="Cases to judge.")] = 48,
    bounds: Annotated[
        str, typer.Option("--bounds", help="spread, calibrated or fixed.")
    ] = "spread",
    tf32: Annotated[
        bool, typer.Option(help="Whether fp32 matrix products may use TF32, Triton's default.")
    ] = True,
    domain: Annotated[str, typer.Option("--domain", help="core or extended.")] = "extended",
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Compile for this target (repeatable).")
    ] = None,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: Seed = 0,
    out: Out = None,
    workers: Workers = None,
    timeout: Timeout = 20.0,
) -> None:
    """Judge one kernel file."""
    del workers  # One candidate keeps one judge busy.
    from kerneltruth.commands.check import CheckOptions, run_check
    from kerneltruth.report.verdict_view import check_view

    options = CheckOptions(
        file=file,
        task=task,
        suite=suite,
        dtypes=tuple(dtype or ()),
        strategies=tuple(strategy or ()),
        cases=cases,
        bounds=bounds,
        tf32=tf32,
        domain=domain,
        targets=tuple(target or ("sm_90",)),
        device=device,
        seed=seed,
        out=out,
        deadline_s=timeout,
    )
    document = _follow(run_check(options), quiet=as_json)
    _print(document, check_view, as_json)
    raise typer.Exit(exit_codes.of_check(document))


@app.command()
def replay(
    findings: Annotated[list[Path], typer.Argument(help="Finding files or run directories.")],
    from_snapshot: Annotated[
        bool, typer.Option("--from-snapshot", help="Use the stored inputs, not the seed.")
    ] = False,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: Annotated[int | None, typer.Option("--seed", help="Ignored: findings hold it.")] = None,
    timeout: Timeout = 20.0,
) -> None:
    """Run findings again: same input digests, same verdict, same output bytes."""
    del seed
    from kerneltruth.commands.replay import run_replay
    from kerneltruth.report.verdict_view import replay_view

    steps = run_replay(findings, device=device, from_snapshot=from_snapshot, deadline_s=timeout)
    document = _follow(steps, quiet=as_json)
    _print(document, replay_view, as_json)
    raise typer.Exit(exit_codes.of_replay(document))


@app.command()
def minimize(
    finding: Annotated[Path, typer.Argument(help="The finding to minimize.")],
    script: Annotated[
        Path | None, typer.Option("--script", help="Where to write the standalone script.")
    ] = None,
    evaluations: Annotated[
        int, typer.Option("--evaluations", min=1, help="Budget of kernel runs.")
    ] = 400,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: Annotated[int | None, typer.Option("--seed", help="Ignored: findings hold it.")] = None,
    timeout: Timeout = 20.0,
) -> None:
    """Find the smallest failing case, and write a standalone script that shows it."""
    del seed
    from kerneltruth.commands.minimize import run_minimize
    from kerneltruth.report.verdict_view import minimize_view

    steps = run_minimize(
        finding, script=script, device=device, evaluations=evaluations, deadline_s=timeout
    )
    document = _follow(steps, quiet=as_json)
    _print(document, minimize_view, as_json)


@app.command(name="run")
def run_(
    candidates: Annotated[
        Path, typer.Option("--candidates", help="A file, a folder, or a KernelBench run.")
    ],
    suite: Annotated[str, typer.Option("--suite", help="The suite of the tasks.")] = "kernelbenchx",
    cases: Annotated[int, typer.Option("--cases", min=1, help="Cases per candidate.")] = 16,
    strategy: Annotated[
        list[str] | None, typer.Option("--strategy", help="Only these strategies (repeatable).")
    ] = None,
    stage: Annotated[
        str, typer.Option("--stage", help="How far to go: call, exe or perf.")
    ] = "perf",
    explain: Annotated[
        bool, typer.Option(help="Look for the smallest failing case of each wrong candidate.")
    ] = True,
    method: Annotated[
        str | None, typer.Option("--method", help="Label where a candidate brings none.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Label where a candidate brings none.")
    ] = None,
    executor: Annotated[str, typer.Option("--executor", help="local or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option("--address", help="Of a Ray cluster: ray://HOST:PORT or auto.")
    ] = None,
    as_json: AsJson = False,
    device: Device = "auto",
    seed: Seed = 0,
    out: Out = None,
    workers: Workers = None,
    timeout: Timeout = 20.0,
) -> None:
    """Judge many candidates in stages: call, exe, perf. Resumes where it stopped."""
    from kerneltruth.commands.run import RunOptions, run_suite, stages_until
    from kerneltruth.importers.submission import Labels
    from kerneltruth.report.run_view import run_view

    options = RunOptions(
        suite=suite,
        candidates=candidates,
        device=device,
        seed=seed,
        out=out,
        workers=workers,
        deadline_s=timeout,
        cases=cases,
        strategies=tuple(strategy or ()),
        stages=stages_until(stage),
        explain=explain,
        labels=Labels(method=method, model=model),
        executor=executor,
        address=address,
    )
    document = _follow(run_suite(options), quiet=as_json)
    _print(document, run_view, as_json)
    raise typer.Exit(exit_codes.of_run(document))


@app.command()
def tasks(
    name: Annotated[str | None, typer.Argument(help="One task, in full.")] = None,
    suite: Annotated[str | None, typer.Option("--suite", help="Only this suite.")] = None,
    as_json: AsJson = False,
    device: Annotated[str, typer.Option("--device", help="Ignored.")] = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Ignored.")] = 0,
) -> None:
    """List the tasks, or show one."""
    del device, seed
    from kerneltruth.commands.tasks import list_tasks
    from kerneltruth.report.tasks_view import tasks_view

    _print(list_tasks(name, suite), tasks_view, as_json)


@app.command()
def doctor(
    as_json: AsJson = False,
    device: Annotated[str, typer.Option("--device", help="Ignored: all are shown.")] = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Ignored.")] = 0,
) -> None:
    """Say what this machine can do, what is missing, and how to add it."""
    del device, seed
    from kerneltruth.commands.doctor import examine
    from kerneltruth.report.tasks_view import doctor_view

    _print(examine(), doctor_view, as_json)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run directories.")],
    as_json: AsJson = False,
    device: Annotated[str, typer.Option("--device", help="Ignored.")] = "auto",
    seed: Annotated[int, typer.Option("--seed", help="Ignored.")] = 0,
) -> None:
    """Compare runs of the same thing on several devices: the same verdicts, or which differ."""
    del device, seed
    from kerneltruth.commands.compare import compare_runs
    from kerneltruth.report.audit_view import compare_view

    document = compare_runs(runs)
    _print(document, compare_view, as_json)
    raise typer.Exit(exit_codes.of_compare(document))


def _follow(steps: Any, *, quiet: bool) -> dict[str, Any]:
    """Drive a command's events to its document, with progress on standard error."""
    from kerneltruth.report.progress import follow

    return follow(steps, quiet=quiet)


def _print(document: dict[str, Any], view: Callable[[dict[str, Any]], Any], as_json: bool) -> None:
    from kerneltruth.report.terminal import say, show

    if as_json:
        from kerneltruth.codec import dumps

        say(dumps(document))
    else:
        show(view(document))


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code, and never raises for what a user may do."""
    try:
        # Without standalone mode, what a command raises reaches us, and Exit comes as its code.
        code = app(list(arguments), prog_name="kerneltruth", standalone_mode=False)
        if code == Interrupted.exit_code:
            # typer's word for a KeyboardInterrupt that no command has answered.
            code = _complain(KeyboardInterrupt())
    except typer.Exit as leave:
        code = leave.exit_code
    except (Exception, KeyboardInterrupt) as error:
        code = _complain(error)
    return code if isinstance(code, int) else 0


def _complain(error: BaseException) -> int:
    from kerneltruth.report.complaints import complain

    return complain(error)


class _Interrupts:
    """Answers Ctrl-C: one interrupt at a time, so that a second cannot cut short the cleaning up.

    After a while another one counts again: the first may have struck where Python drops exceptions.
    """

    def __init__(self) -> None:
        self._last = -math.inf

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > CLEANING_UP_S:
            self._last = now
            raise KeyboardInterrupt


def main() -> None:
    """Entry point of the `kerneltruth` command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _Interrupts())
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Closed by the caller (`>&-`): what we would say goes nowhere.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        else:
            # A file's name may hold what the terminal's encoding has no letters for.
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    # All is said and ended; Python's own end must not be taken for an interrupted command.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


if __name__ == "__main__":
    main()
