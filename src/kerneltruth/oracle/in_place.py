"""Does the output follow inputs that change in their own memory?

A right case is called once more. Before, in the same child and on the same tensors, the candidate
is called on other contents: all inputs drawn anew, and the case's own with one element changed. A
cache by the identity, the address or some values of inputs then returns an earlier result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice

import torch
from msgspec import structs

from kerneltruth.cases.materialize import Inputs
from kerneltruth.cases.philox import derive
from kerneltruth.documents.verdict import Failed, Hack, Passed, Verdict, is_bad
from kerneltruth.oracle.arguments import Surroundings
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.judge import Ruling
from kerneltruth.oracle.probes import SYMPTOMS
from kerneltruth.runner.observation import Observation, TensorResult
from kerneltruth.tasks.spec import Task

# How often one element changes: each costs a call.
_ONE_BY_ONE = 2
# A smaller result may equal another one by chance.
_LEAST_BYTES = 4
# The one of these elements that changes most is changed: that shows in most results.
_LOOKED_AT = 8
AS_BEFORE = (
    "it returns, bit for bit, the result of what they held before, and is right in fresh memory"
)
STALE = "does not follow its inputs when they change in the same memory"


def follows(session: CandidateSession, expectation: Expectation) -> bool | Expectation | None:
    """Whether a further draw of a right case is right after calls on other contents of its memory.

    Then other values of the same shapes are right as well, in the child that ran the case: one draw
    shows both. What is wrong in a fresh child, too, is returned, to be judged like any other. None
    where the probe says nothing. Where this is false, the child has ended, and
    `repeated_calls.kept_from_before` and `not_following` tell why, by draws of their own.
    """
    drawn = _drawn(session, expectation, 3)
    earlier = [] if drawn is None else _earlier(drawn, expectation.inputs, session.task)
    if drawn is None or not earlier:
        return None
    if isinstance(session.call(drawn, earlier=earlier)[0].verdict, Passed):
        return True
    session.close()
    alone = session.call(drawn)[0].verdict
    wrong = is_bad(alone) and session.objection(drawn, alone) is None
    session.close()
    return drawn if wrong else False


def not_following(
    session: CandidateSession, expectation: Expectation
) -> Failed | Expectation | None:
    """The verdict on a right case, a further draw of which shows what does not follow changes.

    If a fresh child gets that draw wrong too, nothing was kept; it is returned, to be judged like
    any other. Whatever else ends these calls, such as an error on odd inputs, tells nothing.
    """
    # The draw before is `kept_from_before`'s; values that were called are in caches already.
    drawn = _drawn(session, expectation, 2)
    earlier = [] if drawn is None else _earlier(drawn, expectation.inputs, session.task)
    if drawn is None or not earlier:
        return None
    stale, _, _ = session.call(drawn, earlier=earlier)
    if not _is_wrong(stale) or _may_keep(session, drawn, stale.verdict):
        return None
    session.close()
    if is_bad(session.call(drawn)[0].verdict):
        return drawn
    whole, *others = earlier
    # One element tells a kept result from a kept operand only if whole inputs are followed.
    shown_by = [whole] if _is_stale(session, drawn, [whole]) else others
    if any(_is_earlier_result(session, drawn, inputs) for inputs in shown_by):
        return Hack(kind="kept_result", detail=f"{STALE}: {AS_BEFORE}")
    # A transformed operand may be kept as long as its tensor's version says that it is the same.
    session.close()
    if not _is_stale(session, drawn, earlier, in_sight=True):
        return None
    return Failed(kind="kept_state", detail=f"{STALE}; in fresh memory it is right")


def _may_keep(session: CandidateSession, drawn: Expectation, verdict: Verdict) -> bool:
    """Whether it is a model, and its task's own one keeps state between calls as well."""
    around = Surroundings(reused=True)
    return session.is_model and session.objection(drawn, verdict, around=around) is not None


def _drawn(session: CandidateSession, expectation: Expectation, number: int) -> Expectation | None:
    """A further draw of a case; None where the probe says nothing or costs much."""
    task, case, given = session.task, expectation.case, expectation.inputs
    # Only eager checks tell whether a task's own model keeps state.
    unknown = session.is_model and session.eager_checks is None
    writes = task.writable(given.scalars, given.tensors)
    gradients = task.wants_gradients(case.settings)
    if task.random or writes or unknown or gradients or expectation.is_large:
        return None
    drawn = session.cache.get(task, structs.replace(case, seed=case.seed ^ number))
    return drawn if drawn.invalid is None and drawn.unrefereeable is None else None


def _earlier(drawn: Expectation, before: Inputs, task: Task) -> list[Inputs]:
    """The inputs of the calls before; none where no input changes."""
    given = drawn.inputs
    # A model has copies of its weights.
    names = [spec.name for spec in task.tensors if spec.kind != "weight"]
    other = {
        name: before.tensors[name]
        for name in names
        if _may_replace(given.tensors[name], before.tensors[name])
    }
    if not other:
        return []
    whole = replace(given, tensors=given.tensors | other)
    # A dim of stride 0 holds one value, so no element changes alone.
    if drawn.case.layout == "expanded":
        return [whole]
    return [whole, *_with_one_element(given, other, drawn.case.seed)]


def _may_replace(own: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if own is None or other is None or own.shape != other.shape or own.dtype != other.dtype:
        return False
    return not torch.equal(own, other)


def _with_one_element(
    given: Inputs, drawn: Mapping[str, torch.Tensor | None], seed: int
) -> Iterator[Inputs]:
    """The case's inputs with one element of another draw, each time elsewhere.

    Only of real numbers: other indices may be no indices.
    """
    floats = [name for name, t in drawn.items() if t is not None and t.is_floating_point()]
    for turn, name in enumerate(islice(cycle(floats), _ONE_BY_ONE)):
        own, other = given.tensors[name], drawn[name]
        assert own is not None
        assert other is not None
        flat, changed = other.reshape(-1), own.clone().reshape(-1)
        places = range(turn * _LOOKED_AT, (turn + 1) * _LOOKED_AT)
        at = [derive(seed, "in place", name, str(i)) % flat.numel() for i in places]
        most = max(at, key=lambda i: float((flat[i].double() - changed[i].double()).abs()))
        changed[most] = flat[most]
        yield replace(given, tensors=given.tensors | {name: changed.view(own.shape)})


def _is_stale(
    session: CandidateSession,
    expectation: Expectation,
    earlier: Sequence[Inputs],
    *,
    in_sight: bool = False,
) -> bool:
    ruling, _, _ = session.call(expectation, earlier=earlier, in_sight=in_sight)
    return _is_wrong(ruling)


def _is_wrong(ruling: Ruling) -> bool:
    return isinstance(ruling.verdict, Failed) and ruling.verdict.kind in SYMPTOMS


def _is_earlier_result(session: CandidateSession, expectation: Expectation, inputs: Inputs) -> bool:
    """Whether it returns, bit for bit, what a fresh child returns for the inputs before."""
    session.close()
    ruling, stale, _ = session.call(expectation, earlier=(inputs,))
    if not _is_wrong(ruling):
        return False
    session.close()
    before, _ = session.call_unjudged(expectation.case, inputs)
    kept = _bytes(stale)
    return kept == _bytes(before) and len(kept) >= _LEAST_BYTES


def _bytes(observation: Observation) -> bytes:
    return b"".join(r.data for r in observation.results if isinstance(r, TensorResult))
