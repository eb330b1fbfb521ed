"""A finding read from its file, with its candidate and bounds; one that is damaged is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from kerneltruth.cases.layouts import LAYOUTS
from kerneltruth.cases.published import published_case
from kerneltruth.cases.values import RECIPES
from kerneltruth.documents.case import Case
from kerneltruth.documents.stored import Finding
from kerneltruth.engine.devices import TARGETS
from kerneltruth.engine.policy import choose_policy
from kerneltruth.errors import UserError
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.runs.findings import load_finding
from kerneltruth.runs.parts import load_source
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Task

# No strategy comes near these; a damaged size beyond them would fill the memory, or take hours.
MOST_ELEMENTS = 2**26
MOST_WORK = 2**34


def finding_at(path: Path) -> Finding:
    """Return the finding in a file, if its task can have its case.

    Raises:
        UserError: it is damaged, or of an unknown task.
    """
    finding = load_finding(path)
    refuse_unfit(path, find(finding.task), finding.case)
    return finding


def candidate_of(path: Path, finding: Finding) -> Candidate:
    """Return the finding's candidate.

    Raises:
        UserError: the source is not there, or is not the one that was judged.
    """
    source = load_source(path, finding.candidate.sha256)
    task = find(finding.task)
    return read_candidate(
        source,
        finding.candidate.path,
        task_names=(task.name,),
        task=task.name,
        entry=finding.candidate.entry or task.entry,
    )


def targets_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return what to compile for: the default target, and those that refused kernels."""
    refused = {getattr(finding.verdict, "target", None) for finding in findings}
    return tuple(dict.fromkeys(("sm_90", *(t for t in TARGETS if t in refused))))


def cache_for(finding: Finding) -> ExpectationCache:
    """Expectations under the policy that the finding was made with."""
    return ExpectationCache(choose_policy(finding.bounds, tf32=finding.tf32))


def refuse_unfit(path: Path, task: Task, case: Case) -> None:
    """Refuse a case that the task cannot have.

    Raises:
        UserError: names the file and what does not fit.
    """
    problem = _settings(task, case) or _shapes(task, case) or _values(task, case)
    if problem:
        raise UserError(
            f"{path}: its case does not fit {task.signature}: {problem}; restore the file, "
            "or judge the kernel again"
        )


def _settings(task: Task, case: Case) -> str | None:
    if tuple(case.sizes) != tuple(d.symbol for d in task.dims):
        return f"dims {', '.join(case.sizes) or 'missing'}"
    kinds = {a.name: {type(v) for v in a.values} for a in task.attributes}
    for name, value in case.attributes:
        if type(value) not in kinds.get(name, set()):
            return f"attribute {name}={value!r:.40}"
    if case.dtype not in (*task.dtypes, *task.extended_dtypes):
        return f"dtype {case.dtype!r:.40}"
    if case.recipe not in RECIPES:
        return f"recipe {case.recipe!r:.40}"
    return None if case.layout in LAYOUTS else f"layout {case.layout!r:.40}"


def _shapes(task: Task, case: Case) -> str | None:
    settings = {a.name: a.default for a in task.attributes} | case.settings
    try:
        if not task.allows(case.sizes, settings):
            return f"sizes {case.sizes} with {case.settings}"
        count = _elements(task, case)
    except (ArithmeticError, TypeError, ValueError, LookupError) as error:
        return f"sizes {case.sizes} with {case.settings} ({error})"
    # The benchmark's own inputs may be larger than those of any other case.
    own = published_case(task, seed=case.seed, device="cuda")
    most = max(MOST_ELEMENTS, _elements(task, own))
    if count > most:
        return f"{count} elements; at most {most} are replayed"
    most = max(MOST_WORK, _work(own))
    return f"sizes {case.sizes}, a product over {most}" if _work(case) > most else None


def _elements(task: Task, case: Case) -> int:
    """The elements of the case's largest tensor."""
    settings = {a.name: a.default for a in task.attributes} | case.settings
    shapes = (task.shape(tensor, case.sizes, settings) for tensor in task.tensors)
    return max(map(math.prod, shapes), default=0)


def _work(case: Case) -> int:
    """The product of the case's sizes, which bounds what a product of its tensors takes."""
    return math.prod(n for n in case.sizes.values() if n)


def _values(task: Task, case: Case) -> str | None:
    settings = {a.name: a.default for a in task.attributes} | case.settings
    specs = {t.name: t for t in task.tensors}
    for name in case.absent:
        if name not in specs or not specs[name].may_be_absent:
            return f"{name!r:.40} cannot be left out"
    for name, elements in case.literals:
        if name not in specs:
            return f"values of {name!r:.40}"
        count = math.prod(task.shape(specs[name], case.sizes, settings))
        if len(elements) != count:
            return f"{len(elements)} values of {name}; expected {count}"
    return None
