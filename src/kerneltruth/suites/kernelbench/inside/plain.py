"""Give a file with a plain function the form of a KernelBench problem: a model and its inputs."""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from traceback import extract_tb
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.suites.kernelbench.inside.model import FILE, LoadedProblem, flat, is_float
from kerneltruth.suites.kernelbench.inside.widths import WIDENED, RoundingByChance, Widening
from kerneltruth.suites.kernelbench.messages import ExampleAnswer


class NoReference(Exception):
    """The file does something that a reference must not do."""


def arguments_of(module: types.ModuleType, makes: str) -> list[Any]:
    """Return the example arguments; a single tensor is one argument.

    Raises:
        NoReference: they are none.
    """
    with Here():
        made = getattr(module, makes)()
    if isinstance(made, torch.Tensor):
        return [made]
    if not isinstance(made, tuple | list) or not made:
        what = "nothing" if made is None or made == () else f"a {type(made).__name__}"
        raise NoReference(f"{makes}() returns {what}; return the example arguments as a tuple")
    for i, value in enumerate(made):
        members = value if isinstance(value, tuple | list) else [value]
        strange = [v for v in members if not isinstance(v, torch.Tensor | None | int | float | str)]
        if strange:
            raise NoReference(
                f"{makes}() returns a {type(strange[0]).__name__} as argument {i + 1}; return "
                "tensors, lists of tensors, numbers, bools, strings or None"
            )
        tensors = [v for v in members if isinstance(v, torch.Tensor)]
        if tensors and len(tensors) < len(members):
            raise NoReference(
                f"{makes}() returns tensors and others in one list as argument {i + 1}; return "
                "tensors alone in it, and the others as arguments"
            )
        if not all(v.numel() for v in tensors):
            raise NoReference(
                f"{makes}() returns a tensor without elements as argument {i + 1}; return ones "
                "that have some, and leave the argument out where it stands for none"
            )
        unknown = [undrawable(v) for v in tensors]
        if any(unknown):
            raise NoReference(
                f"{makes}() returns a tensor of {next(filter(None, unknown))} as argument {i + 1}; "
                "return dense real numbers, integers or bools (bytes of others as uint8, which the "
                "function views)"
            )
    return list(made)


def undrawable(tensor: torch.Tensor) -> str | None:
    """Return the dtype or layout for which no values can be drawn; None if they can."""
    if tensor.layout != torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    known = tensor.dtype in (torch.float64, *WIDENED, torch.bool)
    if known or not (tensor.is_floating_point() or tensor.is_complex()):
        return None
    return str(tensor.dtype).removeprefix("torch.")


def is_list(value: Any) -> bool:
    """Return whether an argument is a list of tensors."""
    return (
        isinstance(value, tuple | list)
        and bool(value)
        and all(isinstance(v, torch.Tensor) for v in value)
    )


_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(function: Callable[..., Any], kinds: Sequence[Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        # A function of torch's own does not say.
        return []
    return [p.name for p in parameters if p.kind in kinds]


def _named_alone(function: Callable[..., Any]) -> list[str]:
    """Return the parameters that take arguments by name alone, and get those after the others."""
    if _parameters(function, (inspect.Parameter.VAR_POSITIONAL,)):
        return []
    return _parameters(function, (inspect.Parameter.KEYWORD_ONLY,))


def called(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call a function on arguments in the order of its parameters."""
    named = _named_alone(function)
    places = len(_parameters(function, _BY_PLACE)) if named else len(arguments)
    by_name = dict(zip(named, arguments[places:], strict=False))
    return function(*arguments[:places], *arguments[places + len(named) :], **by_name)


def names_of(function: Callable[..., Any], arguments: Sequence[Any]) -> list[str]:
    """Return a name for each flattened argument: the parameter's, with a number in a list."""
    found: list[str] = []
    known = [*_parameters(function, _BY_PLACE), *_named_alone(function)]
    for i, argument in enumerate(arguments):
        name = known[i] if i < len(known) else f"input_{i}"
        members = len(argument) if is_list(argument) else None
        found += [name] if members is None else [f"{name}.{j}" for j in range(members)]
    return found


class LoadedFunction(LoadedProblem):
    """A file with a plain function in the place of a model, and example arguments."""

    def __init__(self, source: str, name: str, makes: str) -> None:
        super().__init__(source)
        self.name = name
        self.makes: str = makes
        self._lists: list[int | None] = []
        self._narrow: list[bool] = []

    def space(self, constants: str) -> types.ModuleType:
        """Return the module with some constants replaced, and a model in it."""
        with Here():
            module = super().space(constants)
        if not hasattr(module, "get_init_inputs"):
            module.get_init_inputs = list  # type: ignore[attr-defined]
            module.Model = self._model(getattr(module, self.name))  # type: ignore[attr-defined]
        return module

    def inputs(self, constants: str) -> list[Any]:
        """Return the example arguments, with the members of lists in their place."""
        given = arguments_of(self.space(constants), self.makes)
        self._lists = [len(a) if is_list(a) else None for a in given]
        found = [leaf for a in given for leaf in (a if is_list(a) else [a])]
        own = self.working(found)
        self._narrow = [is_float(v) and v.dtype == own for v in found]
        return found

    def names(self, model: Any, inputs: Sequence[Any]) -> list[str]:
        """Return the names of the function's parameters; members of a list have a number."""
        return names_of(getattr(self.space(self._constants), self.name), self._whole(inputs))

    def working(self, inputs: Sequence[Any]) -> torch.dtype:
        """Return the narrowest dtype of the real inputs, else float32."""
        found = {v.dtype for v in inputs if is_float(v)}
        return min(found, key=lambda d: (d.itemsize, str(d)), default=torch.float32)

    def cast(self, inputs: Sequence[Any], dtype: torch.dtype) -> list[Any]:
        """Return the inputs in a dtype; those wider than the others keep theirs."""
        own = self.working(inputs)
        every = dtype == torch.float64
        return [v.to(dtype) if is_float(v) and (every or v.dtype == own) else v for v in inputs]

    def layout(self, value: Any) -> str:
        """Return the layout of an example argument; overlapping elements count as contiguous."""
        if not isinstance(value, torch.Tensor) or value.is_contiguous() or 0 in value.stride():
            return "contiguous"
        if value.ndim == 4 and value.is_contiguous(memory_format=torch.channels_last):
            return "channels_last"
        if value.ndim > 1 and value.stride(-1) > value.stride(-2):
            return "transposed"
        return "strided" if value.stride(-1) > 1 else "row_gaps"

    def example(self, value: Any) -> tuple[tuple[int, int], ...]:
        """Return the size and stride of each dim of an argument that is not contiguous."""
        if self.layout(value) == "contiguous":
            return ()
        return tuple(zip(value.shape, value.stride(), strict=True))

    @contextlib.contextmanager
    def evaluating(self, dtype: torch.dtype) -> Iterator[None]:
        """Keep every float as wide as float64 if that is the dtype."""
        exact = dtype == torch.float64
        wide = Widening(dtype) if exact else contextlib.nullcontext()
        with super().evaluating(torch.float64 if exact else torch.float32), wide:
            yield

    def rounding(
        self, inputs: Sequence[Any], name: str, salt: int
    ) -> tuple[list[Any], TorchDispatchMode]:
        """Return the inputs in a narrow dtype, and a mode that rounds as its users may."""
        dtype = getattr(torch, name)
        if not self._narrow:
            self.inputs("{}")
        pairs = zip(inputs, self._narrow, strict=True)
        return [v.to(dtype) if narrow else v for v, narrow in pairs], RoundingByChance(dtype, salt)

    def numbers(self, model: Any, inputs: Sequence[Any]) -> dict[str, str]:
        """Return other values of bools and real numbers among the arguments that matter.

        An integer is rather a dim or a count, which hangs together with shapes.
        """
        found = {}
        before = flat(model(*inputs))
        for i, (name, value) in enumerate(zip(self.names(model, inputs), inputs, strict=True)):
            other = _other_number(value)
            if other is None:
                continue
            try:
                after = flat(model(*inputs[:i], other, *inputs[i + 1 :]))
            except (RuntimeError, ValueError, TypeError, ArithmeticError, AssertionError):
                continue
            if _alike(before, after) and not all(map(_same, before, after)):
                found[name] = repr(other)
        return found

    def _whole(self, given: Sequence[Any]) -> list[Any]:
        """Return the arguments with their lists again."""
        if not self._lists:
            self.inputs("{}")
        rest = iter(given)
        return [next(rest) if n is None else [next(rest) for _ in range(n)] for n in self._lists]

    def _model(self, function: Callable[..., Any]) -> type[torch.nn.Module]:
        """Return a model without weights that calls a function."""
        whole = self._whole

        class FunctionModel(torch.nn.Module):
            def forward(self, *given: Any) -> Any:
                arguments = whole(given)
                with Here():
                    try:
                        return called(function, arguments)
                    except RuntimeError:
                        if not any(is_float(v) and v.dtype == torch.float32 for v in given):
                            raise
                    # It converts to a narrower float, which takes no float32 beside it.
                    with Widening(torch.float32):
                        return called(function, arguments)

        return FunctionModel


def example(problem: LoadedFunction, constants: str) -> ExampleAnswer:
    """Return why the file is no reference, as far as calls on its example show; else nothing."""
    try:
        with _Located("the file"):
            module = problem.space(constants)
        _try(module, problem.name, problem.makes)
    except NoReference as refusal:
        return ExampleAnswer(trouble=str(refusal))
    return ExampleAnswer()


def _try(module: types.ModuleType, name: str, makes: str) -> None:
    torch.manual_seed(1)
    with _Located(f"{makes}()"):
        given = arguments_of(module, makes)
    before = [_copied(a) for a in given]
    with _Located(f"{name}()"):
        first = _called(module, name, given)
    changed = [i for i, (a, b) in enumerate(zip(given, before, strict=True)) if not _same(a, b)]
    if changed:
        raise NoReference(
            f"{name}() changes argument {changed[0] + 1}; compute the result from a clone of it"
        )
    if not any(isinstance(o, torch.Tensor) for o in first):
        raise NoReference(f"{name}() returns no tensor; return the result as a tensor or a tuple")
    strange = [type(o).__name__ for o in first if not isinstance(o, torch.Tensor)]
    if strange:
        raise NoReference(f"{name}() returns {strange[0]} beside a tensor; return tensors alone")
    if not any(o.numel() for o in first):
        raise NoReference(f"{name}() returns no elements; let {makes}() give tensors with some")
    # Not every narrow float says what is finite.
    if not any((o.double() if is_float(o) else o).isfinite().any() for o in first):
        raise NoReference(
            f"{name}() returns no finite number; let {makes}() give values with a finite result"
        )
    first = [_copied(o) for o in first]
    torch.manual_seed(2)
    second = _called(module, name, given)
    if not all(map(_same, first, second)):
        raise NoReference(
            f"{name}() draws at random: two calls on the same arguments differ; pass what is drawn "
            "as an argument"
        )


def _called(module: types.ModuleType, name: str, given: Sequence[Any]) -> list[Any]:
    with Here():
        return flat(called(getattr(module, name), given))


class Here(TorchFunctionMode):
    """Make tensors where the judge needs them, even if the file asks for a GPU."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Leave out a GPU among the arguments, and a generator where only shapes are asked for."""
        if func is torch.Tensor.cuda:
            return args[0]
        given = {k: v for k, v in (kwargs or {}).items() if k != "device" or not _is_gpu(v)}
        if "generator" in given and torch.get_default_device().type == "meta":
            del given["generator"]
        if func is torch.Tensor.to:
            if _is_gpu(args[1] if len(args) > 1 else None):
                # As a module's `to` calls it: the dtype may be None, and follows the device.
                args = (args[0], *(a for a in args[2:3] if a is not None))
            given = {k: v for k, v in given.items() if k != "non_blocking" and v is not None}
            if len(args) == 1 and not given:
                return args[0]
        return func(*args, **given)


def _is_gpu(value: Any) -> bool:
    named = isinstance(value, str | torch.device)
    return named and str(value).partition(":")[0] in ("cuda", "hip", "xpu")


class _Located:
    """Turns what a call raises into one line with the line of the file."""

    def __init__(self, called: str) -> None:
        self._called = called

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, NoReference):
            lines = [f.lineno for f in extract_tb(trace) if f.filename == FILE]
            said = str(error).strip().splitlines() or [""]
            where = f" at line {lines[-1]}" if lines else ""
            rule = "correct it, so that it runs on its own example"
            if isinstance(error, ModuleNotFoundError):
                rule = "a reference is one file: install the module, or write it into the file"
            raise NoReference(
                f"{self._called} raises {type(error).__name__}{where}: {said[0]}; {rule}"
            ) from error


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return [_copied(v) for v in value] if isinstance(value, tuple | list) else value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        alike = one.shape == other.shape and one.dtype == other.dtype
        return alike and bool(torch.allclose(one, other, rtol=0, atol=0, equal_nan=True))
    return bool(one == other)


def _other_number(value: Any) -> Any:
    """Return another value for a bool or a real number; None for anything else."""
    if isinstance(value, bool):
        return not value
    if not isinstance(value, float):
        return None
    # An eps that guards a division shows only if it is not that small.
    return _SHOWING if abs(value) < _TINY else value / 2


_TINY, _SHOWING = 1e-3, 1e-2


def _alike(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Return whether results have the same form, and the second is finite where the first is."""
    return len(before) == len(after) and all(
        isinstance(a, torch.Tensor) == isinstance(b, torch.Tensor)
        and (
            not isinstance(a, torch.Tensor)
            or (
                a.shape == b.shape
                and a.dtype == b.dtype
                and bool((b.isfinite() | ~a.isfinite()).all())
            )
        )
        for a, b in zip(before, after, strict=True)
    )
