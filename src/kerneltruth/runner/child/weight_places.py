"""Match the judge's weights with the parameters and buffers of a candidate's model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch

from kerneltruth.runner.unsupported import UnsupportedError

# The message if the judge's weights do not fit a model.
NO_PLACE = "the model has no parameter for the weight"

Weights = Mapping[str, torch.Tensor]


def state_of(model: Any) -> dict[str, torch.Tensor]:
    """Return a model's parameters and buffers by name; none if it is no module."""
    if not isinstance(model, torch.nn.Module):
        return {}
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def weight_places(
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
    state = state_of(model)
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
    return {n: w for n, w in found.items() if w is not None and fits(state[n], weights[w])}


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


def fits(own: torch.Tensor, weight: torch.Tensor) -> bool:
    """Return whether shapes differ by dims of size 1 only."""
    return [n for n in own.shape if n != 1] == [n for n in weight.shape if n != 1]


def _statistic(name: str) -> str | None:
    """Return which running statistic a parameter or buffer of this name is."""
    last = name.rpartition(".")[2]
    return next((kind for kind in ("mean", "var") if kind in last), None)
