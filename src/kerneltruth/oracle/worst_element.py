"""Tell a wrong value from a wrong size: try the worst element's inputs at the published sizes."""

from __future__ import annotations

import math

from msgspec.structs import replace

from kerneltruth.cases.materialize import Inputs
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import Failed
from kerneltruth.oracle.obligations import departures
from kerneltruth.tasks.model import OUT
from kerneltruth.tasks.spec import Task

# Published inputs of more elements are not written out.
MOST = 2**14


def everywhere(
    task: Task, published: Case, judgement: Judgement, simplest: Case, inputs: Inputs
) -> Case | None:
    """The published inputs with those of the worst element in every place.

    `inputs` are those of the judged case. If this fails too, no other size is to blame: a larger
    result has a rare value more often, and a smaller one hides less beside its largest element.
    None where more than the size departs, or where no element of each input belongs to the worst.
    """
    departing = [d.obligation for d in departures(task, simplest, published)]
    is_value = isinstance(judgement.verdict, Failed) and judgement.verdict.kind == "value"
    index = None if judgement.stats is None else judgement.stats.worst_index
    if departing != ["shapes"] or not is_value or index is None:
        return None
    given = {n: t for n, t in inputs.tensors.items() if t is not None and n != OUT}
    shape, *others = {t.shape for t in given.values()}
    fits = len(index) == len(shape) and all(i < n for i, n in zip(index, shape, strict=True))
    if others or not fits or any(t.is_complex() for t in given.values()):
        return None
    specs = {spec.name: spec for spec in task.tensors}
    sizes, settings = published.sizes, published.settings
    counts = {n: math.prod(task.shape(specs[n], sizes, settings)) for n in given}
    if sum(counts.values()) > MOST:
        return None
    literals = tuple((n, (float(t[index]),) * counts[n]) for n, t in given.items())
    return replace(published, seed=judgement.case.seed, literals=literals)
