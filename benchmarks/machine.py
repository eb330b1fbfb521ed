"""What every report says of the machine, and where reports go."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kerneltruth.engine.devices import choose_device
from kerneltruth.engine.run_directory import environment

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def parser(description: str) -> argparse.ArgumentParser:
    """A parser with the options that all scripts share."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--device", default="auto", help="auto, cpu or cuda[:N]")
    made.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    return made


def device_of(options: argparse.Namespace) -> str:
    """The device that the options choose: "cpu" or "cuda:N"."""
    return choose_device(options.device)


def facts(device: str) -> dict[str, Any]:
    """The machine and the versions that a figure depends on."""
    return {**environment(device), "cores": len(os.sched_getaffinity(0))}


def load() -> float:
    """How many processes wanted a core over the last five minutes: other work takes cores away."""
    return round(os.getloadavg()[1], 1)


def slug(about: dict[str, Any]) -> str:
    """A file name for the device: `cpu`, or the GPU's model such as `nvidia-h100-80gb-hbm3`."""
    name = re.search(r"\((.*)\)", about["device_name"] or "")
    if about["device"] == "cpu" or name is None:
        return str(about["device"]).replace(":", "-")
    return re.sub(r"[^a-z0-9]+", "-", name[1].lower()).strip("-")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return lines


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value).replace("|", "\\|")


def publish(
    name: str,
    title: str,
    about: dict[str, Any],
    lines: Sequence[str],
    *,
    folder: Path,
    data: Any = None,
) -> None:
    """Print the report, and write it (and its data) into the folder."""
    where = ", ".join(
        f"{label} {about[key]}"
        for key, label in (
            ("driver", "driver"),
            ("cuda", "CUDA"),
            ("python", "Python"),
            ("torch", "torch"),
            ("triton", "Triton"),
        )
        if about.get(key)
    )
    device = f"{about['device_name'] or about['device']}, {about['cores']} CPU cores"
    text = "\n".join([f"## {title}", "", f"{device}; {where}.", "", *lines, ""])
    print(text)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{name}-{slug(about)}"
    stem.with_name(stem.name + ".md").write_text(text)
    if data is not None:
        document = {"machine": about, **data}
        stem.with_name(stem.name + ".json").write_text(json.dumps(document, indent=1) + "\n")
