"""Requests of the judge, served in the child.

Requests, as JSON:

- `outline`: shapes of inputs, weights and outputs for some constants, and what a call costs,
  without computing anything where the meta device allows that;
- `facts`: what only a real run shows: which values inputs and weights take, whether the model is
  random, constant, or too inexact for any bound;
- `runs`: only whether a real run succeeds;
- `truth`: the outputs for given inputs and weights.
"""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import _pop_mode, _push_mode

from kerneltruth.importers.kernelbench.inside.facts import facts, runs
from kerneltruth.importers.kernelbench.inside.model import (
    Problem,
    cast,
    default,
    described,
    emptied,
    flat,
    is_plain,
    parameters,
    seeded,
    state,
)
from kerneltruth.importers.kernelbench.inside.modes import Counter, OneStep, Rounding, Unfilled

# Models kept with the constants and dtype that they were built for, as long as they are small.
_KEPT_MODELS = 3
_KEPT_ELEMENTS = 2**26


@contextlib.contextmanager
def _unguarded() -> Iterator[None]:
    """The guards of candidate allocations have no business here."""
    popped = [_pop_mode() for _ in range(torch._C._len_torch_dispatch_stack())]
    try:
        yield
    finally:
        for mode in reversed(popped):
            _push_mode(mode)


def _packed(value: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


class Harness:
    """One problem in this process, asked by the judge."""

    def __init__(self, source: str) -> None:
        self._problem = Problem(source)
        self._models: dict[tuple[str, str], tuple[Any, dict[str, torch.Tensor]]] = {}

    def answer(self, request: str, **tensors: torch.Tensor) -> Any:
        """Serve one request; the result is JSON as bytes, or for `truth` the outputs."""
        asked = json.loads(request)
        torch.set_num_threads(asked.get("threads", 1))
        with _unguarded(), torch.no_grad():
            match asked["what"]:
                case "truth":
                    return self._truth(asked, tensors)
                case "facts":
                    return _packed(facts(self._problem, asked))
                case "runs":
                    return _packed(runs(self._problem, asked))
                case _:
                    return _packed(self._outline(asked))

    def _outline(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """`device` is meta or cpu; `forward` says whether to call the model."""
        space = self._problem.space(asked["constants"])
        counter = Counter()
        outputs: list[Any] = []
        model = self._shaped(asked["constants"], asked["device"])
        with torch.device(asked["device"]):
            init = space.get_init_inputs()
            inputs = list(space.get_inputs())
            if asked["forward"]:
                with counter, OneStep(counter):
                    outputs = flat(model(*inputs))
        return {
            "init": repr(list(init)),
            "plain": is_plain(list(init)),
            "init_names": parameters(space.Model),
            "names": parameters(model.forward)[: len(inputs)],
            "inputs": [described(v) for v in inputs],
            "state": {n: list(t.shape) for n, t in state(model).items()},
            "parameters": [n for n, _ in model.named_parameters()],
            "outputs": [described(v) for v in outputs],
            "flops": counter.flops,
            "terms": counter.terms,
            "products": counter.products,
        }

    def _shaped(self, constants: str, device: str) -> Any:
        """The model on a device; on meta also one whose constructor reads numbers."""
        try:
            with torch.device(device):
                return self._problem.build(constants)
        except (RuntimeError, NotImplementedError) as error:
            if device != "meta" or "meta" not in str(error):
                raise
        with Unfilled():  # type: ignore[no-untyped-call]
            return emptied(self._problem.build(constants))

    def _truth(
        self, asked: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """The outputs for given inputs and weights, in the dtype asked for."""
        dtype = getattr(torch, asked["dtype"])
        with default(dtype):
            model = self._ready(asked["constants"], dtype, tensors)
            scalars = {n: ast.literal_eval(v) for n, v in asked["scalars"].items()}
            inputs = [tensors[n] if n in tensors else scalars[n] for n in asked["order"]]
            torch.manual_seed(0)
            with Rounding(asked["products"]) if asked["products"] else contextlib.nullcontext():
                outputs = flat(model(*inputs))
            return tuple(torch.as_tensor(o).clone() for o in outputs)

    def _ready(
        self, constants: str, dtype: torch.dtype, tensors: Mapping[str, torch.Tensor]
    ) -> Any:
        """The model for the constants, in the dtype, with the weights given."""
        key = (constants, str(dtype))
        if key not in self._models:
            model = cast(seeded(0, lambda: self._problem.build(constants)), dtype)
            own = state(model)
            size = sum(t.numel() for t in own.values()) * (len(self._models) + 1)
            if len(self._models) >= _KEPT_MODELS or size > _KEPT_ELEMENTS:
                self._models.clear()
            kept = {n: t.clone() for n, t in own.items() if f"weights.{n}" not in tensors}
            self._models[key] = (model, kept)
        model, kept = self._models[key]
        for name, tensor in state(model).items():
            tensor.copy_(kept[name] if name in kept else tensors[f"weights.{name}"])
        return model
