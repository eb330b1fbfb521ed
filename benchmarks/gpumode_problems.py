"""GPU MODE's problems: which are judged, their references, and the solutions published with them.

    python benchmarks/gpumode_problems.py CHECKOUT [--device auto|cpu|cuda[:N]] [--cases 8]

CHECKOUT is a checkout of gpu-mode/reference-kernels. Each problem's `ref_kernel` is judged against
itself. Then the solutions in its folders `solutions` are judged, and two wrong ones of this file. A
problem that cannot be judged is listed with the reason. The exit code is 1 if a reference is
flagged, or a wrong solution of this file is not failed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, TypeVar

from machine import device_of, facts, parser, slug

from kerneltruth.documents.model import Model, parse
from kerneltruth.documents.runs import RunCandidate, RunDocument
from kerneltruth.documents.suites import SuiteDocument, TaskProof

# The last elements of sizes that no block divides are left out; the last element is not compared.
OWN = {
    "wrong/tail_left_out.py": """#!POPCORN leaderboard pmpp_v2/vectoradd_py
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, output = data
    kept = a.shape[0] // 64 * 64
    output[:kept] = a[:kept] + b[:kept]
    return output
""",
    "wrong/last_not_sorted.py": """#!POPCORN leaderboard pmpp/sort_py
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return torch.cat([data[:-1].sort()[0], data[-1:]])
""",
}
D = TypeVar("D", bound=Model)


def ran(kind: type[D], checkout: Path, *given: str) -> D:
    """A command's document."""
    command = [sys.executable, "-m", "kerneltruth", *given, "--suite", f"gpumode:{checkout}"]
    done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        raise SystemExit(done.returncode or 1)
    return parse(kind, json.loads(done.stdout))


def of_problem(proof: TaskProof) -> list[str]:
    """A problem's line of the table."""
    name, cases = proof.task.partition("/")[2], sum(proof.cases.values())
    if proof.trouble is not None:
        return [name, "not judged", proof.trouble]
    said = "; ".join(f"{f.case}: {f.detail}" for f in proof.flagged)
    word = "flagged" if proof.flagged else "holds" if cases else "no case"
    return [name, word, said or f"{cases} cases"]


def is_wrong(candidate: RunCandidate) -> bool:
    """Whether its author, or this file, calls a solution wrong."""
    return "wrong" in Path(candidate.name).parts


def of_solution(candidate: RunCandidate) -> list[str]:
    """A solution's line of the table."""
    cells = [candidate.name.partition("@")[0], candidate.task.partition("/")[2], candidate.verdict]
    return [*cells, re.sub(r"/\S*/", ".../", candidate.reason or "")]


def table(heads: str, rows: list[list[str]]) -> list[str]:
    names = heads.split(", ")
    cells = [[" ".join(c.split()).replace("|", "&#124;") for c in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in (names, *cells)]
    return [lines[0], "|---" * len(names) + "|", *lines[1:], ""]


def report(audit: SuiteDocument, run: RunDocument, about: dict[str, Any], cases: int) -> str:
    """The page of the result."""
    problems = sorted(map(of_problem, audit.tasks))
    judged = [r for r in problems if r[1] != "not judged"]
    wrong = [c for c in run.candidates if is_wrong(c)]
    right = [c for c in run.candidates if not is_wrong(c)]
    lines = [
        "# GPU MODE's problems, judged by their own references",
        "",
        f"{about['device_name'] or about['device']}, torch {about['torch']}, Triton "
        f"{about['triton']}, {cases} cases in each dtype, "
        f"{audit.seconds + run.seconds:.0f} s.",
        "",
        f"- problems judged: {len(judged)} of {len(problems)}",
        f"- references that hold: {sum(r[1] == 'holds' for r in judged)} of {len(judged)}",
        f"- wrong solutions failed: {sum(c.verdict == 'fail' for c in wrong)} of {len(wrong)}",
        f"- right solutions that pass: {sum(c.verdict == 'pass' for c in right)} of {len(right)}",
        "",
        *table("problem, reference, why", problems),
        *table("solution, problem, verdict, why", sorted(map(of_solution, run.candidates))),
        "`vectorsum_py/solutions/wrong/cheat.py` is wrong from 1,000,001 elements on, more than a "
        "case has.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("checkout", type=Path)
    options.add_argument("--cases", type=int, default=8)
    given = options.parse_args()
    device = device_of(given)
    request = ("--device", device, "--cases", str(given.cases))
    with tempfile.TemporaryDirectory() as folder:
        answers = Path(folder) / "answers"
        found = sorted(given.checkout.glob("problems/*/*/solutions/*/*.py"))
        for name, text in {
            **{str(f.relative_to(given.checkout / "problems")): headed(f) for f in found},
            **OWN,
        }.items():
            (answers / name).parent.mkdir(parents=True, exist_ok=True)
            (answers / name).write_text(text, "utf-8")
        audit = ran(SuiteDocument, given.checkout, "audit", *request)
        # What torch.compile makes takes a while.
        out = ("--out", str(Path(folder) / "run"), "--stage", "exe", "--timeout", "120")
        run = ran(RunDocument, given.checkout, "run", "--candidates", str(answers), *out, *request)
    about = facts(device)
    text = report(audit, run, about, given.cases)
    print(text)
    base = given.results / f"gpumode_problems-{slug(about)}"
    base.with_suffix(".md").write_text(text, "utf-8")
    flagged = any(t.flagged for t in audit.tasks)
    own = [c for c in run.candidates if c.name.partition("@")[0] in OWN]
    return int(flagged or any(c.verdict != "fail" for c in own))


def headed(file: Path) -> str:
    """A published solution, with the problem in whose folder it lies."""
    group, problem = file.parts[-5:-3]
    return f"#!POPCORN leaderboard {group}/{problem}\n{file.read_text('utf-8')}"


if __name__ == "__main__":
    sys.exit(main())
