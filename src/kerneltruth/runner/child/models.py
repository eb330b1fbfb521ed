"""Build models in the child from constructor inputs, and load the judge's weights.

A task that is a model names its constructor's inputs by `CONSTRUCTED`. If needed, `CALLED` says how
it is called, and `FILLED` with which number the reference's constructor fills a weight, both as
Python text. `WEIGHTS` holds its weights by their names in the reference's state. A candidate's
model gets them by name, the others by order among equal shapes. Weights that are None are left to
its constructor, which draws at the reference's seed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.nn.modules import module as registration
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.runner.child.binding import Offered
from kerneltruth.runner.unsupported import UnsupportedError

CONSTRUCTED = "get_init_inputs()"
CALLED = "model.called"
FILLED = "model.filled"
WEIGHTS = "weights."
_SAID = (CONSTRUCTED, CALLED, FILLED)
# The message if the judge's weights do not fit a model.
NO_PLACE = "the model has no parameter for the weight"

Weights = Mapping[str, torch.Tensor]


def is_described(arguments: Sequence[Offered]) -> bool:
    """Return whether the arguments describe how to build a model."""
    return any(a.name == CONSTRUCTED for a in arguments)


def inputs_of(arguments: Sequence[Offered]) -> list[Any]:
    """Return the model's own inputs, among the arguments that describe it."""
    others = [a for a in arguments if a.name not in _SAID]
    return [a.value for a in others if not a.name.startswith(WEIGHTS)]


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
    said = {a.name: ast.literal_eval(a.value) for a in arguments if a.name in _SAID}
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
            own = _state(model)
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
    before = {name: tensor.detach().clone() for name, tensor in _state(model).items()}
    with torch.no_grad():
        with suppress(Exception):
            model(*map(_other, positional), **{name: _other(v) for name, v in named.items()})
        for name, tensor in _state(model).items():
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
    places = _matched(model, weights, filled, keeps_statistics=keeps_statistics)
    if _keeps_copies(model, places):
        # Weights from which a constructor derives others must be loaded from the start.
        at = {id(t): i for i, t in enumerate(made)}
        first = _state(model)
        fixed = {at[id(first[p])]: weights[w] for p, w in places.items() if id(first[p]) in at}
        with _drawing_alike(), _watched([], fixed):
            model = kind(*passed)
    with torch.no_grad():
        for name, tensor in _state(model).items():
            if name in places:
                tensor.copy_(weights[places[name]].reshape(tensor.shape))
    return model


def _state(model: Any) -> dict[str, torch.Tensor]:
    if not isinstance(model, torch.nn.Module):
        return {}
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _matched(
    model: Any, weights: Weights, filled: Mapping[str, float], *, keeps_statistics: bool
) -> dict[str, str]:
    """Return which weight goes to which parameter or buffer of the model.

    By name, in which dots count as underscores; the rest in order among equal shapes, if there are
    as many on both sides. Those that both constructors fill with the same number, or with several,
    go first. If some names differ, numbers in names count last: a Sequential without its
    activations numbers its layers differently. Shapes may differ by dims of size 1. Running
    statistics go only to running statistics, and may be missing where they are not needed.

    Raises:
        UnsupportedError: a weight has no place, or more than one.
    """
    state = _state(model)
    named = _by_name(state, weights)
    if len(named) == len(weights):
        return named
    places = {n: w for n, w in named.items() if not any(part.isdigit() for part in n.split("."))}
    made = {n: _filled_with(t) for n, t in state.items()}
    for more in ({}, named):
        places |= {
            n: more[n] for n in more.keys() - places.keys() if more[n] not in places.values()
        }
        for alike in (_exactly, _squeezed, _roughly):
            _place_in_order(places, state, weights, alike, (made, filled))
            _place_in_order(places, state, weights, alike, ({}, {}))
    for name, weight in _without(weights, places.values()).items():
        if not _statistic(name) or keeps_statistics or not model.training:
            own = ", ".join(f"{n}{list(t.shape)}" for n, t in list(state.items())[:6]) or "none"
            raise UnsupportedError(f"{NO_PLACE} {name}{list(weight.shape)}; its own are {own}")
    return places


def _place_in_order(
    places: dict[str, str],
    state: Weights,
    weights: Weights,
    alike: Callable[[str, torch.Tensor], tuple[Any, ...]],
    filled: tuple[Mapping[str, float | None], Mapping[str, float | None]],
) -> None:
    """Add the weights for which there are as many free parameters of the same shape."""
    free = _groups(_without(state, places), alike, filled[0])
    for key, names in _groups(_without(weights, places.values()), alike, filled[1]).items():
        if len(free.get(key, ())) == len(names):
            places |= zip(free[key], names, strict=True)


def _filled_with(tensor: torch.Tensor) -> float | None:
    """Return the number that all elements equal, if there are several elements."""
    tensor = tensor.detach()
    first = tensor.reshape(-1)[:1]
    several = tensor.numel() > 1 and bool((tensor == first).all())
    return float(first) if several else None


def _by_name(state: Weights, weights: Weights) -> dict[str, str]:
    plain = {n.replace(".", "_"): n for n in weights}
    found = {n: n if n in weights else plain.get(n.replace(".", "_")) for n in state}
    return {n: w for n, w in found.items() if w is not None and _fits(state[n], weights[w])}


def _without(weights: Weights, placed: Collection[str]) -> Weights:
    return {n: w for n, w in weights.items() if n not in placed}


def _groups(
    tensors: Weights,
    alike: Callable[[str, torch.Tensor], tuple[Any, ...]],
    filled: Mapping[str, float | None],
) -> dict[tuple[Any, ...], list[str]]:
    """Return names that only their order tells apart."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for name, tensor in tensors.items():
        found.setdefault((*alike(name, tensor), filled.get(name)), []).append(name)
    return found


def _exactly(name: str, tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), _statistic(name), _is_bias(name)


def _squeezed(name: str, tensor: torch.Tensor) -> tuple[Any, ...]:
    return *_roughly(name, tensor), _is_bias(name)


def _roughly(name: str, tensor: torch.Tensor) -> tuple[Any, ...]:
    return tuple(n for n in tensor.shape if n != 1), _statistic(name)


def _is_bias(name: str) -> bool:
    """Return whether a parameter of this name is added, not multiplied."""
    words = [word for word in name.split(".") if not word.isdigit()]
    return any(word in words[-1] for word in ("bias", "beta")) if words else False


def _fits(own: torch.Tensor, weight: torch.Tensor) -> bool:
    return [n for n in own.shape if n != 1] == [n for n in weight.shape if n != 1]


def _statistic(name: str) -> str | None:
    """Return which running statistic a parameter or buffer of this name is."""
    last = name.rpartition(".")[2]
    return next((kind for kind in ("mean", "var") if kind in last), None)


def _keeps_copies(model: torch.nn.Module, places: Mapping[str, str]) -> bool:
    """Return whether the model holds other numbers, which may derive from the matched weights."""
    if any(t.is_floating_point() for n, t in _state(model).items() if n not in places):
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
    held: set[int] = set()

    def registered(module: Any, name: str, tensor: Any) -> Any:
        del module, name
        if not isinstance(tensor, torch.Tensor):
            return None
        value = fixed.get(len(made))
        if value is None or not _fits(tensor, value):
            made.append(tensor)
            return None
        # Where and as it was drawn, because a constructor may compute with it.
        kept = tensor.detach().clone().copy_(value.reshape(tensor.shape))
        held.add(kept.untyped_storage().data_ptr())
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
        with _ProtectTensors(held) if fixed else _nothing():
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

    def __init__(self, held: set[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held = held


def _dispatch(
    mode: _ProtectTensors, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    target = args[0] if args else None
    writes = func.overloadpacket.__name__.endswith("_")
    if (
        writes
        and isinstance(target, torch.Tensor)
        and target.untyped_storage().data_ptr() in mode.held
    ):
        if torch.Tag.nondeterministic_seeded in func.tags:
            func(target.clone(), *args[1:], **(kwargs or {}))
        return target
    return func(*args, **(kwargs or {}))


# In a class body, torch would wrap it so that its first call imports all of torch._dynamo.
_ProtectTensors.__torch_dispatch__ = _dispatch  # type: ignore[assignment,method-assign]
