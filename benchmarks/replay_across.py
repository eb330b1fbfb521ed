"""Findings made on one machine, replayed there and on another.

    python benchmarks/replay_across.py make [--device auto] [--run DIR]
    python benchmarks/replay_across.py replay RUN_DIR ... [--device auto]

`make` judges the whole corpus, keeps the run without its input snapshots (a replay makes the
inputs again from their seed), and replays it on the spot. `replay` replays runs that were made
elsewhere. Reported are, of all findings, how many have identical input digests, an identical
verdict, and identical output bytes; the last is promised for the same device and versions only.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import machine

HERE = Path(__file__).resolve().parent
PROGRAM = (sys.executable, "-m", "kerneltruth")


def command(arguments: list[str]) -> dict[str, Any]:
    """The JSON document of a command; its complaints go to standard error."""
    ran = subprocess.run(
        [*PROGRAM, *arguments, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if not ran.stdout.strip():
        raise SystemExit(f"{arguments[0]} gave no result (exit code {ran.returncode})")
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def make(run: Path, device: str, only: list[str]) -> None:
    """Judge the corpus, and leave a run small enough to be carried."""
    if (run / "run.json").exists():
        # Made by this script, and to be made again: a finished run takes no new results.
        shutil.rmtree(run)
    names = [word for name in only for word in ("--only", name)]
    command(["audit", "--no-peer-checks", "--device", device, "--out", str(run), *names])
    shutil.rmtree(run / "inputs", ignore_errors=True)
    (run / "inputs").mkdir()
    (run / "inputs" / ".gitignore").write_text("*\n!.gitignore\n")


def replay(run: Path, device: str, workers: int) -> list[dict[str, Any]]:
    """Replay all findings of a run, by several processes side by side."""
    findings = sorted((run / "findings").glob("*.json"))
    shares = [findings[i::workers] for i in range(workers) if findings[i::workers]]

    def one(share: list[Path]) -> list[dict[str, Any]]:
        document = command(["replay", "--device", device, *map(str, share)])
        results: list[dict[str, Any]] = document["results"]
        return results

    with ThreadPoolExecutor(len(shares) or 1) as pool:
        return [result for results in pool.map(one, shares) for result in results]


def report(run: Path, results: list[dict[str, Any]]) -> tuple[list[str], bool]:
    made = json.loads((run / "run.json").read_text())["environment"]
    total = len(results)
    compared = [r for r in results if r["output"].startswith(("same", "differ"))]
    here = [r for r in compared if "another" not in r["output"]]
    differing = [r for r in results if r["inputs"] != "same" or r["verdict"] != r["recorded"]]
    rows = [
        ("input digests identical", _of(sum(r["inputs"] == "same" for r in results), total)),
        ("reference digests identical", _of(sum(r["reference"] == "same" for r in results), total)),
        ("verdict identical", _of(sum(r["verdict"] == r["recorded"] for r in results), total)),
        (
            "verdict and kind identical",
            _of(
                sum(
                    (r["verdict"], r["kind"]) == (r["recorded"], r["recorded_kind"])
                    for r in results
                ),
                total,
            ),
        ),
        (
            "output bytes identical, same device and versions",
            _of(sum(r["output"] == "same" for r in here), len(here)),
        ),
        (
            "output bytes identical, other device or versions",
            _of(
                sum(r["output"].startswith("same") for r in compared if r not in here),
                len(compared) - len(here),
            ),
        ),
    ]
    lines = [
        f"Made on {made['device_name'] or made['device']}, Python {made['python']}, "
        f"torch {made['torch']}, Triton {made['triton']}.",
        "",
        *machine.table(("findings", "of all"), rows),
    ]
    changed = [r for r in here if r["output"] != "same"]
    odd = {r["id"]: r for r in (*differing, *changed)}
    odd |= {r["id"]: r for r in results if r["kind"] != r["recorded_kind"]}
    lines += [""] if odd else []
    lines += [
        f"- {r['id']}: inputs {r['inputs']}, recorded {r['recorded']} {r['recorded_kind']}, now "
        f"{r['verdict']} {r['kind']}, output {r['output']}; {r['reason']}"
        for r in odd.values()
    ]
    nondeterministic = all(r["kind"] == "nondeterministic" for r in changed)
    return lines, bool(total) and not differing and nondeterministic


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}"


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("mode", nargs="?", choices=("make", "replay"), default="make")
    parser.add_argument("runs", nargs="*", type=Path, help="runs to replay")
    parser.add_argument("--run", type=Path, help="where `make` puts the run")
    parser.add_argument("--workers", type=int, help="processes; one per core if left out")
    parser.add_argument("--only", action="append", default=[], help="only this kernel")
    options = parser.parse_args()
    device = machine.device_of(options)
    about = machine.facts(device)
    runs = list(options.runs)
    if options.mode == "make":
        # Relative, since the run notes its command line and is read on other machines.
        runs = [options.run or Path(os.path.relpath(HERE / "findings" / machine.slug(about)))]
        make(runs[0], device, options.only)
    lines: list[str] = []
    good, data = True, {}
    for run in runs:
        results = replay(run, device, options.workers or len(os.sched_getaffinity(0)))
        said, reproduced = report(run, results)
        lines += [*said, ""]
        good = good and reproduced
        data[run.name] = [{k: v for k, v in r.items() if k != "finding"} for r in results]
    name = "replay-here" if options.mode == "make" else "replay-elsewhere"
    title = "Findings replayed"
    machine.publish(name, title, about, lines, folder=options.results, data={"runs": data})
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
