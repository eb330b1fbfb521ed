"""Read submissions to KernelBench: run directories and submission files, with its verdicts.

A run directory holds `level_L_problem_P_sample_S_kernel.py` files, and `eval_results.json` if
KernelBench has judged them; a submission is one JSON object with the sources by such names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kerneltruth.documents.lines import Labels, PublishedVerdict
from kerneltruth.suites.lines import json_object, read_text
from kerneltruth.suites.replies import code_of
from kerneltruth.suites.submission import MAX_SOURCE_BYTES, Broken, Read, Submission

_NAME = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)(?:_kernel)?(?:\.py)?$")
EVALUATED = "eval_results.json"


def names_problem(file: Path) -> str | None:
    """Return the problem of a run directory's file, from its name; None for other files."""
    match = _NAME.match(file.name)
    return problem_name(int(match[1]), int(match[2])) if match and file.suffix == ".py" else None


def is_run(folder: Path) -> bool:
    """Return whether a folder is a KernelBench run directory."""
    return any(_NAME.match(p.name) for p in folder.glob("level_*_problem_*_sample_*_kernel.py"))


def read_run(folder: Path, origin: str) -> Iterator[Read]:
    """Yield the submissions of a run directory, in the order of their numbers."""
    files = [(m, p) for p in folder.iterdir() if p.suffix == ".py" and (m := _NAME.match(p.name))]
    ordered = sorted(files, key=lambda item: tuple(int(n) for n in item[0].groups()))
    yield from read_files([path for _, path in ordered], folder, origin)


def read_files(paths: Iterable[Path], folder: Path, origin: str) -> Iterator[Read]:
    """Yield the submissions in some files of a run directory, with KernelBench's own verdicts."""
    judged: dict[str, object] | Broken = {}
    if (folder / EVALUATED).exists():
        judged = json_object(folder / EVALUATED, f"{origin}{EVALUATED}")
    if isinstance(judged, Broken):
        yield judged
        judged = {}
    for path in paths:
        where = f"{origin}{path.name}"
        source = read_text(path, where, limit=MAX_SOURCE_BYTES)
        if isinstance(source, Broken):
            yield source
            continue
        match = _NAME.match(path.name)
        assert match is not None
        level, problem, sample = (int(n) for n in match.groups())
        yield Submission(
            origin=where,
            name=problem_name(level, problem),
            source=code_of(source),
            labels=Labels(model=folder.absolute().name, sample=sample),
            peer=_verdict(judged, problem, sample),
        )


def read_submission(data: Mapping[str, object], origin: str) -> Iterator[Read]:
    """Yield the submissions in a submission file's object."""
    kernels = data.get("kernels")
    if not isinstance(kernels, dict):
        yield Broken(origin=origin, reason="no `kernels` object; see KernelBench's submission form")
        return
    about = data.get("metadata")
    model = about.get("model") if isinstance(about, dict) else None
    for name, source in kernels.items():
        where = f"{origin}:{name}"
        match = _NAME.match(name)
        if match is None or not isinstance(source, str):
            yield Broken(origin=where, reason="not `level_L_problem_P_sample_S` with a source")
            continue
        level, problem, sample = (int(n) for n in match.groups())
        labels = Labels(model=model if isinstance(model, str) else None, sample=sample)
        yield Submission(
            origin=where, name=problem_name(level, problem), source=code_of(source), labels=labels
        )


def problem_name(level: int, problem: int) -> str:
    """Return this project's name for a KernelBench problem."""
    return f"level{level}/{problem}"


def _verdict(judged: Mapping[str, object], problem: int, sample: int) -> PublishedVerdict | None:
    """Return KernelBench's own verdict; old versions hold one object, not a list of samples."""
    found = judged.get(str(problem))
    entries = found if isinstance(found, list) else [found]
    for entry in entries:
        if isinstance(entry, dict) and entry.get("sample_id", sample) == sample:
            runtime = entry.get("runtime")
            known = isinstance(runtime, int | float) and runtime >= 0
            return PublishedVerdict(
                check="kernelbench",
                compiled=_flag(entry.get("compiled")),
                correct=_flag(entry.get("correctness")),
                runtime_ms=runtime if known else None,
            )
    return None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
