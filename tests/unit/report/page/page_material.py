"""What a page is made of, made by hand."""

from kerneltruth.analysis.reading import study_of
from kerneltruth.analysis.results import Ratio, Result, TimedShape, timing
from kerneltruth.documents.analysis import AnalyzedRun
from kerneltruth.report.page.material import PageMaterial


def timed(speedup, width=0.01):
    ratio = Ratio(
        us=100.0 * speedup,
        ratio=speedup,
        low=speedup * (1 - width),
        high=speedup * (1 + width),
        outcome=None,
    )
    shape = TimedShape(
        case="N=1024 float32",
        dtype="float32",
        candidate_us=100.0,
        low=None,
        high=None,
        baselines={"eager": ratio},
        efficiency=0.5,
        bound_by="memory",
    )
    return timing([shape], noise_floor=0.02)


def result(task="kernelbenchx/relu", outcome="pass", *, speedup=None, called=True, **changes):
    about = {
        "run": 0,
        "key": f"{task}/{changes.get('method')}/{changes.get('sample')}/{changes.get('round')}",
        "task": task,
        "category": "Activation",
        "origin": f"{task}.py",
        "sha256": "0" * 64,
        "language": "triton",
        "method": "one_shot",
        "model": "m",
        "sample": 0,
        "round": None,
        "call": "pass" if called else outcome,
        "exe": outcome if called else "not_run",
        "perf": "not_run" if speedup is None else "timed",
        "verdict": outcome,
        "cases": 16,
        "failed": 0 if outcome == "pass" else 1,
        "timing": None if speedup is None else timed(speedup),
    }
    return Result(**{**about, **changes})


def run(path="runs/a", device="H100"):
    return AnalyzedRun(
        path=path,
        command="run",
        device=device,
        version="0.1.0",
        suite_hash="0" * 64,
        seed=0,
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:01:00+00:00",
        attempts=0,
    )


def material_of(*results, runs=None, findings=None, sources=None, notes=()):
    return PageMaterial(
        study=study_of(runs or [run()], results),
        findings=findings or {},
        sources=sources or {},
        notes=tuple(notes),
    )
