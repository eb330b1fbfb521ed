"""Remember how an operation of the language treats its arguments' types.

Between `a + b` and the one NumPy call that it takes lie the language's rules: promotion,
broadcasting, implicit conversions. They look at types and constants alone, for the compiler has
nothing else to look at, so for equal types they always ask the builder for the same operations.
The first call is made by the language itself, with a builder that takes notes; later ones repeat
the notes with their own data. What could make the notes wrong for another call (a look at the
data, an unknown argument) is noticed, and such operations always go through the language.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from operator import itemgetter
from typing import Any, ClassVar

import triton.language as tl
import triton.runtime.interpreter as it
from triton.language.semantic import TritonSemantic
from triton.runtime.interpreter import TensorHandle

from kerneltruth.runner.interpreter.types import token
from kerneltruth.runner.interpreter.versions import adapter

_TENSOR = tl.core.tensor
_HANDLES = tuple(getattr(it, name) for name in adapter().handles)
_PLAIN = frozenset({int, bool, str, type(None)})
# Operations of constants alone are done once, if they depend on nothing else.
_PURE = frozenset(
    [
        "create_splat",
        "create_make_range",
        "create_int_cast",
        "create_fp_trunc",
        "create_fp_ext",
        "create_fp_to_fp",
        "create_si_to_fp",
        "create_ui_to_fp",
        "create_broadcast",
        "create_expand_dims",
        "create_bitcast",
    ]
)
_MOST_PLANS = 10_000
_MOST_CONSTANT_BYTES = 64 * 2**20

Operation = Callable[..., Any]
# What to do with the arguments' handles; a number if the result is that argument itself; None if
# the language must be asked each time.
OperationPlan = Callable[[list[Any]], Any] | int | None


class _State:
    # Only while the language is the interpreter's.
    in_use = False
    plans: ClassVar[dict[tuple[Any, ...], OperationPlan]] = {}
    constant_bytes = 0
    recorder: _RecordingBuilder | None = None


class _RecordingBuilder:
    """A builder that does what the interpreter's does and takes notes."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self.steps: list[tuple[Operation, list[int]]] = []
        # What the steps take and give, by position; constants are known from the start.
        self.slots: list[Any] = []
        self.constant: list[bool] = []
        self.places: dict[int, int] = {}
        self.refused = False

    def add(self, value: Any, *, constant: bool) -> int:
        """Return a new slot that holds `value`."""
        self.slots.append(value)
        self.constant.append(constant)
        if isinstance(value, _HANDLES):
            self.refused |= id(value) in self.places
            self.places[id(value)] = len(self.slots) - 1
        return len(self.slots) - 1

    def place(self, value: Any) -> int:
        """Return the slot of an argument; a new one for a constant."""
        if id(value) in self.places:
            return self.places[id(value)]
        self.refused |= _holds_data(value)
        return self.add(value, constant=True)

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._builder, name)
        if not callable(real):
            return real
        if not name.startswith(("create_", "get_")):
            self.refused = True
            return real

        def noted(*args: Any, **kwargs: Any) -> Any:
            result = real(*args, **kwargs)
            # Types, and the names of cache policies, are constants.
            if not isinstance(result, (tl.dtype, str)):
                self._note(name, real, args, result)
                self.refused |= bool(kwargs)
            return result

        return noted

    def _note(self, name: str, real: Operation, args: tuple[Any, ...], result: Any) -> None:
        places = [self.place(a) for a in args]
        if result is not None and not isinstance(result, _HANDLES):
            self.refused = True
        pure = name.startswith("get_") or name in _PURE
        if pure and isinstance(result, TensorHandle) and all(self.constant[p] for p in places):
            result.data.setflags(write=False)
            self.add(result, constant=True)
            return
        self.steps.append((real, places))
        self.add(result, constant=False)


def _holds_data(value: Any) -> bool:
    if isinstance(value, (list, tuple, tl.tuple)):
        return any(_holds_data(item) for item in value)
    return isinstance(value, (*_HANDLES, _TENSOR, dict))


def use(*, on: bool) -> None:
    """From now on operations go by plans, or not."""
    _State.in_use = on


def note_look() -> None:
    """Data were looked at, which another call may answer differently."""
    if _State.recorder is not None:
        _State.recorder.refused = True


def planned(slow: Operation, ambient: Callable[[], Any] | None = None) -> Operation:
    """`slow(semantic, *args, **kwargs)`, remembered by its arguments' types.

    The semantic is the interpreter's where the caller gives none as `_semantic`. For operations
    that look at their arguments' types and constants alone, and at what `ambient` returns, a
    string or None.
    """
    usual = it.interpreter_semantic
    start = [slow]

    def call(*args: Any, **kwargs: Any) -> Any:
        semantic = kwargs.pop("_semantic", None) if kwargs else None
        if semantic is not None or not _State.in_use:
            return slow(semantic or usual, *args, **kwargs)
        key: list[Any] = start.copy() if ambient is None else [slow, ambient()]
        handles: list[Any] = []
        # As `_describe` does, without a call for the most frequent kinds.
        for value in args:
            kind = type(value)
            if kind is _TENSOR:
                handles.append(value.handle)
                key.append(token(value.type))
            elif kind in _PLAIN:
                key.append(kind)
                key.append(value)
            elif not _describe(value, key):
                return slow(usual, *args, **kwargs)
        for name, value in kwargs.items():
            key.append(name)
            if type(value) is _TENSOR:
                handles.append(value.handle)
            if not _describe(value, key):
                return slow(usual, *args, **kwargs)
        signature = tuple(key)
        try:
            plan = _State.plans[signature]
        except KeyError:
            return _first(signature, slow, args, kwargs)
        if isinstance(plan, int):
            return [a for a in (*args, *kwargs.values()) if type(a) is _TENSOR][plan]
        return slow(usual, *args, **kwargs) if plan is None else plan(handles)

    return call


def _describe(value: Any, key: list[Any]) -> bool:
    """Add to the key all that the language can tell of a value; False where that is unknown."""
    kind = type(value)
    if kind is _TENSOR:
        key.append(token(value.type))
        return True
    key.append(kind)
    if kind in _PLAIN:
        key.append(value)
    elif kind is float:
        # Zeros of either sign are equal, a NaN is not equal to itself.
        key.append(value.hex())
        return not math.isnan(value)
    elif kind is list or kind is tuple:
        key.append(len(value))
        return all(type(v) is not _TENSOR and _describe(v, key) for v in value)
    elif kind is slice:
        return all(_describe(v, key) for v in (value.start, value.stop, value.step))
    elif kind is tl.constexpr:
        return _describe(value.value, key)
    elif isinstance(value, tl.dtype):
        key.append(token(value))
    else:
        return False
    return True


def _first(
    key: tuple[Any, ...], slow: Operation, args: tuple[Any, ...], kwargs: dict[str, object]
) -> Any:
    """Let the language itself make the call, and keep the notes."""
    recorder = _RecordingBuilder(it.interpreter_builder)
    outer, _State.recorder = _State.recorder, recorder
    originals: list[Any] = []
    twins: list[Any] = []

    def own(value: Any) -> Any:
        # A handle for each argument: two may share one here and not in another call.
        if type(value) is not _TENSOR:
            return value
        recorder.refused |= not isinstance(value.handle, _HANDLES)
        twin = _TENSOR(copy.copy(value.handle), value.type)
        recorder.add(twin.handle, constant=False)
        originals.append(value)
        twins.append(twin)
        return twin

    try:
        own_args = [own(a) for a in args]
        own_kwargs = {name: own(a) for name, a in kwargs.items()}
        result = slow(TritonSemantic(recorder), *own_args, **own_kwargs)
    finally:
        _State.recorder = outer
    same = next((i for i, twin in enumerate(twins) if twin is result), None)
    if same is not None:
        _remember(key, recorder, None if recorder.steps or recorder.refused else same)
        return originals[same]
    _remember(key, recorder, _plan(recorder, result))
    return result


def _remember(key: tuple[Any, ...], recorder: _RecordingBuilder, plan: OperationPlan) -> None:
    pairs = zip(recorder.slots, recorder.constant, strict=True)
    kept = [s.data.nbytes for s, constant in pairs if constant and isinstance(s, TensorHandle)]
    _State.constant_bytes += sum(kept)
    if len(_State.plans) >= _MOST_PLANS or _State.constant_bytes > _MOST_CONSTANT_BYTES:
        _State.plans.clear()
        _State.constant_bytes = sum(kept)
    _State.plans[key] = plan


def _plan(recorder: _RecordingBuilder, result: Any) -> OperationPlan:
    """Return the notes as a function of the arguments; None if they hold for this call alone."""
    if recorder.refused or type(result) is not _TENSOR:
        return None
    if result.handle is not None and id(result.handle) not in recorder.places:
        return None
    made = recorder.place(result.handle)
    # In a plan, slots stand in this order: constants, arguments, results of the steps.
    order = sorted(range(len(recorder.slots)), key=lambda p: not recorder.constant[p])
    new = {old: position for position, old in enumerate(order)}
    constants = [recorder.slots[p] for p in order if recorder.constant[p]]
    steps = [(real, _taking([new[p] for p in taken])) for real, taken in recorder.steps]
    return _runnable(constants, steps, new[made], result)


def _taking(places: list[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda slots: tuple([slots[p] for p in places])


def _runnable(
    constants: list[Any],
    steps: list[tuple[Operation, Callable[[list[Any]], tuple[Any, ...]]]],
    made: int,
    like: Any,
) -> OperationPlan:
    new, kind = object.__new__, _TENSOR
    type_, dtype, numel, shape = like.type, like.dtype, like.numel, like.shape

    def run(handles: list[Any]) -> Any:
        slots = constants + handles
        for real, take in steps:
            slots.append(real(*take(slots)))
        result: Any = new(kind)
        result.handle = slots[made]
        result.type = type_
        result.dtype = dtype
        result.numel = numel
        result.shape = shape
        return result

    return run
