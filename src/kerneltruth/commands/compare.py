"""`compare`: runs of the same thing on several devices: the same verdicts, or which differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kerneltruth.errors import UserError
from kerneltruth.runs.store import RunStore


def compare_runs(paths: Sequence[Path]) -> dict[str, Any]:
    """The document of `compare --json`."""
    if len(paths) < 2:
        raise UserError(f"compare takes two or more runs, got {len(paths)}; name another run")
    runs = [RunStore.open(path) for path in paths]
    verdicts = [{line["name"]: _verdict(line) for line in run.results()} for run in runs]
    names = sorted({name for known in verdicts for name in known})
    differing: list[dict[str, Any]] = []
    missing: list[dict[str, Any]] = []
    same = 0
    for name in names:
        absent = [str(p) for p, known in zip(paths, verdicts, strict=True) if name not in known]
        if absent:
            missing.append({"name": name, "absent": absent})
            continue
        said = [known[name] for known in verdicts]
        if len({v.partition(" ")[0] for v in said}) == 1:
            same += 1
        else:
            differing.append({"name": name, "verdicts": said})
    return {
        "schema": 1,
        "runs": [
            {
                "path": str(path),
                "device": run.manifest.environment.get("device_name")
                or run.manifest.environment.get("device"),
                "attempts": len(known),
            }
            for path, run, known in zip(paths, runs, verdicts, strict=True)
        ],
        "kernels": len(names),
        "same": same,
        "same_kind": sum(len({known.get(name) for known in verdicts}) == 1 for name in names),
        "differing": differing,
        "missing": missing,
    }


def _verdict(line: dict[str, Any]) -> str:
    verdict = line["attempt"]["verdict"]
    return f"{verdict['verdict']} {verdict.get('kind') or ''}".strip()
