"""Build the problem's module for some constants, and its models."""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch

from kerneltruth.runner.child.pretrained import as_text, from_text
from kerneltruth.suites.kernelbench.constants import sizes_in
from kerneltruth.suites.kernelbench.schema import Input

# The name of the file in tracebacks.
FILE = "<problem>"


class LoadedProblem:
    """A problem's source, run for one choice of constants after the other."""

    # The function that makes a plain function's inputs.
    makes: str | None = None

    def __init__(self, source: str) -> None:
        self._source = source
        self._constants = ""
        self._space: types.ModuleType | None = None

    def space(self, constants: str) -> types.ModuleType:
        """Return the module with some constants replaced, given as the text of a dict."""
        if self._space is None or constants != self._constants:
            replaced = _Replaced(ast.literal_eval(constants), self.makes)
            tree = replaced.visit(ast.parse(self._source))
            module = types.ModuleType("kernelbench_problem")
            sys.modules[module.__name__] = module
            exec(compile(ast.fix_missing_locations(tree), FILE, "exec"), module.__dict__)
            self._space, self._constants = module, constants
        return self._space

    def inputs(self, constants: str) -> list[Any]:
        """Return the model's inputs in float32, to which KernelBench casts them."""
        return cast_all(list(self.space(constants).get_inputs()), torch.float32)

    def build(self, constants: str) -> Any:
        """Return the model as its constructor leaves it: in training mode unless it says otherwise.

        KernelBench calls neither `.eval()` nor `.train()`.
        """
        space = self.space(constants)
        return space.Model(*space.get_init_inputs())

    def names(self, model: Any, inputs: Sequence[Any]) -> list[str]:
        """Return the names of the inputs."""
        return parameters(model.forward)[: len(inputs)]

    def working(self, inputs: Sequence[Any]) -> torch.dtype:
        """Return the dtype of the real inputs, with which cases begin."""
        del inputs
        return torch.float32

    def example(self, value: Any) -> tuple[tuple[int, int], ...]:
        """Return the size and stride of each dim of an input that is timed as it lies here."""
        del value
        return ()

    def layout(self, value: Any) -> str:
        """Return how an input lies in memory where it is called; a model's is made contiguous."""
        del value
        return "contiguous"

    def numbers(self, model: Any, inputs: Sequence[Any]) -> dict[str, str]:
        """Return other values of some arguments, by name as Python text; a model has none."""
        del model, inputs
        return {}

    def cast(self, inputs: Sequence[Any], dtype: torch.dtype) -> list[Any]:
        """Return the inputs in a dtype."""
        return cast_all(inputs, dtype)

    @contextlib.contextmanager
    def evaluating(self, dtype: torch.dtype) -> Iterator[None]:
        """Make tensors that the model creates have the dtype too."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield
        finally:
            torch.set_default_dtype(before)


class _Replaced(ast.NodeTransformer):
    """Replaces some constants in the problem's syntax tree."""

    def __init__(self, constants: Mapping[str, Any], makes: str | None = None) -> None:
        self._constants = constants
        self._makes = makes
        self._place = ""
        # Within a function, only sizes of something there count; None elsewhere.
        self._sizes: set[int] | None = None

    def visit_Module(self, node: ast.Module) -> ast.Module:
        for statement in node.body:
            if isinstance(statement, ast.Assign):
                self._assign(statement)
            elif isinstance(statement, ast.FunctionDef):
                self._sizes = {id(size) for size in sizes_in(statement, self._makes)}
                if statement.name == self._makes:
                    self._assign_within(statement)
                self._within(statement.name, statement)
                self._sizes = None
        return node

    def _within(self, place: str, statement: ast.stmt) -> None:
        self._place = place
        self.generic_visit(statement)
        self._place = ""

    def _assign_within(self, function: ast.FunctionDef) -> None:
        """Replace what names and parameters stand for where a plain function's inputs are made."""
        prefix, sizes, self._sizes = f"{function.name}.", self._sizes, None
        for statement in function.body:
            if isinstance(statement, ast.Assign):
                self._assign(statement, prefix)
        defaults = function.args.defaults
        for i, argument in enumerate(function.args.args[-len(defaults) :] if defaults else ()):
            if prefix + argument.arg in self._constants:
                defaults[i] = _literal(self._constants[prefix + argument.arg])
        self._sizes = sizes

    def _assign(self, statement: ast.Assign, prefix: str = "") -> None:
        for target in statement.targets:
            if isinstance(target, ast.Name) and prefix + target.id in self._constants:
                statement.value = _literal(self._constants[prefix + target.id])
            elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                for i, part in enumerate(target.elts):
                    if isinstance(part, ast.Name) and prefix + part.id in self._constants:
                        statement.value.elts[i] = _literal(self._constants[prefix + part.id])
            elif isinstance(target, ast.Name):
                self._within(prefix + target.id, statement)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Make inputs where the judge needs them, even if the file asks for a GPU."""
        node.keywords = [k for k in node.keywords if not _names_gpu(k)]
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        name = f"{self._place}:{node.value!r}"
        meant = self._sizes is None or id(node) in self._sizes
        if meant and type(node.value) is int and name in self._constants:
            return _literal(self._constants[name])
        return node


def _names_gpu(keyword: ast.keyword) -> bool:
    value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
    return keyword.arg == "device" and str(value).startswith("cuda")


def _literal(value: Any) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


def flat(value: Any) -> list[Any]:
    """Return the outputs, flattened as the judge flattens a candidate's."""
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in flat(item)]
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in flat(item)]
    return [] if value is None else [value]


def as_tensor(value: Any) -> Any:
    """Turn numbers into 0-dim tensors."""
    return torch.as_tensor(value) if isinstance(value, bool | int | float) else value


def name_of(dtype: torch.dtype) -> str:
    """Format the dtype without its module."""
    return str(dtype).removeprefix("torch.")


def described(value: Any) -> Input:
    """Describe a tensor by shape and dtype, a plain value as text, anything else by nothing."""
    if isinstance(value, torch.Tensor):
        return Input(shape=tuple(value.shape), dtype=name_of(value.dtype))
    if value is None or isinstance(value, bool | int | float | str):
        return Input(value=repr(value))
    return Input()


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names that a function takes by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = inspect.signature(function).parameters.values()
    return [p.name for p in found if p.kind in kinds]


def state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return parameters, then buffers, each once."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def is_plain(values: Sequence[Any]) -> bool:
    """Return whether a text says all of some constructor inputs."""
    text = as_text(values)
    try:
        return as_text(from_text(text)) == text
    except (ValueError, SyntaxError):
        return False


def cast(model: Any, dtype: torch.dtype, device: torch.device | None = None) -> Any:
    """Move the model to a dtype and device, including tensors in plain attributes."""
    model = model.to(device, dtype)
    _replace_attributes(model, lambda t: t.to(device, dtype if is_float(t) else None))
    return model


def emptied(model: Any) -> Any:
    """Return the model without its numbers; only shapes remain."""
    model = model.to("meta")
    _replace_attributes(model, lambda t: t.to("meta"))
    return model


# Attributes that every module has: parameters, buffers, modules, hooks and its mode.
_OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))


def attributes(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Return tensors in plain attributes of the model, also within lists, tuples and dicts."""
    for _, value in _plain_attributes(model):
        yield from _tensors_within(value)


def _plain_attributes(model: torch.nn.Module) -> Iterator[tuple[tuple[Any, str], Any]]:
    """Return attributes that not every module has, by module and name."""
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if name not in _OF_EVERY_MODULE:
                yield (module, name), value


def _tensors_within(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if not isinstance(value, torch.nn.Parameter):
            yield value
    elif type(value) in (list, tuple, dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors_within(item)


def _replace_attributes(
    model: torch.nn.Module, change: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    for (module, name), value in _plain_attributes(model):
        if any(True for _ in _tensors_within(value)):
            vars(module)[name] = _changed(value, change)


def _changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Rebuild the value with other tensors; parameters stay."""
    if isinstance(value, torch.Tensor):
        return value if isinstance(value, torch.nn.Parameter) else change(value)
    if type(value) in (list, tuple):
        return type(value)(_changed(item, change) for item in value)
    if type(value) is dict:
        return {key: _changed(item, change) for key, item in value.items()}
    return value


class Attributes:
    """Save a model's plain attributes, to restore them after a call.

    A recurrent model may keep its hidden state in one. KernelBench's first call of a model sees
    what the constructor left, and so does every call here.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        own = {t.untyped_storage().data_ptr() for t in state(model).values()}
        self._held = {place: _kept(v, own) for place, v in _plain_attributes(model)}

    def restore(self) -> None:
        """Undo what calls have written since."""
        for (module, name), _ in _plain_attributes(self._model):
            if (module, name) not in self._held:
                del vars(module)[name]
        for (module, name), again in self._held.items():
            vars(module)[name] = again()


def _kept(value: Any, own: Collection[int]) -> Callable[[], Any]:
    """Return a function that restores the value. Views of parameters and buffers follow these."""
    if isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() not in own:
        before, version = value.clone(), value._version

        def again() -> torch.Tensor:
            return before.clone() if value._version != version else value

        return again
    if type(value) in (list, tuple):
        parts = [_kept(item, own) for item in value]
        return lambda: type(value)(part() for part in parts)
    if type(value) is dict:
        named = {key: _kept(item, own) for key, item in value.items()}
        return lambda: {key: part() for key, part in named.items()}
    return lambda: value


def cast_tensors(
    tensors: Mapping[str, torch.Tensor], dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    """Copy the tensors, the real ones in a dtype."""
    return {n: t.to(dtype if is_float(t) else t.dtype, copy=True) for n, t in tensors.items()}


def home(tensors: Mapping[str, torch.Tensor]) -> torch.device:
    """Return the device of the tensors; the CPU if there are none."""
    return next((t.device for t in tensors.values()), torch.device("cpu"))


def cast_all(values: Sequence[Any], dtype: torch.dtype) -> list[Any]:
    """Cast every real tensor among the values."""
    return [
        v.to(dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in values
    ]


def seeded(seed: int, make: Callable[[], Any]) -> Any:
    """Seed torch's generators and call `make`."""
    seed_with(seed)
    return make()


def seed_with(seed: int) -> None:
    """Seed torch's generators of the CPU, and of a GPU that is in use.

    Before a GPU is in use, `torch.manual_seed` would queue each call for it, with a traceback.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


def is_float(value: Any) -> bool:
    """Return whether it is a real tensor."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()
