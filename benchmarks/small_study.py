"""The small study of `examples/study`, step by step: what each takes, and what comes out.

    python benchmarks/small_study.py [--device cuda] [--folder runs/study] [--part judge|tell]

Recorded replies of three methods are judged, and on a GPU timed; then analysed and put on a page.
The two parts can be done on two machines: `judge` leaves in the folder what `tell` needs.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import machine

ROOT = Path(__file__).resolve().parents[1]
STUDY = ROOT / "examples" / "study" / "study.sh"
METHODS = ("one_shot", "best_of_n", "refine")
# What a zygote serves, by whether it interprets.
ZYGOTES = {
    True: "candidates in the interpreter",
    False: "compilation for a GPU's target",
}
SIDES = ("eager", "compile", "control")
# Stands in for the command: the same, and its seconds in a file.
COMMAND = """#!/bin/sh
began=$(date +%s.%N)
{python} -m kerneltruth "$@"
code=$?
method=
for word in "$@"; do [ "$before" = --method ] && method=" $word"; before=$word; done
echo "$1$method=$(date +%s.%N)-$began" >> {log}
exit $code
"""


def study(folder: Path, part: str, device: str) -> tuple[dict[str, float], dict[str, float], str]:
    """Run a part of the study.

    Returns:
        The seconds of its commands, the processor's seconds by what used them, and what the last
        commands printed.
    """
    log = folder / f"{part}.seconds"
    log.unlink(missing_ok=True)
    command = folder / "kerneltruth"
    command.write_text(COMMAND.format(python=sys.executable, log=log))
    command.chmod(0o755)
    about = {**os.environ, "KERNELTRUTH": str(command)}
    if device == "cpu":
        about["CUDA_VISIBLE_DEVICES"] = ""
    words = ["sh", str(STUDY), str(folder), part]
    before = processor_s()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=about) as ran:
        reader = ThreadPoolExecutor(1).submit(ran.communicate)
        zygotes = watched(ran)
        printed, errors = (text.decode() for text in reader.result())
    if ran.returncode:
        raise SystemExit(f"{STUDY.name}: exit code {ran.returncode}: {errors[-2000:]}")
    took = {}
    for line in log.read_text().splitlines():
        name, _, times = line.partition("=")
        ended, _, began = times.partition("-")
        took[name] = float(ended) - float(began)
    used = {name: sum(s for served, s in zygotes if served == name) for name in ZYGOTES.values()}
    own = processor_s() - before - sum(used.values())
    return took, {"commands and judges": own, **used}, printed


def processor_s() -> float:
    """Processor seconds of all processes that this one has started and seen end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watched(ran: subprocess.Popen[bytes]) -> list[tuple[str, float]]:
    """Wait for the end: what each zygote that was begun serves, and took with its children."""
    found: dict[int, tuple[str, float]] = {}
    while ran.poll() is None:
        for pid in zygotes_below(ran.pid):
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                interprets = b"TRITON_INTERPRET=1" in Path(f"/proc/{pid}/environ").read_bytes()
                used = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
                found[pid] = ZYGOTES[interprets], used
        time.sleep(0.1)
    return list(found.values())


def zygotes_below(pid: int) -> Iterator[int]:
    """The zygotes among the descendants of a process, without what they forked."""
    with suppress(OSError):
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            if b"kerneltruth.runner.zygote" in Path(f"/proc/{child}/cmdline").read_bytes():
                yield child
            else:
                yield from zygotes_below(child)


def judge(folder: Path, device: str) -> None:
    """Generate and run; leaves the seconds in the folder."""
    took, used, _ = study(folder, "judge", device)
    about = machine.facts(device)
    steps = {"machine": about, "seconds": took, "processor": used, "load": machine.load()}
    (folder / "steps.json").write_text(json.dumps(steps, indent=1) + "\n")


def perf_rows(lines: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """By method and in all: how many were timed, and what their shapes were called."""
    rows = []
    for method in (*METHODS, "all"):
        perf = [
            line["stages"]["perf"]
            for line in lines
            if method in (line["labels"].get("method"), "all") and "perf" in line["stages"]
        ]
        said: dict[str, Counter[str]] = {side: Counter() for side in SIDES}
        for shape in (s for p in perf for s in p.get("shapes", ())):
            for side, against in shape["baselines"].items():
                said[side][against["outcome"]] += 1
        outcomes = Counter(p["outcome"] for p in perf)
        rows.append(
            (
                method,
                sum(outcomes.values()),
                outcomes["timed"],
                *(f"{said[s]['faster']}/{said[s]['tie']}/{said[s]['slower']}" for s in SIDES),
                ", ".join(f"{n} {o}" for o, n in sorted(outcomes.items()) if o != "timed"),
            )
        )
    return rows


def why_failed(lines: list[dict[str, Any]]) -> list[str]:
    """A line on each right answer that could not be timed, as often as it came."""
    verdicts = Counter(
        f"{line['task']}: {perf.get('detail', '')}"[:200]
        for line in lines
        if (perf := line["stages"].get("perf", {})).get("outcome") == "failed"
    )
    return [f"- {count} of {said}" for said, count in verdicts.items()]


def tell(folder: Path, results: Path) -> None:
    """Analyse, make the page, and publish what came out."""
    steps = json.loads((folder / "steps.json").read_text())
    took, telling, text = study(folder, "tell", "cpu")
    used = steps["processor"] | {"analysis and page": sum(telling.values())}
    used["all"] = sum(used.values())
    page = folder / "report.html"
    lines = [json.loads(x) for x in (folder / "run" / "results.jsonl").read_text().splitlines()]
    judged, shown = sum(steps["seconds"].values()), sum(took.values())
    report = [
        f"{len(lines)} attempts. Generated and judged in {judged / 60:.1f} minutes, analysed and "
        f"put on a page of {os.path.getsize(page) / 1e6:.1f} MB in {shown:.0f} s"
        + (f" (on {os.cpu_count()} CPU cores)." if steps["machine"]["device"] != "cpu" else "."),
        f"The load, other work's processes among them, was {steps['load']} while it was judged and "
        f"{machine.load()} while it was analysed.",
        "",
        *machine.table(("step", "seconds"), [(*s,) for s in (steps["seconds"] | took).items()]),
        "",
        *machine.table(("what uses the processors", "their seconds"), used.items()),
    ]
    rows = perf_rows(lines)
    if any(row[2] for row in rows):
        report += [
            "",
            "Shapes called faster / tie / slower:",
            "",
            *machine.table(
                ("method", "perf stages", "timed", *(f"against {s}" for s in SIDES), "others"),
                rows,
            ),
        ]
        report += ["", *why_failed(lines)]
    report += ["", "```", *text.replace(str(folder), "runs/study").rstrip().splitlines(), "```"]
    machine.publish(
        "small_study",
        "The small study",
        steps["machine"],
        report,
        folder=results,
        data={"steps": steps["seconds"] | took, "processor": used},
    )


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "study")
    parser.add_argument("--part", choices=("judge", "tell", "all"), default="all")
    options = parser.parse_args()
    if options.part != "tell":
        options.folder.mkdir(parents=True, exist_ok=True)
        judge(options.folder.resolve(), machine.device_of(options))
    if options.part != "judge":
        tell(options.folder.resolve(), options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
