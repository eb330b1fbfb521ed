"""The published gpuemu corpus, judged from its own files: 16 controls and 10 bugs.

    python benchmarks/gpuemu_corpus.py CHECKOUT [--device auto|cpu|cuda[:N]] [--cases 16]

CHECKOUT is a checkout of sarkar-dipankar/gpuemu-corpus. Each kernel is run from its `kernel.py`, at
the sizes and dtypes of its `meta.json`, against its `ref_fp64.py`. A control holds if it breaks no
obligation that its files promise; one may still be refused, by an exception. Values that the corpus
does not draw are tried, too: what is wrong there alone is a hazard. The exit code is 1 if a control
is broken or a bug is not.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import device_of, facts, parser, slug

from kerneltruth.documents.model import parse
from kerneltruth.documents.runs import RunCandidate, RunDocument

WRONG = "_buggy"
# What the files of the corpus do not promise.
BEYOND = ("kernel", "specials", "gradients", "values")


def judged(checkout: Path, device: str, cases: int, out: Path) -> RunDocument:
    """Run the command on all kernels of the corpus."""
    command = [sys.executable, "-m", "kerneltruth", "run", "--suite", f"gpuemu:{checkout}"]
    command += ["--candidates", str(checkout), "--device", device, "--cases", str(cases)]
    command += ["--stage", "exe", "--seed", "0", "--out", str(out), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        raise SystemExit(done.returncode or 1)
    return parse(RunDocument, json.loads(done.stdout))


def decided(candidate: RunCandidate) -> dict[str, list[str]]:
    """The obligations of a kernel by status, without those that its files do not promise."""
    found: dict[str, list[str]] = {"held": [], "broken": [], "refused": []}
    for name, status in candidate.profile.items():
        if status in found and name not in BEYOND:
            found[status].append(name)
    return found


def row(candidate: RunCandidate) -> list[str]:
    """A kernel's line of the table."""
    name = Path(candidate.name).parts[0]
    found = decided(candidate)
    cells = [name, "bug" if name.endswith(WRONG) else "control", candidate.verdict]
    cells += [", ".join(found[status]) for status in ("broken", "refused")]
    return [*cells, "; ".join(candidate.hazards).replace("|", "&#124;")]


def report(document: RunDocument, about: dict[str, Any], cases: int) -> str:
    """The page of the result."""
    rows = sorted(map(row, document.candidates))
    bugs = [r for r in rows if r[1] == "bug"]
    controls = [r for r in rows if r[1] == "control"]
    lines = [
        "# The gpuemu corpus, from its own files",
        "",
        f"{about['device_name'] or about['device']}, torch {about['torch']}, Triton "
        f"{about['triton']}, {cases} cases for each kernel or as many as its promises take, "
        f"{document.seconds:.0f} s.",
        "",
        f"- bugs broken: {sum(bool(r[3]) for r in bugs)} of {len(bugs)}",
        f"- controls held: {sum(not r[3] for r in controls)} of {len(controls)}; "
        f"{sum(r[2] == 'pass' for r in controls)} pass, "
        f"{sum(bool(r[4]) for r in controls)} refuse a dtype that their files promise",
        "",
        "| kernel | role | verdict | broken | refused | wrong beyond what its files promise |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(r)} |" for r in rows),
        "",
        "Why kernels do not pass:",
        "",
    ]
    failing = sorted((c for c in document.candidates if c.reason), key=lambda c: c.name)
    lines += [f"- {Path(c.name).parts[0]}: {c.reason.replace('|', '&#124;')}" for c in failing]
    return "\n".join(lines) + "\n"


def main() -> int:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("checkout", type=Path)
    options.add_argument("--cases", type=int, default=16)
    given = options.parse_args()
    device = device_of(given)
    with tempfile.TemporaryDirectory() as folder:
        document = judged(given.checkout, device, given.cases, Path(folder) / "run")
    about = facts(device)
    text = report(document, about, given.cases)
    print(text)
    base = given.results / f"gpuemu_corpus-{slug(about)}"
    base.with_suffix(".md").write_text(text, "utf-8")
    kernels = [
        {"kernel": Path(c.name).parts[0], "verdict": c.verdict, "profile": c.profile}
        for c in document.candidates
    ]
    numbers = {"machine": about, "seconds": document.seconds, "kernels": kernels}
    base.with_suffix(".json").write_text(json.dumps(numbers, indent=1) + "\n", "utf-8")
    rows = list(map(row, document.candidates))
    return int(any((r[1] == "bug") != bool(r[3]) for r in rows) or len(rows) == 0)


if __name__ == "__main__":
    sys.exit(main())
