"""The structure of the package: its modules, imports, circles of imports, class names and sizes.

    python benchmarks/structure.py

Fails, and says where, if modules import each other in a circle, if a name stands for several
classes or aliases of types, if a file or a function is longer than `FILE_LINES` and
`FUNCTION_LINES`, or if tests patch the package, or use its private names, more often than `PATCHED`
and `PRIVATE` allow. `make lint` runs it; `house.py` counts the same.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

OWN = Path(__file__).resolve().parent.parent / "src" / "kerneltruth"
# `house.py` measures other states of the package too.
SOURCE = Path(os.environ.get("HOUSE_SOURCE", OWN))
# What a module of the child keeps between calls, under the same name in each.
IDIOMS = {"_State"}
# Declarations of kernels and of tasks: data, however the code is built.
DECLARATIONS = re.compile(
    r"corpus/|tasks/(core|suite|kernelbenchx|tritonbench|gpu|earlier|sentences)\b"
)

# The most lines of a file, and of a function beside its signature and docstring: these grow with
# the options of a command, and with what callers must know.
FILE_LINES = 400
FUNCTION_LINES = 50
# Files that are longer, or hold a longer function, until they are split. Declarations are data.
LONG: frozenset[str] = frozenset()

# What classes and aliases of types are named like; constants are in capitals.
TYPE_NAME = re.compile(r"_?[A-Z][a-z]\w*")

TESTS = OWN.parents[1] / "tests"
# Where tests replace a part of the package, how often, and why nothing is injected there. What is
# outside of the package, such as `sys.stdout`, may be replaced.
PATCHED = {
    # Warm processes that all commands, or all judges, of the tests share; users have no such thing.
    "cli/conftest.py": 2,
    "unit/library/conftest.py": 1,
    # A bug of this package, which no input provokes.
    "cli/test_run.py": 1,
    # Small shapes and short batches for a whole command: published ones take minutes on a CPU.
    "cli/test_time_command.py": 2,
    # A sampling that is left out.
    "gpu/test_time_gpu.py": 1,
}
# Where tests use private names that the package has, how often, and why there is no public way.
PRIVATE = {
    # PyTorch's `_base`, by which a candidate reaches the inputs of other calls.
    "unit/runner/timing/test_graphs.py": 1,
}


def modules() -> dict[str, Path]:
    """Every module of the package, by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(known: dict[str, Path]) -> dict[str, set[str]]:
    """Which modules each one imports, also within functions, but for types alone."""
    return {name: set(_imported(path, known)) - {name} for name, path in known.items()}


def _imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in _statements(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _statements(child)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of nodes that reach each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = [stack.pop()]
            while group[-1] != node:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for node in graph:
        if node not in index:
            visit(node)
    return sorted(found)


def short(path: Path | str) -> str:
    """The path within the package."""
    return str(Path(path).relative_to(SOURCE))


def classes(paths: Iterable[Path]) -> dict[str, list[str]]:
    """The files that define a class of each name, declarations left out."""
    found = defaultdict(list)
    for path in paths:
        if not DECLARATIONS.search(short(path)):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(short(path))
    return dict(found)


def types(paths: Iterable[Path]) -> dict[str, dict[str, str]]:
    """What classes and aliases of types are, by name and file; options of commands left out.

    A class is its file; an alias is the type that it is another name of.
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path in paths:
        file = short(path)
        if DECLARATIONS.search(file):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name][file] = file
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                name, meaning = ast.unparse(target), ast.unparse(node.value)
                if TYPE_NAME.fullmatch(name) and "typer." not in meaning:
                    found[name][file] = meaning
    return dict(found)


def ambiguous(known: dict[str, dict[str, str]]) -> dict[str, list[str]]:
    """The files of each name that stands for several types."""
    return {name: [*files] for name, files in known.items() if len(set(files.values())) > 1}


def too_long(path: Path) -> Iterator[str]:
    """What is too long in a file: the file itself, and functions of it, one line each."""
    text = path.read_text()
    count = len(text.splitlines())
    if count > FILE_LINES:
        yield f"{path}: {count} lines; split it along an idea (allowed: {FILE_LINES})"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = node.body[ast.get_docstring(node) is not None :]
            count = (node.end_lineno or 0) - own[0].lineno + 1 if own else 0
            if count > FUNCTION_LINES:
                yield (
                    f"{path}:{node.lineno}: {node.name} has {count} lines beside its signature and "
                    f"docstring; name its parts (allowed: {FUNCTION_LINES})"
                )


def sizes(known: dict[str, Path], allowed: Collection[str] = LONG) -> Iterator[str]:
    """What is too long in the package, and which of the files that may be long no longer is."""
    found = {short(p): [*too_long(p)] for p in known.values() if not DECLARATIONS.search(short(p))}
    for name, faults_in in found.items():
        if name not in allowed:
            yield from faults_in
    for name in sorted(allowed):
        if not found.get(name):
            yield f"{name}: nothing in it is too long any more; take it out of LONG"


def patches(path: Path) -> list[int]:
    """The lines of a test file that replace a part of the package."""
    tree = ast.parse(path.read_text())
    own = {"kerneltruth"}
    for node in _own_imports(tree):
        own |= {alias.asname or alias.name for alias in node.names}
    changing = (n for n in ast.walk(tree) if isinstance(n, ast.Attribute | ast.Call))
    return [node.lineno for node in changing if _patched(node) in own]


def _own_imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kerneltruth"):
            yield node


def _patched(node: ast.Attribute | ast.Call) -> str | None:
    """The first name of what a node changes a part of: by assignment, `setattr` or `patch`."""
    if isinstance(node, ast.Attribute):
        return None if isinstance(node.ctx, ast.Load) else ast.unparse(node).partition(".")[0]
    names = ("setattr", "delattr", "setitem", "patch", "object")
    if not node.args or getattr(node.func, "attr", None) not in names:
        return None
    target = node.args[0]
    text = target.value if isinstance(target, ast.Constant) else ast.unparse(target)
    return str(text).partition(".")[0]


def private_names(paths: Iterable[Path]) -> set[str]:
    """The private names that modules define or set."""
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
    return {name for name in found if _is_private(name)}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_uses(path: Path, known: set[str]) -> list[int]:
    """The lines of a test file that use private names of the package, but for its own classes'."""
    tree = ast.parse(path.read_text())
    found = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in known
        and getattr(node.value, "id", None) not in ("self", "cls")
    ]
    for node in _own_imports(tree):
        parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        found += [node.lineno for part in parts if _is_private(part)]
    return found


def reaches_inside(known: dict[str, Path]) -> Iterator[str]:
    """Where tests reach inside the package more or less often than is allowed, one line each."""
    private = private_names(known.values())
    for path in sorted(TESTS.rglob("*.py")):
        name = path.relative_to(TESTS).as_posix()
        for found, allowed, what, table in (
            (patches(path), PATCHED.get(name, 0), "patches the package", "PATCHED"),
            (private_uses(path, private), PRIVATE.get(name, 0), "uses private names", "PRIVATE"),
        ):
            if len(found) > allowed:
                lines = ", ".join(map(str, found))
                yield f"tests/{name}:{lines}: {what}; inject instead (allowed: {allowed})"
            elif len(found) < allowed:
                yield f"tests/{name}: {what} only {len(found)} times; write so in {table}"


def faults() -> Iterator[str]:
    """What is wrong, one line each."""
    known = modules()
    for group in circles(imports(known)):
        yield f"modules import each other in a circle: {', '.join(group)}"
    for name, files in sorted(ambiguous(types(known.values())).items()):
        if name not in IDIOMS:
            yield f"{name} is another type in each of {', '.join(files)}: give each its own name"
    if SOURCE == OWN:
        yield from sizes(known)
        yield from reaches_inside(known)


def main() -> int:
    found = [*faults()]
    print(
        "\n".join(found)
        or "no circle of imports, no name of two types, nothing too long, no new reach "
        "into the package"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
