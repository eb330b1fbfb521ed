"""`compare`: which verdicts differ between runs, and how far speedups move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kerneltruth.analysis.alignment import aligned
from kerneltruth.analysis.beside import BECAME
from kerneltruth.analysis.portability import ratios_by_shape
from kerneltruth.analysis.reading import Study, read_study
from kerneltruth.analysis.results import PASSED, Result
from kerneltruth.analysis.selection import (
    ALL,
    Selection,
    failed_obligations,
    obligation_named,
)
from kerneltruth.analysis.speeds import baselines_of
from kerneltruth.clock.statistics.portability import portability
from kerneltruth.documents.runs import (
    ChangedObligation,
    CompareDocument,
    ComparedRun,
    ComparedSpeed,
    DifferingKernel,
    EditedKernel,
    MissingKernel,
)
from kerneltruth.errors import UserError


def compare_runs(paths: Sequence[Path], only: Selection = ALL) -> CompareDocument:
    """Make the document of `compare --json`.

    Kernels count that break or refuse the obligation of `only` in some run. Those that have no
    kernel of their own in some run are torch-only.

    Raises:
        UserError: no such obligation, fewer than two runs, or one that cannot be read.
    """
    if len(paths) < 2:
        raise UserError(f"compare takes two or more runs, got {len(paths)}; name another run")
    studies = [read_study([path]) for path in paths]
    runs = _selected(aligned([{r.key: r for r in study.attempts} for study in studies]), only)
    names = sorted({name for known in runs for name in known})
    differing: list[DifferingKernel] = []
    missing: list[MissingKernel] = []
    same = same_kind = 0
    for name in names:
        absent = [str(p) for p, known in zip(paths, runs, strict=True) if name not in known]
        if absent:
            missing.append(MissingKernel(name=name, absent=tuple(absent)))
            continue
        said = [known[name].verdict_in_words for known in runs]
        same_kind += len(set(said)) == 1
        if len({known[name].verdict for known in runs}) == 1:
            same += 1
        else:
            differing.append(DifferingKernel(name=name, verdicts=tuple(said)))
    return CompareDocument(
        runs=tuple(map(_about, studies)),
        kernels=len(names),
        same=same,
        same_kind=same_kind,
        differing=tuple(differing),
        missing=tuple(missing),
        other_source=tuple(name for name in names if _has_other_source(name, runs)),
        edited=tuple(_edited(runs)),
        torch_only=tuple(n for n in names if any(n in k and k[n].torch_only for k in runs)),
        speed=_speed(runs),
        obligations=tuple(_changed(runs)),
        no_profile=sum(any(not r.has_profile for r in found) for _, found in _shared(runs)),
    )


def _selected(runs: Sequence[dict[str, Result]], only: Selection) -> list[dict[str, Result]]:
    """Return the kernels that count, of each run."""
    named = None if only.obligation is None else obligation_named(only.obligation)
    every = [item for known in runs for item in known.items()]
    left = {n for n, r in every if named is None or named in failed_obligations(r)}
    if only.without_torch_only:
        left -= {n for n, r in every if r.torch_only}
    return [{n: r for n, r in known.items() if n in left} for known in runs]


def _shared(runs: Sequence[dict[str, Result]]) -> list[tuple[str, list[Result]]]:
    names = sorted(set(runs[0]).intersection(*runs[1:]))
    return [(name, [known[name] for known in runs]) for name in names]


def _changed(runs: Sequence[dict[str, Result]]) -> Iterator[ChangedObligation]:
    """Yield each obligation that ends in several ways, of kernels with a profile in each run."""
    for name, found in _shared(runs):
        if not all(r.has_profile for r in found):
            continue
        for obligation in dict.fromkeys(key for r in found for key in r.profile):
            ends = [r.profile.get(obligation) for r in found]
            statuses = tuple(None if end is None else end.status for end in ends)
            if len(set(statuses)) > 1:
                yield ChangedObligation(name=name, obligation=obligation, statuses=statuses)


def _about(study: Study) -> ComparedRun:
    run = study.runs[0]
    contracts = tuple(sorted({r.contract for r in study.attempts if r.contract}))
    return ComparedRun(path=run.path, device=run.device, attempts=run.attempts, contracts=contracts)


def _has_other_source(name: str, runs: Sequence[dict[str, Result]]) -> bool:
    return len({known[name].sha256 for known in runs if name in known}) > 1


def _edited(runs: Sequence[dict[str, Result]]) -> Iterator[EditedKernel]:
    """Yield each kernel of all runs whose source is not the same in all of them."""
    for name, found in _shared(runs):
        if not _has_other_source(name, runs):
            continue
        first, last = (r.verdict == PASSED for r in (found[0], found[-1]))
        yield EditedKernel(
            name=name,
            files=tuple(r.origin for r in found),
            verdicts=tuple(r.verdict_in_words for r in found),
            became=BECAME[first, last],
        )


def _speed(runs: Sequence[dict[str, Result]]) -> dict[str, ComparedSpeed]:
    """Collect speedups by baseline, of right kernels with the same source in each run."""
    comparable = [
        {n: r for n, r in known.items() if r.correct and not _has_other_source(n, runs)}
        for known in runs
    ]
    found = {}
    for baseline in baselines_of([r for known in comparable for r in known.values()]):
        found[baseline] = portability(
            [{n: ratios_by_shape(r, baseline) for n, r in known.items()} for known in comparable]
        )
    return found
