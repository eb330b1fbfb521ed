"""KernelBench's level 4: each problem's own model, and wrong models, on small configurations.

    python benchmarks/kernelbench_level4.py CHECKOUT [--device auto|cpu|cuda[:N]] [--audit FILE]

CHECKOUT is a checkout of KernelBench. Each problem's own model is judged as the candidate, in all
of its dtypes; `--audit` takes this from a document of `kerneltruth audit --suite ... --json`. Then
two wrong models are judged for each problem: with tanh as the activation, and with logits times
1.02. The exit code is 1 if an own model is flagged or not judged, or a wrong one is not failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from machine import device_of, facts, parser, publish, table

from kerneltruth.documents.model import Model, parse
from kerneltruth.documents.runs import RunDocument
from kerneltruth.documents.suites import SuiteDocument, TaskProof
from kerneltruth.suites.kernelbench.problem import Problem
from kerneltruth.suites.kernelbench.published_problems import read_problems

TANH = """\
        self.config = copy.deepcopy(config)
        for name in ("activation_function", "hidden_act"):
            if hasattr(config, name):
                setattr(self.config, name, "tanh")
"""
# By name: what is replaced in a problem's file, and by what.
FAULTS = {
    "tanh": ("        self.config = config\n", TANH),
    "scaled": (".logits\n", ".logits * 1.02\n"),
}
D = TypeVar("D", bound=Model)


def ran(kind: type[D], level: Path, *given: str) -> D:
    """A command's document."""
    command = [sys.executable, "-m", "kerneltruth", *given, "--suite", f"kernelbench:{level}"]
    done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        raise SystemExit(done.returncode or 1)
    return parse(kind, json.loads(done.stdout))


def write_faults(problems: dict[str, Problem], folder: Path) -> None:
    """Write each problem's wrong models, in a folder for each fault."""
    for fault, (right, wrong) in FAULTS.items():
        (folder / fault).mkdir(parents=True)
        for p in problems.values():
            if right not in p.source:
                raise SystemExit(f"{p.name}: its source has no {right.strip()!r}")
            source = "import copy\n" + p.source.replace(right, wrong).replace(
                "class Model(", "class ModelNew("
            )
            name = f"level_{p.level}_problem_{p.number}_sample_0_kernel.py"
            (folder / fault / name).write_text(source, "utf-8")


def of_own(proof: TaskProof) -> str:
    """What the audit says of a problem's own model."""
    if proof.trouble is not None:
        return proof.trouble
    return "flagged" if proof.flagged else "holds" if proof.holds else "not judged"


def rows(
    problems: dict[str, Problem], audit: SuiteDocument, runs: dict[str, RunDocument]
) -> Iterator[list[str | int]]:
    """A row for each problem."""
    proofs = {t.task.partition("/")[2]: t for t in audit.tasks}
    verdicts = {
        fault: {c.task.partition("/")[2]: c.verdict for c in run.candidates}
        for fault, run in runs.items()
    }
    for name, p in problems.items():
        proof = proofs[name]
        cases, unsure = sum(proof.cases.values()), sum(proof.unrefereeable.values())
        yield [
            *(f"{name} {p.title}", of_own(proof), cases, unsure, f"{proof.seconds:.0f}"),
            *(verdicts[fault].get(name, "none") for fault in FAULTS),
        ]


def main() -> int:
    options = parser(__doc__.splitlines()[0])
    options.add_argument("checkout", type=Path)
    options.add_argument("--audit", type=Path)
    given = options.parse_args()
    device = device_of(given)
    level = given.checkout / "KernelBench" / "level4"
    problems = read_problems(level)
    if given.audit is None:
        audit = ran(SuiteDocument, level, "audit", "--device", device)
    else:
        audit = parse(SuiteDocument, json.loads(given.audit.read_text("utf-8")))
    with tempfile.TemporaryDirectory() as folder:
        write_faults(problems, Path(folder))
        runs = {
            fault: ran(
                RunDocument,
                level,
                *("run", "--device", device, "--stage", "exe", "--cases", "16"),
                *("--candidates", str(Path(folder) / fault), "--out", f"{folder}/run-{fault}"),
            )
            for fault in FAULTS
        }
    made = list(rows(problems, audit, runs))
    held = sum(row[1] == "holds" for row in made)
    caught = [sum(row[5 + i] == "fail" for row in made) for i in range(len(FAULTS))]
    lines = [
        f"transformers {version('transformers')}. Own models that hold: {held} of {len(made)}, in "
        f"{sum(int(row[2]) for row in made):,} cases and {audit.seconds:,.0f} s. Caught: "
        f"{caught[0]} of {len(made)} with tanh as the activation, {caught[1]} with logits times "
        "1.02.",
        "",
        *table(
            ("problem", "own model", "cases", "unrefereeable", "seconds", "tanh", "times 1.02"),
            made,
        ),
    ]
    title = "KernelBench's level 4, on small configurations of its models"
    publish("kernelbench_level4", title, facts(device), lines, folder=given.results)
    return int(held < len(made) or min(caught) < len(made))


if __name__ == "__main__":
    sys.exit(main())
