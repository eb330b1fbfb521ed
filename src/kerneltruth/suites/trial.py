"""Try a user's reference once, to report its mistakes before any kernel is judged."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from msgspec.structs import replace

from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.recipes import OWN
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.errors import DeclarationError
from kerneltruth.oracle.gradients import judged_as
from kerneltruth.oracle.reference import Tensors, cast, quietly, real_parts
from kerneltruth.tasks.model import BACKWARD, CALL, Task


def try_reference(task: Task) -> None:
    """Call the reference twice on one small case.

    Raises:
        DeclarationError: no case satisfies the constraints; or the reference returns no tensor or
            another number than declared, changes its arguments, or differs from call to call; or
            autograd gives none of the gradients that are declared.
        Exception: whatever the reference raises.
    """
    case = next(generate(task, strategies=("default",), seed=0, count=1), None)
    if case is None:
        kept = f"satisfies its constraints ({'; '.join(task.constraints)})"
        raise DeclarationError(
            f"no case of {task.name} {kept if task.constraints else 'has elements'}; loosen "
            "constraints, or limits of dims"
        )
    if task.own is not None:
        _try_inputs(task, replace(case, recipe=OWN))
    first, second = _called(task, case), _called(task, case)
    if first != second and not task.random:
        raise DeclarationError(
            f"the reference of {task.name} differs from call to call; draw nothing at random, or "
            "declare random=True"
        )
    if task.promises.gradients:
        _try_gradients(task, case)


def _try_gradients(task: Task, case: Case) -> None:
    """Ask for the gradients once, of the sizes and values of the case.

    Raises:
        DeclarationError: autograd gives none.
    """
    backward = case.with_attributes(**{CALL: BACKWARD})
    if not task.allows(backward.sizes, backward.settings):
        return
    inputs = materialize(task, backward)
    reference = judged_as(task, backward).reference
    given = task.keywords(cast(inputs.tensors, torch.float64), inputs.scalars, task.reference)
    try:
        with quietly():
            reference(**given)
    except RuntimeError as error:
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise DeclarationError(
            f"autograd of the reference of {task.name} gives no gradients: {said}; compute the "
            "first result from real inputs without detach, or leave out backward=True"
        ) from error


def _try_inputs(task: Task, case: Case) -> None:
    assert task.own is not None
    scope = task.scope(case.sizes, task.scalars(case.sizes, case.settings))
    specs = {spec.name: spec for spec in task.tensors}
    drawn = [task.own(scope, case.seed) for _ in range(2)]
    if not isinstance(drawn[0], Mapping):
        raise DeclarationError(
            f"inputs of {task.name} returns {type(drawn[0]).__name__}; return a dict of tensors by "
            f"name, such as {{{next(iter(specs))!r}: ...}}"
        )
    for name, tensor in drawn[0].items():
        if name not in specs or not isinstance(tensor, torch.Tensor):
            raise DeclarationError(
                f"inputs of {task.name} gives {name!r}: {type(tensor).__name__}; give tensors of "
                f"{', '.join(specs)} by name"
            )
        shape = task.shape(specs[name], case.sizes, case.settings)
        if tuple(tensor.shape) != shape:
            raise DeclarationError(
                f"inputs of {task.name} gives {name} in the shape {list(tensor.shape)}, and the "
                f"signature says {list(shape)} at {case.summary()}"
            )
    if _digests(drawn[0]) != _digests(drawn[1]):
        raise DeclarationError(
            f"inputs of {task.name} differ for one seed; draw with "
            "torch.Generator().manual_seed(seed)"
        )


def _called(task: Task, case: Case) -> list[str]:
    """Return digests of what the reference returns in float64."""
    inputs = materialize(task, case)
    given = cast(inputs.tensors, torch.float64)
    before = _digests(given)
    with quietly():
        result = task.reference(**task.keywords(given, inputs.scalars, task.reference))
    if _digests(given) != before:
        raise DeclarationError(
            f"the reference of {task.name} changes its arguments; compute on a clone, and return "
            "what a kernel should leave in them"
        )
    return [_digest(t) for t in _outputs(task, case, result)]


def _outputs(task: Task, case: Case, result: object) -> list[torch.Tensor]:
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    strange = [type(o).__name__ for o in outputs if not isinstance(o, torch.Tensor | int | float)]
    if strange or not outputs:
        what = strange[0] if strange else "nothing"
        raise DeclarationError(
            f"the reference of {task.name} returns {what}; return a tensor, or a tuple of tensors"
        )
    expected = len(task.promised_outputs(task.scalars(case.sizes, case.settings)))
    if len(outputs) != expected:
        raise DeclarationError(
            f"the reference of {task.name} returns {len(outputs)} results, and {expected} are "
            "declared; give outputs=(Output(), ...), one for each"
        )
    return [real_parts(torch.as_tensor(o)) for o in outputs]


def _digests(tensors: Tensors) -> dict[str, str]:
    return {name: _digest(t) for name, t in tensors.items() if t is not None}


def _digest(tensor: torch.Tensor) -> str:
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(flat.numpy().tobytes()).hexdigest()
