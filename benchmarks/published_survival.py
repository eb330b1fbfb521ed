"""How many of the published answers that a check certifies remain after each obligation.

    python benchmarks/published_survival.py judge ANSWERS --folder OUT [--suite kernelbenchx]
    python benchmarks/published_survival.py report --folder OUT [--name NAME]

ANSWERS is a folder of published predictions, one file for each model and method, named as
TritonBench names them: `output_MODEL.jsonl`, or `output_MODEL_rag.jsonl` with retrieval. `judge`
runs the exe stage with every peer's check. `report` labels each answer by its file, has
`kerneltruth analyze` count, and writes the survival curves: for each check, and for each check,
model and method.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine

SHOWN = ("published", "shapes", "values", "attributes", "dtypes", "memory", "repeatable", "kernel")
SMALLEST = 10


def judge(options: Any, device: str) -> dict[str, Any]:
    """One run over all files, as a user makes it."""
    return from_command(
        *("run", "--suite", options.suite, "--candidates", str(options.answers)),
        *("--stage", "exe", "--peer-checks", "--device", device, "--seed", str(options.seed)),
        *("--out", str(options.folder / "run"), "--json"),
    )


def from_command(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "kerneltruth", *words]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    if not ran.stdout:
        raise SystemExit(f"{words[0]} ended with exit code {ran.returncode}")
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def labels_of(origin: str) -> dict[str, str]:
    """Model and method, by the name of an answer's file."""
    name = origin.partition(".jsonl")[0].removeprefix("output_")
    model = name.removesuffix("_rag")
    return {"model": model, "method": "direct" if model == name else "retrieval"}


def labelled(folder: Path) -> Path:
    """The run with the labels that the format of the answers lacks; `run-rest` adds to it.

    A run that was ended before all right answers were timed goes on as `run-rest`, on those.
    """
    target = folder / "labelled"
    target.mkdir(exist_ok=True)
    (target / "run.json").write_text((folder / "run" / "run.json").read_text())
    with (target / "results.jsonl").open("w") as file:
        for part in ("run", "run-rest"):
            kept = folder / part / "results.jsonl"
            for line in map(json.loads, kept.read_text().splitlines() if kept.is_file() else ()):
                line["labels"] |= labels_of(line["origin"])
                file.write(json.dumps(line) + "\n")
    return target


def about_rest(folder: Path) -> str:
    """A sentence on answers that another run judged, to end the paragraph that counts them."""
    path = folder / "run-rest"
    if not path.is_dir():
        return ""
    count = len((path / "results.jsonl").read_text().splitlines())
    device = json.loads((path / "run.json").read_text())["environment"]["device_name"]
    return (
        f" {count} of them were not timed when the run was ended; they were judged on {device}, "
        "and have no times."
    )


def cells(curve: dict[str, Any]) -> Iterator[str]:
    """What remains after each obligation that is shown, and the share that remains in the end."""
    steps = {step["obligation"]: step for step in curve["steps"]}
    for name in SHOWN:
        yield span(*(str(steps[name][key]["numerator"]) for key in ("remain", "remain_most")))
    last = curve["steps"][-1]["remain"]
    yield f"{last['rate']:.0%} ({last['low']:.0%} to {last['high']:.0%})"


def span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def table(curves: list[dict[str, Any]], labels: tuple[str, ...]) -> list[str]:
    head = ("check", *labels, "certified", *SHOWN, "of all")
    rows = [(c["check"], *(c[x] for x in labels), c["certified"], *cells(c)) for c in curves]
    return list(machine.table(head, rows))


def places(rows: list[dict[str, Any]]) -> list[str]:
    """Where the kernels that a check certifies are wrong first: each counts once."""
    kinds = ("published", "core", "beyond", "unknown")
    counted = [(r["check"], r["certified"], *(r[k]["numerator"] for k in kinds)) for r in rows]
    table_rows = [(*row, row[1] - sum(row[2:])) for row in counted]
    return list(machine.table(("check", "certified", *kinds, "nowhere"), table_rows))


def report(options: Any) -> None:
    kept = json.loads((options.folder / "document.json").read_text())
    found = from_command(
        *("analyze", str(labelled(options.folder)), "--by", "model", "--by", "method", "--json"),
    )
    survival = found["survival"]
    run = kept["document"]
    # A run that was ended and went on does not say how long all of it took.
    took = f", in {run['seconds']:.0f} s" if "seconds" in run else ""
    lines = [
        f"{run['attempts']} answers judged with the peers' checks{took}, seed "
        f"{run['seed']}. Each distinct answer counts once. A column has how many of those that a "
        "check certifies remain after its obligation and those before it, in the obligations' "
        "order; where some were not tried, `a to b` has a without and b with them. `layouts`, "
        "`specials`, `empty`, `gradients` and `interface` lie between `dtypes` and `memory`. The "
        "last column is the share that remains after all, with a 95% interval clustered by task."
        f"{about_rest(options.folder)}",
        "",
        *table(survival["overall"], ()),
    ]
    lines += ["", "Where they are wrong, each counted at the first place of these:", ""]
    lines += places(found["illusion_places"])
    for part in survival["by"]:
        large = [curve for curve in part["rows"] if curve["certified"] >= SMALLEST]
        lines += ["", f"By {' and '.join(part['by'])}, where at least {SMALLEST} are certified:"]
        lines += ["", *table(large, tuple(part["by"]))]
    title = "Published answers that a check certifies, obligation by obligation"
    machine.publish(options.name, title, kept["machine"], lines, folder=options.results)


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("step", choices=("judge", "report"))
    parser.add_argument("answers", type=Path, nargs="?")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--suite", default="kernelbenchx")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--name", default="published_survival")
    options = parser.parse_args()
    if options.step == "report":
        report(options)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    device = machine.device_of(options)
    document = judge(options, device)
    about = machine.facts(device)
    kept = {"machine": about, "document": document}
    (options.folder / "document.json").write_text(json.dumps(kept, indent=1))
    print(f"{document['attempts']} answers, {document['attempts_per_hour']:,.0f} an hour")
    return 0


if __name__ == "__main__":
    sys.exit(main())
