"""Join several Python files into one module, because a candidate is one file.

Imports among the files dissolve. Functions keep their text line by line, because Triton reads it.
What cannot be joined without changing its meaning is refused: names that two files define
differently, imports of a sibling inside a function, and circular imports.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from kerneltruth.suites.flashinfer.documents import Malformed

_FUTURE = "from __future__ import annotations"


def join(sources: Mapping[str, str], first: str) -> str:
    """Return the file `first` with the siblings that it imports above it.

    Raises:
        Malformed: they cannot be joined.
    """
    if len(sources) == 1:
        return sources[first]
    modules = {_dotted(path): path for path in sources if path.endswith(".py")}
    parsed = {path: _parse(path, sources[path]) for path in modules.values()}
    order: list[str] = []
    _visit(first, parsed, modules, order, ())
    defined: dict[str, tuple[str, str]] = {}
    parts: list[str] = []
    future = False
    for path in order:
        _claim(path, parsed[path], defined, modules)
        text, own_future = _dissolved(path, sources[path], parsed[path], modules, parsed)
        future = future or own_future
        parts.append(text)
    return "\n\n".join([*([_FUTURE] if future else []), *parts])


def _dotted(path: str) -> str:
    parts = list(PurePosixPath(path).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def _parse(path: str, source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Malformed(f"{path} is not Python: {error}") from error


def _target(node: ast.Import | ast.ImportFrom, path: str, modules: Mapping[str, str]) -> str | None:
    """Return the sibling that an import names, if it is one."""
    if isinstance(node, ast.Import):
        found = [modules[a.name] for a in node.names if a.name in modules]
        if found and len(node.names) > 1:
            raise Malformed(f"{path}: line {node.lineno} imports several modules at once")
        return found[0] if found else None
    name = node.module or ""
    folder = list(PurePosixPath(path).parent.parts)
    if node.level:
        above = folder[: len(folder) - node.level + 1]
        name = ".".join([*above, *([name] if name else [])])
    if name in modules:
        return modules[name]
    # A script's own folder is on its path, so a bare name may be a file beside it.
    return modules.get(".".join([*folder, name])) if not node.level else None


def _siblings(
    path: str, tree: ast.Module, modules: Mapping[str, str]
) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    top = {id(statement) for statement in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            target = _target(node, path, modules)
            if target is None:
                if isinstance(node, ast.ImportFrom) and node.level:
                    raise Malformed(
                        f"{path}: line {node.lineno} imports a file that the solution lacks"
                    )
                continue
            if id(node) not in top:
                raise Malformed(f"{path}: line {node.lineno} imports {target} inside a block")
            yield node, target


def _visit(
    path: str,
    parsed: Mapping[str, ast.Module],
    modules: Mapping[str, str],
    order: list[str],
    above: tuple[str, ...],
) -> None:
    if path in above:
        raise Malformed(f"{path} and {above[-1]} import each other")
    if path in order:
        return
    for _, target in _siblings(path, parsed[path], modules):
        _visit(target, parsed, modules, order, (*above, path))
    order.append(path)


def _claim(
    path: str,
    tree: ast.Module,
    defined: dict[str, tuple[str, str]],
    modules: Mapping[str, str],
) -> None:
    """Record the names that a file binds.

    Raises:
        Malformed: another file binds one of them to something else.
    """
    own: dict[str, str] = {}
    for statement in tree.body:
        match statement:
            case ast.Import() | ast.ImportFrom() if _target(statement, path, modules) is not None:
                continue
        for name in _bound(statement):
            own[name] = own.get(name, "") + ast.dump(statement)
    for name, meaning in own.items():
        known = defined.setdefault(name, (path, meaning))
        if known[1] != meaning:
            raise Malformed(f"{known[0]} and {path} define {name!r} differently")


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((a.asname or a.name).partition(".")[0] for a in names)
        case _:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def _dissolved(
    path: str,
    source: str,
    tree: ast.Module,
    modules: Mapping[str, str],
    parsed: Mapping[str, ast.Module],
) -> tuple[str, bool]:
    """Remove imports of siblings from the text; return whether it had a future import."""
    lines = source.splitlines()
    future = False
    replaced: list[tuple[ast.stmt, Sequence[str]]] = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            future = True
            replaced.append((statement, ()))
    for sibling, target in _siblings(path, tree, modules):
        replaced.append((sibling, tuple(_aliases(sibling, parsed[target]))))
    for node, text in sorted(replaced, key=lambda item: -item[0].lineno):
        end = node.end_lineno or node.lineno
        if any(
            s is not node and s.lineno <= end and (s.end_lineno or s.lineno) >= node.lineno
            for s in tree.body
        ):
            raise Malformed(f"{path}: line {node.lineno} holds an import and more")
        lines[node.lineno - 1 : end] = text
    return "\n".join(lines) + "\n", future


def _aliases(node: ast.Import | ast.ImportFrom, target: ast.Module) -> Iterator[str]:
    """Return lines that bind a sibling's names as the import did."""
    if isinstance(node, ast.ImportFrom):
        yield from (f"{a.asname} = {a.name}" for a in node.names if a.asname and a.asname != a.name)
        return
    names = dict.fromkeys(n for s in target.body for n in _bound(s))
    alias = node.names[0].asname or node.names[0].name
    if "." in alias:
        raise Malformed(f"line {node.lineno} imports {alias} by its dotted name")
    yield "import types as _types"
    yield f"{alias} = _types.SimpleNamespace({', '.join(f'{n}={n}' for n in names)})"
