"""Results made by hand: one line each."""

from kerneltruth.analysis.reading import study_of
from kerneltruth.analysis.results import Ratio, Result, TimedShape, timing
from kerneltruth.documents.analysis import AnalyzedRun
from kerneltruth.documents.records import DtypeCount


def result(task="relu", outcome="pass", **changes):
    """A result whose candidate ran and ended so; `call:X` ended so before it returned."""
    before, _, word = outcome.rpartition(":")
    stages = {"call": word, "exe": "not_run"} if before else {"call": "pass", "exe": word}
    number = changes.pop("number", 0)
    about = {
        "run": 0,
        "key": f"{task}-{changes.get('method')}-{number}",
        "task": task,
        "category": "Math",
        "origin": f"{task}.py",
        "sha256": "0" * 64,
        "language": "triton",
        "method": "one_shot",
        "model": None,
        "sample": None,
        "round": None,
        "perf": "timed" if changes.get("timing") else "not_run",
        "verdict": word,
        **stages,
    }
    return Result(**{**about, **changes})


def counted(**failed):
    """Counts by dtype: this many of ten cases failed."""
    return {d: DtypeCount(cases=10, returned=10, failed=n) for d, n in failed.items()}


def ratio(value, width=0.0, outcome=None):
    """A ratio whose interval is that wide to either side, relatively."""
    low, high = (value / (1 + width), value * (1 + width)) if width else (None, None)
    return Ratio(us=100.0 * value, ratio=value, low=low, high=high, outcome=outcome)


def timed(*eager, noise_floor=0.0, width=0.0, dtype="float32", **others):
    """Timings on shapes with these ratios to eager, and to other baselines by name."""
    shapes = []
    for number, value in enumerate(eager):
        baselines = {"eager": ratio(value, width)}
        baselines |= {name: ratio(values[number], width) for name, values in others.items()}
        shapes.append(
            TimedShape(
                case=f"N={number}",
                dtype=dtype,
                candidate_us=100.0,
                low=None,
                high=None,
                baselines=baselines,
            )
        )
    return timing(shapes, noise_floor=noise_floor)


def run_info(device="cpu", **changes):
    about = {
        "path": "run",
        "command": "run",
        "device": device,
        "version": "0.1.0",
        "suite_hash": "0" * 64,
        "seed": 0,
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:01:00+00:00",
        "attempts": 0,
    }
    return AnalyzedRun(**{**about, **changes})


def study(*results, devices=("cpu",)):
    return study_of([run_info(d) for d in devices], results)
