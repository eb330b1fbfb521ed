"""Define options that several commands share, their seeds, and how a command runs and prints."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import STDIN, STDIN_NAME, standard_input
from kerneltruth.runner.containment import levels
from kerneltruth.runner.packages import names_module, read_package

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from kerneltruth.engine.requests import FileEnded, Step

D = TypeVar("D")
R = TypeVar("R", bound="DataclassInstance")

# The suite of `run` and `generate`.
DEFAULT_SUITE = "kernelbenchx"
# One day: longer waits make no sense, and the system's clocks overflow on huge numbers.
MOST_S = 86_400.0
# Short enough to retype, long enough that it cannot be guessed.
_BITS = 32


def _seed(help: str) -> Any:
    return typer.Option("--seed", min=0, max=2**64 - 1, metavar="N", help=help)


def _seconds(help: str) -> Any:
    return typer.Option("--timeout", min=0.1, max=MOST_S, help=help)


def _renamed(value: bool | None) -> None:
    """Refuse the option's earlier name.

    Raises:
        UserError: it is given.
    """
    if value is not None:
        raise UserError(
            "--baselines is --peer-checks now, since baselines are what a kernel is timed against; "
            "use --peer-checks or --no-peer-checks"
        )


EarlierPeerChecks = Annotated[
    bool | None, typer.Option("--baselines/--no-baselines", hidden=True, callback=_renamed)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Devices = Annotated[
    str, typer.Option("--device", help="auto, cpu, cuda, cuda:N, or cuda:all of this machine.")
]
NoDevice = Annotated[str, typer.Option("--device", help="Ignored.")]
Isolation = Annotated[
    str | None,
    typer.Option(
        "--isolation",
        callback=lambda context, level: isolate_at(context, level),
        help="process, syscalls, strict or namespaces; fails if less is available; default: the "
        "highest available.",
    ),
]
DrawnSeed = Annotated[
    int | None,
    _seed("Master seed of every random stream; default: drawn, or that of the run in --out."),
]
AuditSeed = Annotated[
    int | None, _seed("Master seed of every random stream; default: 0, or drawn for --exploits.")
]
TimingSeed = Annotated[int | None, _seed("Seed of the timing; default: drawn at random.")]
StudySeed = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="Seed of resampling and shuffling.")
]
FindingsSeed = Annotated[int | None, typer.Option("--seed", help="Ignored: findings hold it.")]
NoSeed = Annotated[int, typer.Option("--seed", help="Ignored.")]
Timeout = Annotated[float, _seconds("Seconds allowed for one call of a kernel.")]
BatchTimeout = Annotated[
    float,
    _seconds(
        "Seconds allowed for a batch of calls; first calls, which compile, get at least 300, and "
        "loading 60."
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Run directory; an unfinished one is resumed.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Judge processes; default: one per core.")
]
Suite = Annotated[
    str, typer.Option("--suite", help="The suite; kernelbench:, flashinfer: or gpuemu:PATH too.")
]
SearchedSuite = Annotated[
    str | None, typer.Option("--suite", help="The suite that has the task; see `tasks`.")
]
FindingsRun = Annotated[
    Path | None,
    typer.Option(
        "--run", help="The run, or folder of runs, with findings named by ID; default: runs."
    ),
]
FindingsSuite = Annotated[
    str | None, typer.Option("--suite", help="Where the suite is now, such as kernelbench:PATH.")
]
TasksFile = Annotated[
    Path | None,
    typer.Option("--tasks", help="A Python file that declares tasks of yours: the suite to use."),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        "--reference", help="A Python file of yours with a function and inputs(): the task."
    ),
]
Entry = Annotated[
    str | None,
    typer.Option(
        "--entry",
        help="The function to call; of a folder or an installed package, MODULE:FUNCTION.",
    ),
]
TaskName = Annotated[
    str | None, typer.Option("--task", help="Task; inferred from the entry where possible.")
]
Strategies = Annotated[
    list[str] | None, typer.Option("--strategy", help="Only these strategies (repeatable).")
]
Targets = Annotated[
    list[str] | None, typer.Option("--target", help="Compile for this target (repeatable).")
]
ContractName = Annotated[
    str,
    typer.Option("--contract", help="What decides: published, core or torch (see `tasks NAME`)."),
]
RequireKernel = Annotated[
    bool,
    typer.Option(
        "--require-kernel",
        help="Fail a right result that the kernel's own launches did not compute.",
    ),
]
Twice = Annotated[
    bool,
    typer.Option("--twice", help="Judge what passes again, in a fresh process on other cases."),
]
AuditedContract = Annotated[
    str | None,
    typer.Option(
        "--contract", help="What decides; default: core, and all of it for --suite's functions."
    ),
]
ShownContract = Annotated[
    str | None,
    typer.Option("--contract", help="Show what decides under this contract; default: core."),
]
KeptRound = Annotated[str, typer.Option("--keep", help="The round that counts: best or last.")]
OnObligation = Annotated[
    str | None,
    typer.Option(
        "--obligation", metavar="NAME", help="Only kernels that break or refuse this obligation."
    ),
]
WithoutTorchOnly = Annotated[
    bool,
    typer.Option(
        "--without-torch-only", help="Leave out answers that have no kernel of their own."
    ),
]
JUnit = Annotated[
    Path | None, typer.Option("--junit", help="Write how each candidate ended here, as JUnit XML.")
]
Annotations = Annotated[
    bool, typer.Option("--annotations", help="Print what is wrong as GitHub's annotations.")
]


def request(kind: type[R], given: Mapping[str, Any], **fields: Any) -> R:
    """Make a request from the options that are named like its fields.

    Args:
        kind: of the request.
        given: a command's arguments, as `locals()` holds them; None leaves the field's default.
            A file of `tasks`, which other commands take for names, is the suite.
        fields: further fields.
    """
    tasks = given.get("tasks")
    file = tasks if isinstance(tasks, Path) else None
    own = chosen_suite(given.get("suite"), file, given.get("reference"))
    given = {**given, "suite": own}
    named = {f.name: given.get(f.name) for f in dataclasses.fields(kind)}
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in named.items() if v is not None}
    return kind(**values | fields)


def isolate_at(
    context: typer.Context,
    isolation: str | None,
    *,
    offers: Callable[[], levels.OfferedLevel] = levels.offered,
) -> str | None:
    """Run candidates at a level of isolation, in all that this process starts for one command.

    Raises:
        UserError: there is no such level.
        EnvironmentFault: this machine offers less.
    """
    if isolation is not None:
        before = os.environ.get(levels.VARIABLE)
        levels.chosen(levels.named(isolation), offers=offers)
        os.environ[levels.VARIABLE] = isolation
        context.call_on_close(lambda: _restore(levels.VARIABLE, before))
    return isolation


def _restore(variable: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GivenSource:
    """The fields of a request that say which candidate a command is given."""

    file: Path
    source: str | None = None
    entry: str | None = None


def given_source(file: Path, entry: str | None) -> GivenSource:
    """Return which candidate a command is given.

    Args:
        file: a file, a folder or a package, or `-` for the standard input.
        entry: a function; of a folder or a package, as `MODULE:FUNCTION`.

    Raises:
        UserError: there is no such thing.
    """
    if names_module(entry):
        assert entry is not None
        text = read_package(file, entry)
        # `.` has no name.
        return GivenSource(file=file if file.name else file.resolve(), source=text)
    if str(file) == STDIN:
        return GivenSource(file=Path(STDIN_NAME), source=standard_input(), entry=entry)
    return GivenSource(file=file, entry=entry)


def chosen_suite(
    suite: str | None, tasks: Path | None, reference: Path | None = None
) -> str | None:
    """Return the suite that `--suite`, `--tasks` or `--reference` names; None without any.

    Raises:
        UserError: two of them are given.
    """
    given = {"tasks": tasks, "reference": reference}
    files = [(option, path) for option, path in given.items() if path is not None]
    if not files:
        return suite
    (option, path), *others = files
    stated = None if suite in (None, DEFAULT_SUITE) else f"--suite {suite}"
    other = stated or next((f"--{name} {file}" for name, file in others), None)
    if other is not None:
        raise UserError(f"--{option} {path}: it is a suite of its own; leave out {other}")
    return f"{option}:{path}"


def follow(
    steps: Generator[Step, None, D],
    *,
    quiet: bool,
    view: Callable[[FileEnded], Any] | None = None,
) -> D:
    """Run a command's events and return its document, with progress on standard error.

    `view` is of each of several files, which standard output shows as it ends.
    """
    from kerneltruth.report.progress import follow
    from kerneltruth.report.terminal import say, show

    def print_file(ended: FileEnded) -> None:
        assert view is not None
        show(view(ended))
        say("")

    return follow(steps, quiet=quiet, show=print_file)


def show_document(document: D, view: Callable[[D], Any], as_json: bool) -> None:
    """Print a command's document: as JSON, or as its view."""
    from kerneltruth.report.terminal import say, show

    if as_json:
        from kerneltruth.documents.model import dumps

        say(dumps(document))
    else:
        show(view(document))


def export_entries(suite: Callable[[], Any], given: Mapping[str, object]) -> None:
    """Write how each candidate of a command ended for other tools, as its options say.

    Args:
        suite: makes the entries; called only if an option needs them.
        given: the command's arguments: `junit`, `annotations`, and `as_json`, with which standard
            output holds a document and annotations go elsewhere.
    """
    junit, annotations = given["junit"], given["annotations"]
    if junit is None and not annotations:
        return
    import sys

    found = suite()
    if isinstance(junit, Path):
        from kerneltruth.report.junit import write_junit

        write_junit(found, junit)
    if annotations:
        from kerneltruth.report.annotations import annotate
        from kerneltruth.report.terminal import say

        lines = "\n".join(annotate(found))
        if lines and given["as_json"]:
            # GitHub reads both streams.
            sys.stderr.write(lines + "\n")
        elif lines:
            say(lines)


def settled_seed(given: int | None, out: Path | None) -> int:
    """Return the master seed of a command that writes to `out`: given, recorded there, or new.

    A fixed default seed would let candidates memorize the answers.
    """
    if given is not None:
        return given
    recorded = None if out is None else _recorded(out)
    return secrets.randbits(_BITS) if recorded is None else recorded


def _recorded(out: Path) -> int | None:
    """Return the seed of the run in `out`; None if it holds none that can be read.

    Opening the run later reports what is wrong with it.
    """
    for name, place in (("run.json", ("seed",)), ("generation.json", ("feedback", "seed"))):
        try:
            found = json.loads((out / name).read_bytes())
            for key in place:
                found = found[key]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if type(found) is int:
            return found
    return None
