"""What the judge expects of a case: inputs, reference, bound; cached by case identity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

import torch
from msgspec import structs

from kerneltruth.cases.materialize import Inputs, materialize, with_out
from kerneltruth.cases.published import published_case
from kerneltruth.documents.case import Case
from kerneltruth.oracle import bounds
from kerneltruth.oracle.arguments import Layouts
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.claims import broken_claims
from kerneltruth.oracle.dealing import Deals
from kerneltruth.oracle.decoys import decoys, is_right
from kerneltruth.oracle.expectation import Expectation, expected_outputs
from kerneltruth.oracle.gradients import judged_as
from kerneltruth.oracle.recent import Recent, tensor_bytes
from kerneltruth.oracle.reference import quietly
from kerneltruth.oracle.right_results import all_right_results, few_right_results
from kerneltruth.oracle.ties import with_ties
from kerneltruth.tasks.spec import Task

# Recipes for published values that no bound can judge, such as those of a constant output.
OTHER_VALUES = ("normal", "uniform")


def expect(task: Task, case: Case, policy: Policy) -> Expectation:
    """Materialize a case, evaluate its reference and bounds, and try the decoys."""
    if task.unrefereeable is not None:
        nothing = Inputs(order=(), tensors={}, scalars={})
        return Expectation(case=case, inputs=nothing, unrefereeable=task.unrefereeable)
    return expect_on(task, case, materialize(task, case), policy)


def expect_on(task: Task, case: Case, inputs: Inputs, policy: Policy) -> Expectation:
    """What the judge expects on given inputs, such as stored ones."""
    with quietly():
        return _expect_on(task, case, inputs, policy)


def expect_timed(task: Task, case: Case, inputs: Inputs, *, device: str = "cpu") -> Expectation:
    """Evaluate what a timed call on these inputs must give; it stays on `device`.

    Raises:
        Exception: whatever torch raises where the operator does not accept the inputs.
    """
    with quietly(), torch.device(device):
        specs = task.promised_outputs(inputs.scalars, inputs.tensors)
        bounded = any(o.compare != "claims" for o in specs)
        made = few_right_results(task, case, inputs, bounded=bounded, device=device)
        outputs = expected_outputs(task, case, specs, made, Policy())
    return Expectation(case=case, inputs=inputs, outputs=outputs, timed_on=device)


def _expect_on(task: Task, case: Case, inputs: Inputs, policy: Policy) -> Expectation:
    task = judged_as(task, case)
    specs = task.promised_outputs(inputs.scalars, inputs.tensors)
    # Claims need no bound.
    bounded = policy.method == "spread" and any(o.compare != "claims" for o in specs)
    try:
        made = all_right_results(task, case, inputs, bounded=bounded, tf32=policy.tf32)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Expectation(case=case, inputs=inputs, invalid=reason)
    specs = with_ties(task, specs, inputs, made.truth)
    outputs = expected_outputs(task, case, specs, made, policy)
    if task.wants_out(inputs.scalars):
        (only,) = outputs
        inputs = with_out(inputs, only.shape, only.promised_dtype, case.seed)
    expected = Expectation(case=case, inputs=inputs, outputs=outputs, tf32=policy.tf32)
    # Decoys of a large output take as long as its evaluations: only the first is tried there.
    decoy = _passed_decoy(task, expected, most=1 if made.few else None)
    return replace(expected, unrefereeable=decoy)


def _passed_decoy(task: Task, made: Expectation, *, most: int | None) -> str | None:
    """Name a decoy that the bounds let through, or None if they reject all, or the first `most`.

    A decoy replaces one output; a case without elements to judge passes.
    """
    for index, expected in enumerate(made.outputs):
        if expected.spec.compare == "accept" or expected.reference.numel() == 0:
            continue
        offered = islice(decoys(expected.rounded, made.inputs.tensors, expected.dtype), most)
        # A result off by a factor may be within the author's stated tolerance.
        stated = ("gain",) if expected.dtype in task.admitted else ()
        spared = (*expected.spec.spared, *stated)
        tried: Iterable[tuple[str, torch.Tensor]] = (
            (name, decoy) for name, decoy in offered if name not in spared
        )
        if expected.spec.compare != "claims" and expected.reference.numel() <= bounds.SMALL:
            tried = list(tried)
            if expected.rejects_each([decoy for _, decoy in tried]):
                continue
        for name, decoy in tried:
            if expected.spec.compare == "claims":
                rejected = _breaks(task, made, index, decoy)
            else:
                rejected = expected.rejects(decoy)
            if not (rejected or is_right(decoy, expected.rounded, expected.dtype)):
                what = "claims let" if expected.spec.compare == "claims" else "bound lets"
                return f"the {what} a decoy through: {name}"
    return None


def _breaks(task: Task, made: Expectation, index: int, decoy: torch.Tensor) -> bool:
    """Whether a claim is broken when a decoy stands in the place of one right output."""
    outputs = made.outputs
    returned = tuple(decoy if i == index else o.rounded for i, o in enumerate(outputs))
    return bool(broken_claims(task, made, returned, made.inputs.tensors, most=1))


class ExpectationCache:
    """Expectations by case identity, so that many candidates of one task share them.

    Attributes:
        layouts: the arguments of calls, which candidates share as well.
        deals: the order of their cases, too.
    """

    def __init__(self, policy: Policy, *, limit_bytes: int = 192 * 2**20) -> None:
        self.policy = policy
        self.layouts = Layouts()
        self.deals = Deals()
        self._recent: Recent[Expectation] = Recent(_bytes, limit_bytes=limit_bytes)

    def get(self, task: Task, case: Case) -> Expectation:
        """The expectation of a case, from the cache if it is there."""
        made = self._recent.get(case.identity, lambda: expect(task, case, self.policy))
        # Strategy and domain are no part of the identity, so the cached case may differ in them.
        return made if made.case == case else replace(made, case=case)

    def published(self, task: Task, *, seed: int, device: str) -> Case:
        """The published inputs; with other values of their size if no bound can judge theirs."""
        published = published_case(task, seed=seed, device=device)
        for recipe in (published.recipe, *OTHER_VALUES):
            case = structs.replace(published, recipe=recipe)
            expectation = self.get(task, case)
            if expectation.unrefereeable is None and expectation.invalid is None:
                return case
        return published


def _bytes(expectation: Expectation) -> int:
    outputs = [t for o in expectation.outputs for t in (o.reference, o.rounded, o.bound)]
    return tensor_bytes(outputs) + tensor_bytes(expectation.inputs.tensors.values())
