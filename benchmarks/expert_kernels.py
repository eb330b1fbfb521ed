"""Kernels that people wrote and many use, judged by references of ours: is a right one ever failed?

    python benchmarks/expert_kernels.py [--liger CHECKOUT] [--attorch CHECKOUT]
        [--flaggems CHECKOUT] [--fla CHECKOUT] [--flash CHECKOUT] [--lightllm CHECKOUT]
        [--mamba CHECKOUT] [--trident CHECKOUT] [--unsloth CHECKOUT] [--only NAME ...]
        [--device auto|cpu|cuda[:N]] [--results FOLDER] [--name expert_kernels]

The checkouts are of linkedin/Liger-Kernel, BobMcDear/attorch, FlagOpen/FlagGems,
fla-org/flash-linear-attention, Dao-AILab/flash-attention, ModelTC/lightllm, state-spaces/mamba,
kakaobrain/trident and unslothai/unsloth. Each function is judged as a user would: the library's
folder, an entry, and a reference with an example of its arguments (`expert_references.py`, and
`expert_NAME.py` for the others), or a task of ours. Nobody here wrote the kernels, so every failure
has to be read; the table names what breaks where, for that.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import machine
from expert_fla import FLA
from expert_flaggems import FLAG_GEMS
from expert_flash import FLASH
from expert_lightllm import LIGHTLLM
from expert_mamba import MAMBA
from expert_operator import Collection
from expert_references import ACTIVATIONS, CALLS, HEAD, REFERENCES, Call
from expert_trident import TRIDENT
from expert_unsloth import UNSLOTH

import kerneltruth as kt

# Those without operators are called as `expert_references.py` says.
COLLECTIONS = {
    "liger": Collection("liger_kernel", "src/liger_kernel", "liger_kernel", ()),
    "attorch": Collection("attorch", "attorch", "attorch", ()),
    "flaggems": FLAG_GEMS,
    "fla": FLA,
    "flash": FLASH,
    "lightllm": LIGHTLLM,
    "mamba": MAMBA,
    "trident": TRIDENT,
    "unsloth": UNSLOTH,
}
HEADER = (
    "library",
    "function",
    "verdict",
    "cases",
    "broken where promised",
    "broken beyond",
    "first",
)
# Messages of a compiler show a kernel's whole source.
MOST = 240
EXAMPLE = "\n\ndef inputs():\n    rows, hidden = 16, 200\n    return (torch.randn(rows, hidden),)\n"


class Function(NamedTuple):
    """A function to judge: the source that calls it, and that of its reference.

    Without a reference, the task of ours with its name says what is right.
    """

    library: str
    name: str
    source: str
    reference: str | None


def functions() -> Iterator[Function]:
    """All functions."""
    for call in CALLS:
        yield function_of(call, f"{HEAD}\n{REFERENCES[call.name].strip()}\n")
    for name, formula in ACTIVATIONS.items():
        function = f"{name}_function".replace(".", "_")
        given = f'x, "{name}", 0.0, False'
        reference = f"{HEAD}\ndef {function}(x):\n    return {formula}\n{EXAMPLE}"
        call = Call("attorch", function, "act_layers:ActFuncAutoGrad", given)
        yield function_of(call, reference)
    for made in COLLECTIONS.values():
        for operator in made.operators:
            source, reference_source = made.function(operator), made.reference(operator)
            yield Function(made.library, operator.name, source, reference_source)


def function_of(call: Call, reference: str) -> Function:
    """A function that calls the library as the reference is called."""
    module, applied = call.entry.split(":")
    parameters = re.findall(r"^def .*$", reference, re.MULTILINE)[0]
    imported = f"from {call.library}.{module} import {applied}"
    source = f"{imported}\n\n\n{parameters}\n    return {applied}.apply({call.given}){call.of}\n"
    return Function(call.library, call.name, source, reference)


def copied(made: Collection, checkout: Path, folder: Path) -> None:
    """Copy a library into a folder of its own, with what it needs to run here."""
    package = folder / made.library / made.package
    left_out = shutil.ignore_patterns(*made.left_out)
    shutil.copytree(checkout / made.folder, package, ignore=left_out)
    for name, text in made.appended.items():
        with (package / name).open("a") as file:
            file.write(text)
    for name, text in made.stubs.items():
        path = folder / made.library / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def laid_out(
    checkouts: dict[str, Path], folder: Path
) -> Iterator[tuple[Function, Path, dict[str, Any]]]:
    """Copy the libraries; yield each function's package, and what it is judged by."""
    for option, checkout in checkouts.items():
        copied(COLLECTIONS[option], checkout, folder)
    given = {COLLECTIONS[option].library for option in checkouts}
    for function in functions():
        if function.library not in given:
            continue
        package = folder / function.library
        (package / f"judged_{function.name}.py").write_text(function.source)
        if function.reference is None:
            yield function, package, {"task": function.name}
        else:
            path = folder / f"{function.library}_{function.name}.py"
            path.write_text(function.reference)
            yield function, package, {"reference": path}


def failures(report: Any, *, with_status: bool = False) -> list[str]:
    """What is broken or refused where it is promised, and beyond; and where the first is."""
    failed = {n: e for n, e in report.profile.items() if e.status in ("broken", "refused")}
    said = {n: f"{n} ({e.status})" if with_status else n for n, e in failed.items()}
    promised = [said[n] for n, e in failed.items() if e.promised]
    beyond = [n for n, e in failed.items() if not e.promised]
    first = next((e for e in failed.values() if e.promised), None)
    where = "" if first is None else f"{first.case_summary}: {first.detail or first.reason}"
    if first is None and report.verdict != "pass":
        where = report.detail or report.explanation
    return [", ".join(promised), ", ".join(beyond), " ".join(where.split())[:MOST]]


def row(function: Function, report: Any) -> list[Any]:
    """A function's line of the table."""
    return [function.library, function.name, report.verdict, report.cases, *failures(report)]


def options() -> argparse.Namespace:
    """What to judge, and where."""
    made = machine.parser(__doc__ or "")
    for name in COLLECTIONS:
        made.add_argument(f"--{name}", type=Path)
    made.add_argument("--only", action="append", default=[])
    made.add_argument("--name", default="expert_kernels")
    return made.parse_args()


def main() -> int:
    """Judge all functions and print the table."""
    chosen = options()
    given = {name: getattr(chosen, name) for name in COLLECTIONS}
    checkouts = {name: path for name, path in given.items() if path is not None}
    device = machine.device_of(chosen)
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as temporary, kt.Judge(device=device) as judge:
        for function, package, by in laid_out(checkouts, Path(temporary)):
            if chosen.only and function.name not in chosen.only:
                continue
            entry = f"judged_{function.name}:{function.name}"
            try:
                made = row(function, judge.check(package, entry=entry, seed=0, **by))
            except kt.UserError as error:
                made = [function.library, function.name, "not judged", 0, "", "", str(error)]
            rows.append(made)
            print(*rows[-1], sep=" | ", flush=True)
    count = Counter(line[2] for line in rows)
    lines = [f"{len(rows)} functions: {', '.join(f'{n} {v}' for v, n in count.most_common())}.", ""]
    lines += machine.table(HEADER, rows)
    title = "Published kernels, judged by references of ours"
    machine.publish(chosen.name, title, machine.facts(device), lines, folder=chosen.results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
