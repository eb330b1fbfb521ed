"""Rewrites a kernel's source so that Python runs it as the compiler reads it."""

from __future__ import annotations
import __future__ as features

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

from triton.compiler.errors import UnsupportedLanguageConstruct

# The factory's parameter through which a rewritten kernel reaches `control`.
_CONTROL = "__kerneltruth_control__"
_FACTORY = "__kerneltruth_factory__"
_BUILTINS = {"min": "minimum", "max": "maximum"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Is: "is_",
    ast.IsNot: "is_not",
}


def _control(name: str) -> ast.expr:
    return ast.Attribute(value=ast.Name(id=_CONTROL, ctx=ast.Load()), attr=name, ctx=ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(func=_control(name), args=list(args), keywords=[])


def _later(value: ast.expr) -> ast.expr:
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=empty, body=value)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, shadowed: frozenset[str], *, chains: bool) -> None:
        self.shadowed = shadowed
        self.chains = chains

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _call("assigned", node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        constant = "constexpr" in ast.unparse(node.annotation)
        self.generic_visit(node)
        if node.value is not None and not constant:
            node.value = _call("assigned", node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Call):
            node.iter.args.insert(0, node.iter.func)
            node.iter.func = _control("loop")
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return _call(name, *(_later(value) for value in node.values))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        names = [_COMPARISONS.get(type(op)) for op in node.ops]
        if len(names) == 1 or None in names:
            return node
        if not self.chains:
            raise UnsupportedLanguageConstruct(
                None, node, "simultaneous multiple comparison is not supported"
            )
        operators = ast.Tuple(elts=[ast.Constant(value=n) for n in names], ctx=ast.Load())
        return _call("chained", operators, node.left, *(_later(c) for c in node.comparators))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("logical_not", node.operand) if isinstance(node.op, ast.Not) else node

    def _condition(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("truth", node.test)
        return node  # type: ignore[no-any-return]

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._condition(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._condition(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._condition(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        # Compiled without the debug option, an assertion on run-time values checks nothing.
        self.generic_visit(node)
        return ast.Expr(value=node.test)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr == "value" and isinstance(node.ctx, ast.Load):
            return _call("constant", node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in _BUILTINS and node.id not in self.shadowed:
            return _control(_BUILTINS[node.id])
        return node


def _definition(fn: FunctionType) -> tuple[ast.FunctionDef, int]:
    lines, first = inspect.getsourcelines(fn)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            return node, first
    raise OSError(f"no definition of {fn.__name__} in its source")


def _bare(definition: ast.FunctionDef) -> None:
    """Drop what was evaluated when the kernel was defined: it is copied, not evaluated again."""
    definition.decorator_list = []
    definition.returns = None
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)


def _captured(fn: FunctionType) -> dict[str, object]:
    captured = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            captured[name] = cell.cell_contents
        except ValueError:
            # Not assigned yet: using it fails as it would in the original.
            continue
    return captured


def rewrite(fn: FunctionType, control: Any, *, chains: bool) -> Callable[..., Any]:
    """Return a function that does what the kernel `fn` does when compiled.

    It shares the globals of `fn` and adds nothing to them. Without source, which the compiler
    needs as well, `fn` itself. `chains` says whether the compiler accepts `a < b < c`.
    """
    try:
        definition, first_line = _definition(fn)
    except (OSError, SyntaxError, TypeError):
        return fn
    captured = _captured(fn)
    shadowed = {*fn.__code__.co_varnames, *fn.__code__.co_cellvars, *captured}
    shadowed |= {name for name in _BUILTINS if name in fn.__globals__}
    _bare(definition)
    body = _Rewriter(frozenset(shadowed), chains=chains).visit(definition)
    parameters = [ast.arg(arg=name) for name in (_CONTROL, *captured)]
    factory = ast.FunctionDef(
        name=_FACTORY,
        args=ast.arguments(
            posonlyargs=[], args=parameters, kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        body=[body, ast.Return(value=ast.Name(id=definition.name, ctx=ast.Load()))],
        decorator_list=[],
    )
    # Python 3.12 and later want the list of type parameters.
    factory.type_params = []  # type: ignore[attr-defined,unused-ignore]
    module = ast.fix_missing_locations(ast.Module(body=[factory], type_ignores=[]))
    ast.increment_lineno(module, first_line - 1)
    flags = fn.__code__.co_flags & features.annotations.compiler_flag
    code = compile(module, fn.__code__.co_filename, "exec", flags=flags, dont_inherit=True)
    namespace: dict[str, object] = {}
    exec(code, fn.__globals__, namespace)
    make = cast(Callable[..., FunctionType], namespace[_FACTORY])
    rewritten = make(control, **captured)
    rewritten.__defaults__ = fn.__defaults__
    rewritten.__kwdefaults__ = fn.__kwdefaults__
    rewritten.__annotations__ = dict(fn.__annotations__)
    rewritten.__qualname__ = fn.__qualname__
    return rewritten
