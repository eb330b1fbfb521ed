"""Serve the judge's requests in the child.

`messages.py` has the requests. Calls of the model (`outputs`, `gradients` and `with_spread`) run on
the device that holds the inputs.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import torch
from torch.utils._python_dispatch import _pop_mode, _push_mode

from kerneltruth.documents.model import dumps
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
from kerneltruth.suites.kernelbench.messages import (
    PASSED,
    AnyRequest,
    DrawnRequest,
    ExampleAnswer,
    ExampleRequest,
    FactsRequest,
    GradientsRequest,
    IgnoresRequest,
    OutlineRequest,
    OutputsRequest,
    ProblemCall,
    RangesRequest,
    RunsRequest,
    SpreadRequest,
)
from kerneltruth.suites.kernelbench.schema import Outline
from kerneltruth.tasks.compositions import Composed, near
from kerneltruth.tasks.gpu import OnGpu

_READER = msgspec.json.Decoder(AnyRequest)
# The arithmetic of activations that are composed.
COMPOSED = "composed"
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


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """Have `torch.compile` return what it is given.

    A reference is called in many sizes and dtypes, and it would compile for each.
    """
    compiling = torch.compile
    torch.compile = _as_given
    try:
        yield
    finally:
        torch.compile = compiling


def _as_given(model: Any = None, **_: Any) -> Any:
    return _as_given if model is None else model


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


def _packed(value: object) -> torch.Tensor:
    return torch.frombuffer(bytearray(dumps(value).encode()), dtype=torch.uint8)


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
        self._without_activations: set[str] = set()

    def answer(self, request: str, **tensors: torch.Tensor) -> Any:
        """Serve one request; the result is JSON as bytes, or tensors."""
        content = _READER.decode(request)
        torch.set_num_threads(content.threads)
        with _unguarded(), _uncompiled(), torch.no_grad():
            if home(tensors).type == "cpu":
                return self._answer(content, tensors)
            try:
                return tuple(o.cpu() for o in self._answer(content, tensors))
            finally:
                # Other processes need the memory between requests.
                if self._elements() > _KEPT_ON_DEVICE:
                    self._models.clear()
                torch.cuda.empty_cache()

    def _answer(self, request: AnyRequest, tensors: Mapping[str, torch.Tensor]) -> Any:
        match request:
            case OutputsRequest(call=call, count=None):
                composed = call.arithmetic == COMPOSED
                return self._composed(call, tensors) if composed else self._truth(call, tensors, 0)
            case OutputsRequest(call=call, count=int(count)):
                drawn = [self._truth(call, tensors, seed) for seed in range(count)]
                return tuple(torch.stack(same) for same in zip(*drawn, strict=True))
            case GradientsRequest(call=call):
                return self._gradients(call, tensors)
            case SpreadRequest():
                return self._with_spread(request, tensors)
            case DrawnRequest():
                return self._drawn(request)
            case RangesRequest():
                return _packed(ranges(self._problem, request))
            case FactsRequest():
                return _packed(facts(self._problem, request))
            case IgnoresRequest():
                return _packed(ignores(self._problem, request))
            case ExampleRequest(constants=constants):
                return _packed(self._example(constants))
            case RunsRequest():
                return _packed(runs(self._problem, request))
            case OutlineRequest():
                return _packed(self._outline(request))

    def _example(self, constants: str) -> ExampleAnswer:
        """Return why a plain function is no reference, as far as its example shows."""
        if not isinstance(self._problem, LoadedFunction):
            return ExampleAnswer()
        return example(self._problem, constants)

    def _elements(self) -> int:
        """The models that are kept."""
        return sum(
            t.numel() for ready in self._models.values() for t in state(ready.model).values()
        )

    def _outline(self, request: OutlineRequest) -> Outline:
        space = self._problem.space(request.constants)
        counter = Counter()
        outputs: list[Any] = []
        with without_dynamo(), self._laid_out:
            model = self._shaped(request.constants, request.device)
            with torch.device(request.device):
                init = space.get_init_inputs()
                inputs = self._problem.inputs(request.constants)
                if request.forward:
                    with counter, OneStep(counter):
                        outputs = flat(model(*inputs))
        return Outline(
            init=as_text(init),
            plain=is_plain(init),
            names=tuple(self._problem.names(model, inputs)),
            inputs=tuple(map(described, inputs)),
            state={n: tuple(t.shape) for n, t in state(model).items()},
            parameters=tuple(n for n, _ in model.named_parameters()),
            masks=tuple(n for n, t in state(model).items() if t.dtype == torch.bool),
            outputs=tuple(map(described, outputs)),
            flops=counter.flops,
            terms=counter.terms,
            products=counter.products,
            stretched=tuple(sorted(counter.stretched)),
        )

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

    def _drawn(self, request: DrawnRequest) -> tuple[torch.Tensor, ...]:
        """Return the tensor inputs, then the weights of these names, from a seed."""
        inputs = seeded(request.seed, lambda: self._problem.inputs(request.constants))
        made = state(seeded(request.seed, lambda: self._problem.build(request.constants)))
        given = [v for v in inputs if isinstance(v, torch.Tensor)]
        return tuple(t.detach().clone() for t in (*given, *(made[n] for n in request.weights)))

    def _truth(
        self, call: ProblemCall, tensors: Mapping[str, torch.Tensor], seed: int
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs for given inputs and weights, in the requested dtype; then updates."""
        dtype = getattr(torch, call.dtype)
        model = self._ready(call, dtype, tensors)
        where = home(tensors)
        evaluating = self._problem.evaluating(dtype)
        with evaluating, contextlib.nullcontext() if where.type == "cpu" else where:
            scalars = {n: ast.literal_eval(v) for n, v in call.scalars.items()}
            inputs = [tensors[n] if n in tensors else scalars[n] for n in call.order]
            seed_with(seed)
            inputs, arithmetic = self._arithmetic(call.arithmetic, inputs)
            with arithmetic:
                outputs = flat(model(*inputs))
            own = state(model)
            outputs += [own[n] for n in call.updated]
            return tuple(torch.as_tensor(o).clone() for o in outputs)

    def _composed(
        self, call: ProblemCall, tensors: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs with activations composed as kernels do.

        Raises:
            ValueError: the model has none of them in this mode.
        """
        called = repr((call.constants, call.training, call.scalars))
        if called not in self._without_activations:
            plainly = replace(call, arithmetic=None)
            # Models may write into their inputs.
            given = {n: t.clone() for n, t in tensors.items()}
            with Composed() as mode:
                composed = self._truth(plainly, given, 0)
            if mode.used:
                return near(composed, self._truth(plainly, tensors, 0))
            self._without_activations.add(called)
        raise ValueError("no activation ran that a kernel composes")

    def _gradients(
        self, call: ProblemCall, tensors: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Return the gradients of the real inputs, for those passed in at the real outputs."""
        passed = [t for n, t in tensors.items() if n.startswith(PASSED)]
        given = {n: t for n, t in tensors.items() if not n.startswith(PASSED)}
        leaves = [t.requires_grad_() for t in given.values() if is_float(t)]
        dtype = getattr(torch, call.dtype)
        scalars = {n: ast.literal_eval(v) for n, v in call.scalars.items()}
        inputs = [given[n] if n in given else scalars[n] for n in call.order]
        model = self._ready(call, dtype, given)
        with torch.enable_grad(), self._problem.evaluating(dtype):
            inputs, arithmetic = self._arithmetic(call.arithmetic, inputs)
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
        self, request: SpreadRequest, tensors: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Return the outputs in float64, then the deviations of right results; see `Stray`."""
        truth = self._truth(request.call, cast_tensors(tensors, torch.float64), 0)
        if any(t.is_complex() for t in truth):
            raise NotImplementedError("complex results are evaluated one by one")
        strays = [Stray(t) for t in truth]
        for variant in request.variants:
            # Models may write into their inputs.
            given = cast_tensors(tensors, getattr(torch, variant.dtype))
            if variant.columns:
                given = {n: t if t.ndim < 2 else t.mT.contiguous().mT for n, t in given.items()}
            try:
                call = replace(request.call, dtype=variant.dtype, arithmetic=variant.arithmetic)
                outputs = self._truth(call, given, 0)
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, TypeError, ValueError):
                continue
            for stray, output, promised in zip(strays, outputs, request.promised, strict=True):
                rounds = variant.dtype != "float64"
                stray.add(output, promised if rounds else None, settles=variant.settles)
        return (*truth, *(stray.spread() for stray in strays))

    def _ready(
        self, call: ProblemCall, dtype: torch.dtype, tensors: Mapping[str, torch.Tensor]
    ) -> Any:
        """Return the model for the constants, dtype and mode, with the given weights."""
        constants, training = call.constants, call.training
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
