"""What a profile of obligations costs: seconds of a judgement here and in another checkout.

    git worktree add ../before cfe164f^
    python benchmarks/profile_cost.py --against ../before [--device cpu|cuda:0] [--rounds 3]
        [--candidates PATH --suite SUITE] [--cases 16] [--every 1] [--no-explain]

`cfe164f` is the commit that brought profiles: before it, judging ended at the first failing case.
The candidates are the corpus, or the submissions at PATH. A process of either checkout judges each
of them in turn, which begins alternates, and the first round, which makes what is expected, does
not count. A source differs from round to round, so each judgement compiles from cold. Failures are
explained as `run` does; `--no-explain` leaves that out. `--every N` takes each Nth candidate.
Seconds are those of processors on a CPU, and those of a clock on a GPU; see the worker.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import machine
import numpy as np

from kerneltruth.analysis.intervals import influence, standard_error, student
from kerneltruth.corpus import ENTRIES, source
from kerneltruth.documents.lines import Labels
from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.suites.entries import Entry, candidate_of, match_tasks
from kerneltruth.suites.reading import read_submissions
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.registry import accepted_by

ROOT = machine.HERE.parent
WORKER = machine.HERE / "profile_cost_worker.py"
# How much longer than before a judgement may take, by how it ends.
LIMITS = {"pass": 1.05, "fail": 2.0}
WORST = 10
STATES = ("before", "here")


@dataclass(frozen=True, kw_only=True)
class CandidateToJudge:
    """A candidate to be judged."""

    name: str
    task: str
    source: str
    language: str
    entry: str

    @classmethod
    def of(cls, name: str, task: str, candidate: Candidate) -> CandidateToJudge:
        """What a worker needs of a candidate."""
        return cls(
            name=name,
            task=task,
            source=candidate.source,
            language=candidate.language,
            entry=candidate.entry,
        )


@dataclass
class Measured:
    """Seconds of a candidate's judgements in one state, round by round."""

    seconds: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)
    verdict: str = ""
    cases: int = 0

    @property
    def typical(self) -> float:
        """The median."""
        return median(self.seconds)

    @property
    def ends(self) -> str:
        """The row that it counts in."""
        return "pass" if self.verdict == "Passed" else "fail"


class Worker:
    """A process that judges with one checkout."""

    def __init__(self, checkout: Path, device: str) -> None:
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), device],
            env={**os.environ, "PYTHONPATH": str(checkout.resolve() / "src"), **hidden},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def judge(
        self, one: CandidateToJudge, number: int, options: argparse.Namespace
    ) -> dict[str, Any]:
        """Judge a candidate: seconds, verdict and cases."""
        request = {"round": number, "cases": options.cases, "explain": not options.no_explain}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(one) | request) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply:
            raise SystemExit(f"a worker ended with exit code {self._process.wait()}")
        found: dict[str, Any] = json.loads(reply)
        return found

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def of_corpus() -> Iterator[CandidateToJudge]:
    """Every control and every bug."""
    for entry in ENTRIES:
        candidate = read_candidate(
            source(entry), f"{entry.name}.py", task_names=tuple(TASKS), task=entry.task
        )
        yield CandidateToJudge.of(entry.name, entry.task, candidate)


def of_submissions(path: Path, suite: str) -> Iterator[CandidateToJudge]:
    """Each distinct submission that has an entry."""
    seen = set()
    for item in match_tasks(read_submissions(path), accepted_by(suite), Labels()):
        if not isinstance(item, Entry) or item.key in seen:
            continue
        seen.add(item.key)
        try:
            yield CandidateToJudge.of(item.key, item.task.key, candidate_of(item))
        except UserError:
            continue


def measured(
    requests: Sequence[CandidateToJudge], workers: dict[str, Worker], options: argparse.Namespace
) -> list[dict[str, Measured]]:
    """The judgements of each candidate, by state."""
    found = [{state: Measured() for state in workers} for _ in requests]
    for number in range(options.rounds + 1):
        for turn, (one, states) in enumerate(zip(requests, found, strict=True)):
            for state in list(workers)[:: 1 if (turn + number) % 2 else -1]:
                reply = workers[state].judge(one, number, options)
                states[state].verdict, states[state].cases = reply["verdict"], reply["cases"]
                if number:
                    states[state].seconds.append(reply["seconds"])
                    states[state].clock.append(reply["clock"])
        print(f"round {number} of {options.rounds} is done", file=sys.stderr)
    return found


def ratio_of_sums(above: np.ndarray, below: np.ndarray) -> tuple[float | None, str | None]:
    """The ratio, and its interval over the kernels, each paired with itself."""
    if not len(below):
        return None, None
    ratio = float(above.sum() / below.sum())
    if len(below) == 1:
        return ratio, None
    half = student(len(below) - 1) * standard_error(influence(above, below))
    return ratio, f"{ratio - half:.3f} to {ratio + half:.3f}"


def compared(found: Sequence[dict[str, Measured]], ends: str) -> tuple[list[Any], float | None]:
    """One row of the kernels that end so in both states, and their ratio of sums."""
    both = [s for s in found if s["here"].ends == s["before"].ends == ends]
    seconds = {state: np.array([s[state].typical for s in both]) for state in STATES}
    sums = [float(seconds[state].sum()) for state in STATES]
    cases = [sum(s[state].cases for s in both) for state in STATES]
    ratio, interval = ratio_of_sums(seconds["here"], seconds["before"])
    shown = None if ratio is None else f"{ratio:.3f}"
    clock = [sum(median(s[state].clock) for s in both) for state in STATES]
    by_clock = f"{clock[1] / clock[0]:.3f}" if both else None
    row = [ends, len(both), *sums, *cases, shown, interval, f"{LIMITS[ends]:g}", by_clock]
    return row, ratio


def report_of(
    requests: Sequence[CandidateToJudge], found: Sequence[dict[str, Measured]]
) -> tuple[list[str], dict[str, float | None]]:
    """The table of both states, what was judged otherwise, and what grew most."""
    rows = {ends: compared(found, ends) for ends in LIMITS}
    head = ("verdict", "kernels", "before, s", "here, s", "cases before", "cases here")
    ratios = ("here / before", "95% interval", "at most", "by a clock")
    lines = machine.table((*head, *ratios), [row for row, _ in rows.values()])
    paired = list(zip(requests, found, strict=True))
    otherwise = [a.name for a, s in paired if s["here"].ends != s["before"].ends]
    lines += ["", f"Judged otherwise, and in no row: {len(otherwise)} {' '.join(otherwise)}", ""]
    paired.sort(key=lambda pair: pair[1]["before"].typical - pair[1]["here"].typical)
    worst = [(a.name, *(1e3 * s[state].typical for state in STATES)) for a, s in paired]
    lines += ["Seconds grew most for:", ""]
    lines += machine.table(("kernel", "before, ms", "here, ms"), worst[:WORST])
    return lines, {ends: value for ends, (_, value) in rows.items()}


def busy_of(load: float) -> str:
    """How busy the machine was, the workers included, which take turns."""
    return f"At the end {load:.1f} processes wanted the machine's {os.cpu_count()} processors."


def alone(requests: Sequence[CandidateToJudge], found: Sequence[dict[str, Measured]]) -> list[str]:
    """The judgements of this state, with nothing beside them."""
    rows = [
        (one.name, states["here"].verdict, states["here"].cases, 1e3 * states["here"].typical)
        for one, states in zip(requests, found, strict=True)
    ]
    return machine.table(("kernel", "verdict", "cases", "ms"), rows)


def options_of() -> argparse.Namespace:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="a checkout of the other state of the code")
    parser.add_argument("--candidates", type=Path, help="submissions; without it, the corpus")
    parser.add_argument("--suite", default="core", help="the suite of the submissions' tasks")
    parser.add_argument("--cases", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=int, default=1, help="judge each Nth candidate alone")
    parser.add_argument("--no-explain", action="store_true", help="leave failures unexplained")
    return parser.parse_args()


def main() -> int:
    options = options_of()
    device = machine.device_of(options)
    all_asked = (
        of_submissions(options.candidates, options.suite) if options.candidates else of_corpus()
    )
    requests = list(all_asked)[:: options.every]
    checkouts = {"here": ROOT} | ({"before": options.against} if options.against else {})
    workers = {state: Worker(path, device) for state, path in checkouts.items()}
    found = measured(requests, workers, options)
    load = os.getloadavg()[1]
    for worker in workers.values():
        worker.close()
    about = (
        f"{len(requests)} kernels, {options.cases} cases each, median of {options.rounds} rounds, "
    )
    about += f"failures {'un' if options.no_explain else ''}explained. "
    if device == "cpu":
        about += "Seconds are those of processors, of the judge and its children. "
    about += busy_of(load)
    lines, ratios = report_of(requests, found) if options.against else (alone(requests, found), {})
    title = "What a profile of obligations costs"
    facts = machine.facts(device)
    machine.publish("profile_cost", title, facts, [about, "", *lines], folder=options.results)
    return int(any(value is not None and value > LIMITS[e] for e, value in ratios.items()))


if __name__ == "__main__":
    sys.exit(main())
