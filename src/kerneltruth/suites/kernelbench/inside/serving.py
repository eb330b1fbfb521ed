"""Serve the judge's requests in the child.

Requests, as JSON:

- `outline`: shapes of inputs, weights and outputs for some constants, and the cost of a call,
  without computing anything if the meta device allows that;
- `facts`: what only a run shows: the values of inputs and weights, whether the model is random,
  constant, or too inexact for any bound;
- `example`: why a plain function is no reference, as its own example shows;
- `runs`: only whether a run succeeds; `ranges`: only the ranges of integer inputs;
- `drawn`: inputs and weights as the problem's own file creates them;
- `truth`: the outputs for given inputs and weights; `draws`: those of several runs of a random one;
- `gradients`: those of the inputs, for those at the outputs;
- `with_spread`: the outputs in float64, and how far other evaluations deviate from them.

The last three run on the device that holds the inputs.
"""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _pop_mode, _push_mode

from kerneltruth.runner.child.pretrained import as_text
from kerneltruth.suites.kernelbench.inside.facts import facts, ignores, ranges, runs
from kerneltruth.suites.kernelbench.inside.laid_out import RecordedLayouts, without_dynamo
from kerneltruth.suites.kernelbench.inside.model import (
    Attributes,
    LoadedProblem,
    attributes,
    cast,
    cast_tensors,
    described,
    emptied,
    flat,
    home,
    is_float,
    is_plain,
    seed_with,
    seeded,
    state,
)
from kerneltruth.suites.kernelbench.inside.modes import (
    NARROW,
    Counter,
    Narrowing,
    OneStep,
    Rounding,
    Unfilled,
)
from kerneltruth.suites.kernelbench.inside.plain import LoadedFunction, example
from kerneltruth.suites.kernelbench.inside.stray import Stray
from kerneltruth.tasks.gpu import OnGpu

# How a request names the gradients at the outputs.
PASSED = "passed."
# Models are kept, by constants and dtype, as long as they are small.
_KEPT_MODELS = 3
_KEPT_ELEMENTS = 2**26
_KEPT_ON_DEVICE = 2**22


@contextlib.contextmanager
def _unguarded() -> Iterator[None]:
    """References need no guards around their allocations."""
    popped = [_pop_mode() for _ in range(torch._C._len_torch_dispatch_stack())]
    try:
        yield
    finally:
        for mode in reversed(popped):
            _push_mode(mode)


def _arithmetic(name: str | None) -> Any:
    """Use another arithmetic than torch's on a CPU: TF32, GPU libraries, or a narrow dtype."""
    if name is None:
        return contextlib.nullcontext()
    how, _, salt = name.partition("-")
    if how == "gpu":
        return OnGpu(ulp=torch.finfo(torch.float32).eps, salt=int(salt))
    if how in NARROW:
        return Narrowing(how, int(salt))
    return Rounding(how)


def _packed(value: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A model in a dtype and mode, and what its constructor left in it beside the given weights."""

    model: Any
    kept: Mapping[str, torch.Tensor]
    attributes: Attributes


class Harness:
    """One problem in this process, serving the judge."""

    def __init__(self, problem: LoadedProblem) -> None:
        self._problem = problem
        # On a GPU: real float32, and deterministic results.
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = True
        self._models: dict[tuple[str, str, bool | None, bool], _Ready] = {}
        self._laid_out = RecordedLayouts()

    def answer(self, request: str, **tensors: torch.Tensor) -> Any:
        """Serve one request; the result is JSON as bytes, or for `truth` the outputs."""
        asked = json.loads(request)
        torch.set_num_threads(asked.get("threads", 1))
        with _unguarded(), torch.no_grad():
            if home(tensors).type == "cpu":
                return self._answer(asked, tensors)
            try:
                return tuple(o.cpu() for o in self._answer(asked, tensors))
            finally:
                # Other processes need the memory between requests.
                if self._elements() > _KEPT_ON_DEVICE:
                    self._models.clear()
                torch.cuda.empty_cache()

    def _answer(self, asked: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> Any:
        match asked["what"]:
            case "truth":
                return self._truth(asked, tensors, 0)
            case "draws":
                runs_ = [self._truth(asked, tensors, seed) for seed in range(asked["count"])]
                return tuple(torch.stack(same) for same in zip(*runs_, strict=True))
            case "gradients":
                return self._gradients(asked, tensors)
            case "with_spread":
                return self._with_spread(asked, tensors)
            case "drawn":
                return self._drawn(asked)
            case "ranges":
                return _packed(ranges(self._problem, asked))
            case "facts":
                return _packed(facts(self._problem, asked))
            case "ignores":
                return _packed(ignores(self._problem, asked))
            case "example":
                return _packed(self._example())
            case "runs":
                return _packed(runs(self._problem, asked))
            case _:
                return _packed(self._outline(asked))

    def _example(self) -> dict[str, Any]:
        """Return why a plain function is no reference, as far as its example shows."""
        return example(self._problem) if isinstance(self._problem, LoadedFunction) else {}

    def _elements(self) -> int:
        """The models that are kept."""
        return sum(
            t.numel() for ready in self._models.values() for t in state(ready.model).values()
        )

    def _outline(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outline; `device` is meta or cpu; `forward` says whether to call the model."""
        space = self._problem.space(asked["constants"])
        counter = Counter()
        outputs: list[Any] = []
        with without_dynamo(), self._laid_out:
            model = self._shaped(asked["constants"], asked["device"])
            with torch.device(asked["device"]):
                init = space.get_init_inputs()
                inputs = self._problem.inputs(asked["constants"])
                if asked["forward"]:
                    with counter, OneStep(counter):
                        outputs = flat(model(*inputs))
        return {
            "init": as_text(init),
            "plain": is_plain(init),
            "names": self._problem.names(model, inputs),
            "inputs": [described(v) for v in inputs],
            "state": {n: list(t.shape) for n, t in state(model).items()},
            "parameters": [n for n, _ in model.named_parameters()],
            "masks": [n for n, t in state(model).items() if t.dtype == torch.bool],
            "outputs": [described(v) for v in outputs],
            "flops": counter.flops,
            "terms": counter.terms,
            "products": counter.products,
            "stretched": sorted(counter.stretched),
        }

    def _shaped(self, constants: str, device: str) -> Any:
        """Return the model on a device; on meta also one whose constructor reads numbers."""
        try:
            with torch.device(device):
                return self._problem.build(constants)
        except (RuntimeError, NotImplementedError) as error:
            if device != "meta" or "meta" not in str(error):
                raise
        with Unfilled():
            return emptied(self._problem.build(constants))

    def _drawn(self, asked: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
        """Return the tensor inputs, then the weights of these names, from a seed."""
        inputs = seeded(asked["seed"], lambda: self._problem.inputs(asked["constants"]))
        made = state(seeded(asked["seed"], lambda: self._problem.build(asked["constants"])))
        given = [v for v in inputs if isinstance(v, torch.Tensor)]
        return tuple(t.detach().clone() for t in (*given, *(made[n] for n in asked["weights"])))

    def _truth(
        self, asked: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], seed: int
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs for given inputs and weights, in the requested dtype; then updates.

        `training` is None for the mode in which the constructor leaves the model; `updated` names
        the buffers that are outputs too.
        """
        dtype = getattr(torch, asked["dtype"])
        model = self._ready(asked, dtype, tensors)
        where = home(tensors)
        evaluating = self._problem.evaluating(dtype)
        with evaluating, contextlib.nullcontext() if where.type == "cpu" else where:
            scalars = {n: ast.literal_eval(v) for n, v in asked["scalars"].items()}
            inputs = [tensors[n] if n in tensors else scalars[n] for n in asked["order"]]
            seed_with(seed)
            inputs, arithmetic = self._arithmetic(asked["arithmetic"], inputs)
            with arithmetic:
                outputs = flat(model(*inputs))
            own = state(model)
            outputs += [own[n] for n in asked["updated"]]
            return tuple(torch.as_tensor(o).clone() for o in outputs)

    def _gradients(
        self, asked: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Return the gradients of the real inputs, for those passed in at the real outputs."""
        passed = [t for n, t in tensors.items() if n.startswith(PASSED)]
        given = {n: t for n, t in tensors.items() if not n.startswith(PASSED)}
        leaves = [t.requires_grad_() for t in given.values() if is_float(t)]
        dtype = getattr(torch, asked["dtype"])
        scalars = {n: ast.literal_eval(v) for n, v in asked["scalars"].items()}
        inputs = [given[n] if n in given else scalars[n] for n in asked["order"]]
        model = self._ready(asked, dtype, given)
        with torch.enable_grad(), self._problem.evaluating(dtype):
            inputs, arithmetic = self._arithmetic(asked["arithmetic"], inputs)
            with arithmetic:
                outputs = flat(model(*inputs))
                pairs = [
                    (o, g.to(o.dtype))
                    for o, g in zip(outputs, passed, strict=True)
                    if is_float(o) and o.requires_grad
                ]
                found = torch.autograd.grad(
                    [o for o, _ in pairs], leaves, [g for _, g in pairs], allow_unused=True
                )
        return tuple(
            torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)
        )

    def _arithmetic(self, name: str | None, inputs: list[Any]) -> tuple[list[Any], Any]:
        """Return the inputs and the mode for an arithmetic."""
        how, _, salt = (name or "").partition("-")
        if how in NARROW and isinstance(self._problem, LoadedFunction):
            return self._problem.rounding(inputs, how, int(salt))
        return inputs, _arithmetic(name)

    def _with_spread(
        self, asked: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs in float64, then the deviations of right results; see `Stray`."""
        truth = self._truth(asked, cast_tensors(tensors, torch.float64), 0)
        if any(t.is_complex() for t in truth):
            raise NotImplementedError("complex results are evaluated one by one")
        strays = [Stray(t) for t in truth]
        for run in asked["runs"]:
            dtype = getattr(torch, run["dtype"])
            # Models may write into their inputs.
            given = cast_tensors(tensors, dtype)
            if run["columns"]:
                given = {n: t if t.ndim < 2 else t.mT.contiguous().mT for n, t in given.items()}
            try:
                outputs = self._truth({**asked, **run}, given, 0)
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, TypeError, ValueError):
                continue
            for stray, output, promised in zip(strays, outputs, asked["promised"], strict=True):
                rounds = run["dtype"] != "float64"
                stray.add(output, promised if rounds else None, settles=run["settles"])
        return (*truth, *(stray.spread() for stray in strays))

    def _ready(
        self, asked: Mapping[str, Any], dtype: torch.dtype, tensors: Mapping[str, torch.Tensor]
    ) -> Any:
        """Return the model for the constants, dtype and mode, with the given weights."""
        constants, training = asked["constants"], asked["training"]
        given = any(name.startswith("weights.") for name in tensors)
        key = (constants, str(dtype), training, given)
        if key not in self._models:
            model = cast(self._built(constants, tensors), dtype, home(tensors))
            if training is not None:
                model.train(training)
            own = state(model)
            size = sum(t.numel() for t in own.values()) * (len(self._models) + 1)
            if len(self._models) >= _KEPT_MODELS or size > _KEPT_ELEMENTS:
                self._models.clear()
            kept = {n: t.clone() for n, t in own.items() if f"weights.{n}" not in tensors}
            self._models[key] = _Ready(model=model, kept=kept, attributes=Attributes(model))
        ready = self._models[key]
        ready.attributes.restore()
        for name, tensor in state(ready.model).items():
            before = ready.kept.get(name)
            tensor.copy_(tensors[f"weights.{name}"] if before is None else before)
        return ready.model

    def _built(self, constants: str, tensors: Mapping[str, torch.Tensor]) -> Any:
        """Return the model; large parameters stay uninitialized if nothing else depends on them."""
        with Unfilled() as unfilled:
            model = seeded(0, lambda: self._problem.build(constants))
        left = [t for n, t in state(model).items() if f"weights.{n}" not in tensors]
        # A counter that begins at zero depends on nothing.
        follows = any(is_float(t) or t.ndim for t in left) or any(True for _ in attributes(model))
        if not (follows or unfilled.drew_numbers):
            return model
        return seeded(0, lambda: self._problem.build(constants))
