"""Kernels that people wrote and many use, judged by references of ours: is a right one ever failed?

    python benchmarks/expert_kernels.py [--liger CHECKOUT] [--attorch CHECKOUT]
        [--flaggems CHECKOUT] [--only NAME ...] [--device auto|cpu|cuda[:N]] [--results FOLDER]
        [--name expert_kernels]

The checkouts are of linkedin/Liger-Kernel, BobMcDear/attorch and FlagOpen/FlagGems. Each function
is judged as a user would: the library's folder, an entry, and a reference with an example of its
arguments (`expert_references.py`, `expert_flaggems.py`), or a task of ours. Nobody here wrote the
kernels, so every failure has to be read; the table names what breaks where, for that.
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

import expert_flaggems
import machine
from expert_references import ACTIVATIONS, CALLS, HEAD, REFERENCES, Call

import kerneltruth as kt

FOLDERS = {
    "liger_kernel": "src/liger_kernel",
    "attorch": "attorch",
    "flag_gems": "src/flag_gems",
}
# FlagGems has kernels for other devices.
LEFT_OUT = shutil.ignore_patterns("_[!n_]*", "csrc")
HEADER = (
    "library",
    "function",
    "verdict",
    "cases",
    "broken where promised",
    "broken beyond",
    "first",
)
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
    for operator, source, held_to in expert_flaggems.sources():
        yield Function("flag_gems", operator.name, source, held_to)


def function_of(call: Call, reference: str) -> Function:
    """A function that calls the library as the reference is called."""
    module, applied = call.entry.split(":")
    parameters = re.findall(r"^def .*$", reference, re.MULTILINE)[0]
    imported = f"from {call.library}.{module} import {applied}"
    source = f"{imported}\n\n\n{parameters}\n    return {applied}.apply({call.given}){call.of}\n"
    return Function(call.library, call.name, source, reference)


def laid_out(
    checkouts: dict[str, Path], folder: Path
) -> Iterator[tuple[Function, Path, dict[str, Any]]]:
    """Copy the libraries; yield each function's package, and what it is judged by."""
    for library, checkout in checkouts.items():
        copied = folder / library / library
        shutil.copytree(checkout / FOLDERS[library], copied, ignore=LEFT_OUT)
        if library == "flag_gems":
            with (copied / "utils" / "libentry.py").open("a") as launcher:
                launcher.write(expert_flaggems.LAUNCHER)
    for function in functions():
        if function.library not in checkouts:
            continue
        package = folder / function.library
        (package / f"judged_{function.name}.py").write_text(function.source)
        if function.reference is None:
            yield function, package, {"task": function.name}
        else:
            path = folder / f"{function.library}_{function.name}.py"
            path.write_text(function.reference)
            yield function, package, {"reference": path}


def row(function: Function, report: Any) -> list[Any]:
    """A function's line of the table."""
    broken = {n: e for n, e in report.profile.items() if e.status in ("broken", "refused")}
    promised = [n for n, e in broken.items() if e.promised]
    beyond = [n for n, e in broken.items() if not e.promised]
    first = next((broken[n] for n in promised), None)
    where = "" if first is None else f"{first.case_summary}: {first.detail or first.reason}"
    if first is None and report.verdict != "pass":
        where = report.detail or report.explanation
    cells = [function.library, function.name, report.verdict, report.cases]
    return [*cells, ", ".join(promised), ", ".join(beyond), where]


def options() -> argparse.Namespace:
    """What to judge, and where."""
    made = machine.parser(__doc__ or "")
    made.add_argument("--liger", type=Path)
    made.add_argument("--attorch", type=Path)
    made.add_argument("--flaggems", type=Path)
    made.add_argument("--only", action="append", default=[])
    made.add_argument("--name", default="expert_kernels")
    return made.parse_args()


def main() -> int:
    """Judge all functions and print the table."""
    chosen = options()
    given = {
        "liger_kernel": chosen.liger,
        "attorch": chosen.attorch,
        "flag_gems": chosen.flaggems,
    }
    checkouts = {library: path for library, path in given.items() if path is not None}
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
