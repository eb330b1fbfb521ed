"""Build models in the child from constructor inputs, and load the judge's weights.

A task that is a model names its constructor's inputs by `CONSTRUCTED`. If needed, `CALLED` says how
it is called, `FILLED` with which number the reference's constructor fills a weight, and `NAMED` how
the constructor calls its inputs, all as Python text. `WEIGHTS` holds its weights by their names in
the reference's state. A candidate's model gets them by name, the others by order among equal
shapes. Weights that are None are left to its constructor, which draws at the reference's seed.

A candidate may also be a function in place of the model: see `for_function`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from inspect import signature
from typing import Any

import torch
from torch.nn.modules import module as registration
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.runner.child import pretrained
from kerneltruth.runner.child.binding import Offered, SignatureMismatch, knows
from kerneltruth.runner.child.weight_places import Weights, fits, state_of, weight_places

CONSTRUCTED = "get_init_inputs()"
CALLED = "model.called"
FILLED = "model.filled"
NAMED = "model.named"
WEIGHTS = "weights."
_SAID: Mapping[str, Callable[[str], Any]] = {
    CONSTRUCTED: pretrained.from_text,
    CALLED: ast.literal_eval,
    FILLED: ast.literal_eval,
    NAMED: ast.literal_eval,
}


def is_described(arguments: Sequence[Offered]) -> bool:
    """Return whether the arguments describe how to build a model."""
    return any(a.name == CONSTRUCTED for a in arguments)


def inputs_of(arguments: Sequence[Offered]) -> list[Any]:
    """Return the model's own inputs, among the arguments that describe it."""
    others = [a for a in arguments if a.name not in _SAID]
    return [a.value for a in others if not a.name.startswith(WEIGHTS)]


def for_function(entry: Callable[..., Any], arguments: Sequence[Offered]) -> list[Offered]:
    """Return what a function gets in place of a model: inputs, weights, and what else it names.

    Inputs of the constructor go to parameters that have the reference's names.

    Raises:
        SignatureMismatch: it has no clear place for a weight, or must update buffers of the model.
    """
    said = {a.name: _SAID[a.name](a.value) for a in arguments if a.name in _SAID}
    if said.get(CALLED, {}).get("updated"):
        raise SignatureMismatch("a function has no buffers to update: write a class ModelNew")
    others = [a for a in arguments if a.name not in _SAID]
    built = zip(said.get(NAMED, ()), said.get(CONSTRUCTED, ()), strict=False)
    return [
        *(a for a in others if not a.name.startswith(WEIGHTS)),
        *_named(entry, [a for a in others if a.name.startswith(WEIGHTS) and a.value is not None]),
        *(Offered(name=n, value=value) for n, value in built if knows(entry, n)),
    ]


def _named(entry: Callable[..., Any], weights: Sequence[Offered]) -> list[Offered]:
    """Return weights by the names of a function's parameters.

    The name is the weight's own, in which dots are underscores, or the end of it from a dot on, if
    no other weight ends so. Without it, weights go by place if they are those of one layer, in
    PyTorch's order: in which order a function takes several layers, or `*args`, nobody can know.
    """
    ends = {w.name: [*_ends(w.name.removeprefix(WEIGHTS))] for w in weights}
    often = Counter(end for of_one in ends.values() for end in of_one)
    found, unnamed = [], set()
    for weight in weights:
        whole, *shorter = ends[weight.name]
        own = [whole, *(end for end in shorter if often[end] == 1)]
        name = next((end for end in own if knows(entry, end)), None)
        if name is None:
            unnamed.add(weight.name.rpartition(".")[0])
        found.append(Offered(name=name or whole, value=weight.value, tensor=True))
    parameters = signature(entry).parameters if unnamed else {}
    in_any_order = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    if len(unnamed) > 1 or in_any_order:
        lacking = next(a.name for a in found if a.name not in parameters)
        raise SignatureMismatch(
            f"{entry.__name__}{signature(entry)} has no parameter {lacking!r} for this weight: "
            "name it so, or write a class ModelNew"
        )
    return found


def _ends(name: str) -> Iterator[str]:
    """Yield a weight's name as a parameter's, and its ends from each dot on."""
    while name:
        yield name.replace(".", "_")
        _, _, name = name.partition(".")


def build(
    kind: type,
    arguments: Sequence[Offered],
    device: str | torch.device,
    *,
    reused: bool = False,
) -> tuple[Callable[..., Any], list[Any]]:
    """Return a call of the model with its weights, and its inputs in order.

    The model is in the mode in which its constructor leaves it, unless the arguments say otherwise.
    They may also request buffers that a call updates: these are outputs then, after the model's
    own. A `reused` model has been called with other values first.

    Raises:
        UnsupportedError: the judge's weights do not fit it.
        AttributeError: it lacks a requested buffer.
    """
    inputs = inputs_of(arguments)
    said = {a.name: _SAID[a.name](a.value) for a in arguments if a.name in _SAID}
    called = said.get(CALLED, {})
    training, updated = called.get("training"), called.get("updated", ())
    weights: dict[str, torch.Tensor] = {
        a.name.removeprefix(WEIGHTS): a.value.detach().cpu().clone()
        for a in arguments
        if a.name.startswith(WEIGHTS) and a.value is not None
    }
    # A layer that uses statistics of each batch need not keep any.
    needed = training is False or bool(updated)
    passed, filled = said.get(CONSTRUCTED, ()), said.get(FILLED, {})
    model = _with_weights(kind, passed, weights, filled, keeps_statistics=needed)
    if isinstance(model, torch.nn.Module):
        tensors = (t for t in (*weights.values(), *inputs) if isinstance(t, torch.Tensor))
        dtype = next((t.dtype for t in tensors if t.is_floating_point()), torch.float32)
        model = model.to(device=device, dtype=dtype)
        if training is not None:
            model.train(training)
    if reused:
        call_with_other_values(model, inputs, {})

    def call(*given: Any) -> Any:
        with torch.no_grad():
            returned = _as_tensors(model(*given), device)
            if not updated:
                return returned
            own = state_of(model)
            missing = [name for name in updated if name not in own]
            if missing:
                raise AttributeError(f"the model has no buffer {missing[0]!r}")
            return [returned, *(own[name] for name in updated)]

    return call, inputs


def call_with_other_values(
    model: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Call a model with other values than these; its parameters and buffers stay as they are.

    The values are made up, so an exception says nothing.
    """
    before = {name: tensor.detach().clone() for name, tensor in state_of(model).items()}
    with torch.no_grad():
        with suppress(Exception):
            model(*map(_other, positional), **{name: _other(v) for name, v in named.items()})
        for name, tensor in state_of(model).items():
            if name in before and tensor.shape == before[name].shape:
                tensor.copy_(before[name])


def _other(value: Any) -> Any:
    """Return a value of the same form: tensors reversed in every dim, real numbers shrunk."""
    if isinstance(value, torch.Tensor):
        other = value.flip(tuple(range(value.dim())))
        return other * 0.75 if other.is_floating_point() else other
    if isinstance(value, tuple | list):
        return type(value)(map(_other, value))
    return value


def _as_tensors(value: Any, device: str | torch.device) -> Any:
    if isinstance(value, tuple | list):
        return [_as_tensors(item, device) for item in value]
    if isinstance(value, Mapping):
        return [_as_tensors(item, device) for item in value.values()]
    return torch.as_tensor(value).to(device) if isinstance(value, bool | int | float) else value


def _with_weights(
    kind: type,
    passed: Sequence[Any],
    weights: Weights,
    filled: Mapping[str, float],
    *,
    keeps_statistics: bool,
) -> Any:
    made: list[torch.Tensor] = []
    with _drawing_alike(), _watched(made, {}):
        model = kind(*passed)
    if not weights:
        return model
    places = weight_places(model, weights, filled, keeps_statistics=keeps_statistics)
    if _keeps_copies(model, places):
        # Weights from which a constructor derives others must be loaded from the start.
        # What is registered again, as tied weights are, is made where it comes first.
        at = {id(t): i for i, t in reversed([*enumerate(made)])}
        first = state_of(model)
        fixed = {at[id(first[p])]: weights[w] for p, w in places.items() if id(first[p]) in at}
        with _drawing_alike(), _watched([], fixed):
            model = kind(*passed)
    with torch.no_grad():
        for name, tensor in state_of(model).items():
            if name in places:
                tensor.copy_(weights[places[name]].reshape(tensor.shape))
    return model


def _keeps_copies(model: torch.nn.Module, places: Mapping[str, str]) -> bool:
    """Return whether the model holds other numbers, which may derive from the matched weights."""
    if any(t.is_floating_point() for n, t in state_of(model).items() if n not in places):
        return True
    return any(_holds_numbers(v) for module in model.modules() for v in vars(module).values())


def _holds_numbers(value: Any) -> bool:
    """Return whether it is, or contains, a real tensor that is not a parameter."""
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() and not isinstance(value, torch.nn.Parameter)
    if type(value) in (list, tuple, dict):
        items = value.values() if isinstance(value, dict) else value
        return any(_holds_numbers(item) for item in items)
    return False


@contextmanager
def _drawing_alike() -> Iterator[None]:
    """Make a constructor draw what the reference's draws; a call continues as it was seeded."""
    on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    before = torch.default_generator.get_state()
    there = torch.cuda.get_rng_state() if on_gpu else None
    torch.default_generator.manual_seed(0)
    if there is not None:
        torch.cuda.manual_seed(0)
    try:
        yield
    finally:
        torch.default_generator.set_state(before)
        if there is not None:
            torch.cuda.set_rng_state(there)


@contextmanager
def _watched(made: list[torch.Tensor], fixed: Mapping[int, torch.Tensor]) -> Iterator[None]:
    """Record each parameter and buffer as it is registered; the n-th takes a fixed value."""
    protected: set[int] = set()

    def registered(module: Any, name: str, tensor: Any) -> Any:
        del module, name
        if not isinstance(tensor, torch.Tensor):
            return None
        value = fixed.get(len(made))
        if value is None or not fits(tensor, value):
            made.append(tensor)
            return None
        # Where and as it was drawn, because a constructor may compute with it.
        kept = tensor.detach().clone().copy_(value.reshape(tensor.shape))
        protected.add(kept.untyped_storage().data_ptr())
        replaced = (
            torch.nn.Parameter(kept, requires_grad=tensor.requires_grad)
            if isinstance(tensor, torch.nn.Parameter)
            else kept
        )
        made.append(replaced)
        return replaced

    handles = (
        registration.register_module_parameter_registration_hook(registered),
        registration.register_module_buffer_registration_hook(registered),
    )
    try:
        with _ProtectTensors(protected) if fixed else _nothing():
            yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


class _ProtectTensors(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Protects some tensors from initializers.

    The initializer still draws its random numbers, so that later draws stay the same.
    """

    def __init__(self, protected: set[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.protected = protected


def _dispatch(
    mode: _ProtectTensors, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    target = args[0] if args else None
    writes = func.overloadpacket.__name__.endswith("_")
    if (
        writes
        and isinstance(target, torch.Tensor)
        and target.untyped_storage().data_ptr() in mode.protected
    ):
        if torch.Tag.nondeterministic_seeded in func.tags:
            func(target.clone(), *args[1:], **(kwargs or {}))
        return target
    return func(*args, **(kwargs or {}))


# In a class body, torch would wrap it so that its first call imports all of torch._dynamo.
_ProtectTensors.__torch_dispatch__ = _dispatch  # type: ignore[assignment,method-assign]
