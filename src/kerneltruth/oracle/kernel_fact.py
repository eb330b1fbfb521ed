"""Which kernels compute a candidate's result: what the child counts, and a probe that confirms it.

The counts are a claim. The probe calls the candidate once more with its own kernels launched and
doing nothing: a result that is right even so is the work of others. The child keeps them from
doing anything, which a candidate may notice. Where a kernel is required, the judge therefore takes
the work out of Triton kernels in the source as well, and calls that in a child of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Sequence

from msgspec.structs import replace

from kerneltruth.documents.case import Case
from kerneltruth.documents.model import model_of
from kerneltruth.documents.records import KernelFact, KernelLaunchesRecord, ProfileEntry, Status
from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.allowance import OutOfTime
from kerneltruth.oracle.arguments import USUAL, Surroundings
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.obligations import departures
from kerneltruth.runner.candidate import Candidate, is_torch_only
from kerneltruth.runner.languages import NEEDS_A_GPU
from kerneltruth.runner.source_kernels import emptied
from kerneltruth.runner.source_state import may_keep_state
from kerneltruth.tasks.spec import Task

IDLE = Surroundings(idle=True)
# Uninitialized memory holds other values here; a result that is right with both is not right by
# accident.
IDLE_AGAIN = Surroundings(idle=True, small_poison=True)
# A result may equal what its memory held before, such as relu of an input without negative values.
CASES_ASKED = 4
NO_CALL = "no call returned"
NOT_RIGHT = "no case is right, so none can show whether its kernels are needed"
UNSEEN = "launches of kernels that a package brings are not seen here"
NOT_LAUNCHED = "no kernel of its own was launched in the right cases that were asked"
NOT_NEEDED = "the result stays right when its own kernels do nothing"


def kernel_fact(
    session: CandidateSession, right: Sequence[Expectation], published: Case, *, required: bool
) -> KernelFact | None:
    """Return which kernels did the work of the candidate's calls; None if no call returned.

    The candidate's cases have been judged; it was right in those given, of which the ones with the
    published attributes are asked if there are any.
    """
    if session.launches.work is None:
        return None
    work, case = session.launches.work
    seen = work.seen and not _may_bring_kernels(session.candidate)
    own = work.own / work.launches if seen and work.launches else None
    fact = KernelFact(
        own=own,
        library=None if own is None else 1 - own,
        own_launches=work.own if seen else None,
        launches=work.launches,
        runs=tuple(model_of(KernelLaunchesRecord, run) for run in work.runs),
        elements=work.elements,
        stored=work.stored,
        case=case.summary(),
        reason=None if seen else UNSEEN,
    )
    if not fact.own_launches:
        return fact
    plain = [e for e in right if not _departs_in_attributes(session.task, e.case, published)]
    fact, needing = _probed(session, fact, plain or right)
    if may_keep_state(session.candidate.source):
        # The child may keep state of calls whose kernels did nothing: use it no more.
        session.close()
    if required and needing is not None and _is_right_emptied(session, fact, needing):
        fact = replace(fact, probe="not_needed")
    return fact


def _departs_in_attributes(task: Task, case: Case, published: Case) -> bool:
    return any(d.obligation == "attributes" for d in departures(task, case, published))


def _may_bring_kernels(candidate: Candidate) -> bool:
    """Whether a source imports a package whose kernels may be launched unseen, such as CuTe's."""
    return candidate.language == "torch" and not is_torch_only(candidate)


def _probed(
    session: CandidateSession, fact: KernelFact, right: Sequence[Expectation]
) -> tuple[KernelFact, Expectation | None]:
    """Add whether right results stay right when own kernels do nothing, and one that does not."""
    tried = 0
    for expectation in right:
        needed = _is_needed(session, expectation)
        if needed:
            return replace(fact, probe="needed"), expectation
        tried += needed is False
        if tried == CASES_ASKED:
            break
    if tried:
        return replace(fact, probe="not_needed"), None
    return replace(fact, reason=NOT_LAUNCHED if right else NOT_RIGHT), None


def _is_needed(session: CandidateSession, expectation: Expectation) -> bool | None:
    """Whether a right result is wrong without own kernels; None where none was launched."""
    for around in (IDLE, IDLE_AGAIN):
        ruling, observation, _ = session.call(expectation, around=around)
        if observation.work is not None and not observation.work.own:
            return None
        if not isinstance(ruling.verdict, Passed):
            return True
    return False


def _is_right_emptied(
    session: CandidateSession, fact: KernelFact, expectation: Expectation
) -> bool:
    """Whether a right result stays right without what the source has in its Triton kernels.

    It says nothing of a candidate that launches other kernels as well.
    """
    source = emptied(session.candidate.source) if session.runner.device == "cpu" else None
    if source is None or not {run.name for run in fact.runs if run.own} <= source.kernels:
        return False
    digest = hashlib.sha256(source.text.encode("utf-8", "surrogatepass")).hexdigest()
    candidate = dataclasses.replace(session.candidate, source=source.text, sha256=digest)
    with CandidateSession(
        session.task, candidate, session.runner, session.cache, deadline_s=session.deadline_s
    ) as without:
        without.allowance = session.allowance
        with contextlib.suppress(OutOfTime):
            return all(
                isinstance(without.call(expectation, around=around)[0].verdict, Passed)
                for around in (USUAL, Surroundings(small_poison=True))
            )
    return False


def kernel_entry(fact: KernelFact | None, ended: str | None, *, required: bool) -> ProfileEntry:
    """What became of the obligation `kernel`.

    `ended` is why no case was judged, if none was.
    """
    status, reason = _status(fact, ended)
    return ProfileEntry(
        status=status,
        promised=required,
        decisive=required,
        cases=int(status == "held"),
        reason=reason,
    )


def _status(fact: KernelFact | None, ended: str | None) -> tuple[Status, str | None]:
    if fact is None:
        return "not_tried", ended or NO_CALL
    if fact.probe == "needed":
        return "held", None
    if fact.probe == "not_needed":
        return "broken", NOT_NEEDED
    if fact.own_launches == 0:
        return "broken", _library(fact)
    return "not_tried", fact.reason


def _library(fact: KernelFact) -> str:
    names = ", ".join(run.name for run in fact.runs[:3])
    more = ", ..." if len(fact.runs) > 3 else ""
    by = f"; PyTorch's operators did the work: {names}{more}" if names else ""
    return f"launches no kernel of its own{by}"


def launches_none(candidate: Candidate, fact: KernelFact | None) -> bool:
    """Whether a source that has kernels launches none of them, so that PyTorch does all work."""
    has_some = candidate.language in NEEDS_A_GPU
    return has_some and fact is not None and fact.own_launches == 0
