"""Define `check`, which judges one kernel file, or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from kerneltruth.cli import options
from kerneltruth.cli.application import app
from kerneltruth.report import exit_codes
from kerneltruth.runner.packages import names_module

if TYPE_CHECKING:
    from kerneltruth.engine.requests import CheckRequest

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="The kernel files to judge; a folder stands for those below it, - for standard input.",
    ),
]
Dtypes = Annotated[
    list[str] | None, typer.Option("--dtype", help="Only these dtypes (repeatable).")
]
Cases = Annotated[
    int | None,
    typer.Option(
        "--cases", min=1, help="Cases to judge (48, or more where the task promises more)."
    ),
]
Bounds = Annotated[str, typer.Option("--bounds", help="spread, calibrated or fixed.")]
Tf32 = Annotated[
    bool, typer.Option(help="Whether fp32 matrix products may use TF32, Triton's default.")
]
DomainName = Annotated[
    str, typer.Option("--domain", help="core (only what the task promises) or extended.")
]


@app.command()
def check(
    paths: Paths,
    task: options.TaskName = None,
    suite: options.SearchedSuite = None,
    tasks: options.TasksFile = None,
    reference: options.Reference = None,
    entry: options.Entry = None,
    dtypes: Dtypes = None,
    strategies: options.Strategies = None,
    cases: Cases = None,
    bounds: Bounds = "spread",
    tf32: Tf32 = True,
    domain: DomainName = "extended",
    require_kernel: options.RequireKernel = False,
    twice: options.Twice = False,
    contract: options.ContractName = "core",
    targets: options.Targets = None,
    junit: options.JUnit = None,
    annotations: options.Annotations = False,
    as_json: options.AsJson = False,
    device: options.Device = "auto",
    isolation: options.Isolation = None,
    seed: options.DrawnSeed = None,
    out: options.Out = None,
    deadline_s: options.Timeout = 20.0,
) -> None:
    """Judge kernel files: one, or several in one run."""
    given = locals()
    if len(paths) > 1 or (paths[0].is_dir() and not names_module(entry)):
        _check_several(paths, given)
    request = _request(options.given_source(paths[0], entry), given)
    from kerneltruth.engine.start import run
    from kerneltruth.report.junit_entries import of_check
    from kerneltruth.report.verdict_view import check_view

    document = options.follow(run(request), quiet=as_json)
    options.show_document(document, check_view, as_json)
    options.export_entries(lambda: of_check(document, request.file, device=device), given)
    raise typer.Exit(exit_codes.of_check(document.verdict))


def _request(source: options.GivenSource, given: Mapping[str, Any]) -> CheckRequest:
    """Return the request to judge a source with the options given."""
    from kerneltruth.engine.requests import CheckRequest

    return options.request(
        CheckRequest,
        given,
        file=source.file,
        source=source.source,
        entry=source.entry,
        seed=options.settled_seed(given["seed"], given["out"]),
    )


def _check_several(paths: Sequence[Path], given: Mapping[str, Any]) -> NoReturn:
    from kerneltruth.engine.requests import ChecksRequest
    from kerneltruth.engine.start import run
    from kerneltruth.report.junit_entries import of_checks
    from kerneltruth.report.verdict_view import counts_view, file_view

    as_json = given["as_json"]
    each = _request(options.GivenSource(file=paths[0], entry=given["entry"]), given)
    request = ChecksRequest(paths=tuple(paths), each=each)
    document = options.follow(
        run(request), quiet=as_json, view=lambda file: file_view(file.path, file.ended)
    )
    options.show_document(document, counts_view, as_json)
    options.export_entries(lambda: of_checks(document, device=given["device"]), given)
    raise typer.Exit(exit_codes.of_checks(document))
