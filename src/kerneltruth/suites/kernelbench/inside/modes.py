"""Watch or change a model's operators: counting, shortening, products in TF32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.suites.kernelbench.inside.model import flat, is_float
from kerneltruth.tasks.gpu.errors import drawn

_TF32_BITS_DROPPED = 13


def _operator(func: Any) -> str:
    return str(func.overloadpacket.__name__)


_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "linear")


# Operators whose tensors are not combined element by element.
_NOT_ELEMENTWISE = ("conv", "norm", "attention", "pool", "embedding", "index", "gather", "scatter")


class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts floating-point operations, and the most terms that one sum has.

    Attributes:
        stretched: which operands are broadcast along which dim, by operator: `mul:1:2` where the
            second-to-last dim of the second operand has size 1 and that of the result has not; and
            `cat:2:uneven` where two parts of different sizes are put together.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops, self.terms, self.products = 0, 1, 0
        self.stretched: set[str] = set()

    def count(
        self, name: str, tensors: list[torch.Tensor], args: Sequence[Any], made: torch.Tensor
    ) -> None:
        """Add one operator's work."""
        terms = _terms(name, tensors, args, made)
        if name in _PRODUCTS or "conv" in name or "attention" in name:
            self.products += 1
            self.flops += 2 * made.numel() * terms
        else:
            self.flops += max(made.numel(), *(t.numel() for t in tensors))
        self.terms = max(self.terms, terms)


def _counted(
    counter: Counter, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    result = func(*args, **(kwargs or {}))
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    made = [r for r in flat(result) if isinstance(r, torch.Tensor)]
    if tensors and made:
        name = _operator(func)
        counter.count(name, tensors, args, made[0])
        counter.stretched.update(_stretched(name, tensors, made[0]))
    if made:
        counter.stretched.update(_uneven(_operator(func), args, kwargs or {}))
    return result


# In a class body, torch would wrap it so that its first call imports all of torch._dynamo.
Counter.__torch_dispatch__ = _counted  # type: ignore[assignment,method-assign]


def _stretched(name: str, tensors: list[torch.Tensor], made: torch.Tensor) -> Iterator[str]:
    """Return the operands that an operator broadcasts, and along which dims, from the last."""
    if name in _PRODUCTS or any(word in name for word in _NOT_ELEMENTWISE):
        return
    if len(tensors) < 2 and name != "expand":
        return
    for i, operand in enumerate(tensors):
        pairs = list(zip(reversed(operand.shape), reversed(made.shape), strict=False))
        if operand.ndim <= made.ndim and all(mine in (1, whole) for mine, whole in pairs):
            for back, (mine, whole) in enumerate(pairs, 1):
                if mine == 1 != whole:
                    yield f"{name}:{i}:{back}"


def _uneven(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[str]:
    """Yield a mode if concatenated parts differ in size, like the halves of an odd dim."""
    if name != "cat" or not args:
        return
    dim = kwargs.get("dim", args[1] if len(args) > 1 else 0)
    if len({part.shape[dim] for part in args[0] if part.shape != (0,)}) > 1:
        yield f"cat:{len(args[0])}:uneven"


def _terms(name: str, tensors: list[torch.Tensor], args: Sequence[Any], made: torch.Tensor) -> int:
    """Return how many terms one element of an operator's result sums."""
    first = tensors[0]
    if "conv" in name and len(tensors) > 1:
        return max(tensors[1].numel() // max(tensors[1].shape[0], 1), 1)
    if "attention" in name and len(tensors) > 1:
        return max(tensors[1].shape[-2], first.shape[-1])
    if name in _PRODUCTS:
        left = tensors[-2] if len(tensors) > 1 else first
        return max(left.shape[-1] if left.ndim else 1, 1)
    if any(word in name for word in ("softmax", "cumsum", "cumprod", "logcumsumexp")):
        dim = next((a for a in args if type(a) is int), -1)
        return first.shape[dim] if first.ndim else 1
    if "group_norm" in name or "layer_norm" in name:
        return max(first.numel() // max(first.shape[0], 1), 1)
    return max(first.numel() // max(made.numel(), 1), 1)


class OneStep(TorchFunctionMode):
    """Run one step of a recurrent layer's sequence, and count it for all steps.

    Without computing, a further step shows nothing, and hundreds of them take seconds.
    """

    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self._counter = counter

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Shorten, call, and lengthen the output."""
        if getattr(func, "__name__", "") not in _RECURRENT or not _is_padded(args):
            return func(*args, **(kwargs or {}))
        sequence, *others = args
        time = 1 if args[_BATCH_FIRST] else 0
        steps = sequence.shape[time]
        if steps < 2 or not sequence.is_meta:
            return func(*args, **(kwargs or {}))
        flops, products = self._counter.flops, self._counter.products
        output, *states = func(sequence.narrow(time, 0, 1), *others, **(kwargs or {}))
        self._counter.flops = flops + steps * (self._counter.flops - flops)
        self._counter.products = products + steps * (self._counter.products - products)
        shape = list(output.shape)
        shape[time] = steps
        return (output.new_empty(shape), *states)


_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_BATCH_FIRST = 8


def _is_padded(args: Sequence[Any]) -> bool:
    """Return whether the call takes a plain tensor; a packed sequence has its weights later."""
    return len(args) > _BATCH_FIRST and isinstance(args[3], bool)


class Unfilled(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Leave large parameters uninitialized, whatever an initializer would write.

    A model that is built for its shapes alone is then cheap, on a real device too.

    Attributes:
        drew_numbers: whether Python numbers may have been drawn: they change if parameters draw
            theirs first.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._drew = self.drew_numbers = False

    def watch(self, func: Any, target: Any) -> None:
        """Note an operator that draws, and one that reads a number after that."""
        if torch.Tag.nondeterministic_seeded in func.tags:
            self._drew |= not isinstance(target, torch.nn.Parameter)
        self.drew_numbers |= self._drew and _operator(func) == "_local_scalar_dense"


def _left(
    mode: Unfilled, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    target = args[0] if args else None
    if (
        isinstance(target, torch.nn.Parameter)
        and target.numel() > _LARGE
        and _operator(func).endswith("_")
    ):
        return target
    mode.watch(func, target)
    return func(*args, **(kwargs or {}))


_LARGE = 4096
Unfilled.__torch_dispatch__ = _left  # type: ignore[assignment,method-assign]


class Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Round factors of matrix products and convolutions to 10 mantissa bits, as TF32 does."""

    def __init__(self, how: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._half = 1 << (_TF32_BITS_DROPPED - 1) if how == "rounded" else 0

    def cut(self, value: Any) -> Any:
        """Round a factor to TF32's bits."""
        if not is_float(value):
            return value
        single = value.to(torch.float32)
        bits = (single.view(torch.int32).to(torch.int64) + self._half) & ~(
            (1 << _TF32_BITS_DROPPED) - 1
        )
        cut = torch.where(bits >= 2**31, bits - 2**32, bits).to(torch.int32).view(torch.float32)
        return torch.where(torch.isfinite(single), cut, single).to(value.dtype)


def _rounded(
    mode: Rounding, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    name = _operator(func)
    if name in _PRODUCTS or "conv" in name or "attention" in name:
        # The first operand of these is added, not multiplied.
        spared = 1 if name in ("addmm", "baddbmm", "addbmm", "addmv") else 0
        args = [mode.cut(a) if i >= spared else a for i, a in enumerate(args)]
    return func(*args, **(kwargs or {}))


Rounding.__torch_dispatch__ = _rounded  # type: ignore[assignment,method-assign]


class Narrowing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Round every float32 result to a narrower dtype, up or down at random.

    Right kernels in a narrow dtype round other intermediate results than PyTorch on a CPU does, and
    sum in other orders. One evaluation is one draw of their error; if few elements make a row it
    may be close to the reference by luck.
    """

    def __init__(self, dtype: str, salt: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._dtype = getattr(torch, dtype)
        self._dropped = NARROW[dtype]
        # In another order of summation, other partial sums may overflow.
        self._most = torch.finfo(self._dtype).max / (_OVERFLOWS if salt else 1)
        self._salt = salt

    def narrow(self, value: Any) -> Any:
        """Round each element to one of its two neighbours in the dtype."""
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return value
        self._salt += 1
        bits = value.contiguous().view(torch.int32).to(torch.int64)
        bits += drawn(value.shape, self._salt, value.device) & ((1 << self._dropped) - 1)
        bits &= ~((1 << self._dropped) - 1)
        signed = torch.where(bits >= 2**31, bits - 2**32, bits).to(torch.int32)
        moved = signed.view(torch.float32).to(self._dtype).to(torch.float32)
        moved = torch.where(moved.abs() > self._most, moved.sign() * torch.inf, moved)
        return torch.where(value.isfinite(), moved, value)


def _narrowed(
    mode: Narrowing, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    result = func(*args, **(kwargs or {}))
    if getattr(func, "is_view", False):
        return result
    if _operator(func).endswith("_"):
        if isinstance(result, torch.Tensor):
            result.copy_(mode.narrow(result))
        return result
    if isinstance(result, tuple | list):
        # All but the first are statistics, which PyTorch keeps in float32.
        return type(result)((mode.narrow(result[0]), *result[1:])) if result else result
    return mode.narrow(result)


# Narrow dtypes, with the bits of float32's mantissa that they lack.
NARROW = {"bfloat16": 16, "float16": 13}
_OVERFLOWS = 8
Narrowing.__torch_dispatch__ = _narrowed  # type: ignore[assignment,method-assign]
