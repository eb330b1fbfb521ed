"""Kernels that people wrote and many use, judged by references of ours: is a right one ever failed?

    python benchmarks/expert_kernels.py --liger CHECKOUT --attorch CHECKOUT
        [--only NAME ...] [--device auto|cpu|cuda[:N]] [--results FOLDER] [--name expert_kernels]

The checkouts are of linkedin/Liger-Kernel and BobMcDear/attorch. Each function is judged as a user
would: the library's folder, an entry, and a reference with an example of its arguments
(`expert_references.py`). Nobody here wrote the kernels, so every failure has to be read; the table
names what breaks where, for that.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine
from expert_references import ACTIVATIONS, CALLS, HEAD, REFERENCES, Call

import kerneltruth as kt

FOLDERS = {"liger_kernel": "src/liger_kernel", "attorch": "attorch"}
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


def calls() -> Iterator[tuple[Call, str]]:
    """All functions, each with the text of its reference."""
    for call in CALLS:
        yield call, f"{HEAD}\n{REFERENCES[call.name].strip()}\n"
    for name, formula in ACTIVATIONS.items():
        function = f"{name}_function".replace(".", "_")
        given = f'x, "{name}", 0.0, False'
        reference = f"{HEAD}\ndef {function}(x):\n    return {formula}\n{EXAMPLE}"
        yield Call("attorch", function, "act_layers:ActFuncAutoGrad", given), reference


def entry_of(call: Call, reference: str) -> str:
    """The source of a function that calls the library as the reference is called."""
    module, applied = call.entry.split(":")
    parameters = re.findall(r"^def .*$", reference, re.MULTILINE)[0]
    imported = f"from {call.library}.{module} import {applied}"
    return f"{imported}\n\n\n{parameters}\n    return {applied}.apply({call.given}){call.of}\n"


def laid_out(checkouts: dict[str, Path], folder: Path) -> Iterator[tuple[Call, Path, Path]]:
    """Copy the libraries, and write an entry and a reference for each function."""
    for library, checkout in checkouts.items():
        shutil.copytree(checkout / FOLDERS[library], folder / library / library)
    for call, reference in calls():
        if call.library in checkouts:
            package = folder / call.library
            (package / f"judged_{call.name}.py").write_text(entry_of(call, reference))
            path = folder / f"{call.library}_{call.name}.py"
            path.write_text(reference)
            yield call, package, path


def row(call: Call, report: Any) -> list[Any]:
    """A function's line of the table."""
    broken = {n: e for n, e in report.profile.items() if e.status in ("broken", "refused")}
    promised = [n for n, e in broken.items() if e.promised]
    beyond = [n for n, e in broken.items() if not e.promised]
    first = next((broken[n] for n in promised), None)
    where = "" if first is None else f"{first.case_summary}: {first.detail or first.reason}"
    cells = [call.library, call.name, report.verdict, report.cases]
    return [*cells, ", ".join(promised), ", ".join(beyond), where]


def options() -> argparse.Namespace:
    """What to judge, and where."""
    made = machine.parser(__doc__ or "")
    made.add_argument("--liger", type=Path)
    made.add_argument("--attorch", type=Path)
    made.add_argument("--only", action="append", default=[])
    made.add_argument("--name", default="expert_kernels")
    return made.parse_args()


def main() -> int:
    """Judge all functions and print the table."""
    chosen = options()
    given = {"liger_kernel": chosen.liger, "attorch": chosen.attorch}
    checkouts = {library: path for library, path in given.items() if path is not None}
    device = machine.device_of(chosen)
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as temporary, kt.Judge(device=device) as judge:
        for call, package, reference in laid_out(checkouts, Path(temporary)):
            if chosen.only and call.name not in chosen.only:
                continue
            entry = f"judged_{call.name}:{call.name}"
            try:
                made = row(call, judge.check(package, entry=entry, reference=reference, seed=0))
            except kt.UserError as error:
                made = [call.library, call.name, "not judged", 0, "", "", str(error)]
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
