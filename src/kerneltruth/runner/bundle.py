"""A candidate of several files as one source text, which anything that takes a source takes.

The text holds the files. Run as a module, it writes them beside itself, imports the entry's module
from there, and so defines the entry. Whoever reads a candidate's source, reads that of its files.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_MARK = "# A candidate of several files: the entry is {function} of the module {module}.\n"
_BEGINNING = _MARK.partition("{")[0]
# Findings hold it: another loader is one more that `bundle_in` must know.
_LOADER = '''

def _entry():
    """Write the files beside this one, and return the entry of their module."""
    import base64, importlib, os, sys, tempfile, zlib

    beside = os.path.dirname(os.path.abspath(__file__))
    before = os.path.join(beside, "files_of_candidate_")
    for name, module in list(sys.modules.items()):
        known = getattr(module, "__dict__", {})
        if before in repr((known.get("__file__"), known.get("__path__"))):
            del sys.modules[name]
    top = MODULE.partition(".")[0]
    if top in sys.modules:
        raise ImportError(f"another module is called {top!r} and imported already; rename it")
    folder = tempfile.mkdtemp(prefix="files_of_candidate_", dir=beside)
    packed = {name: zlib.decompress(base64.b85decode(data)) for name, data in PACKED.items()}
    for name, data in (*packed.items(), *((n, t.encode()) for n, t in TEXTS.items())):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    sys.path[:] = [folder, *(place for place in sys.path if not place.startswith(before))]
    importlib.invalidate_caches()
    return getattr(importlib.import_module(MODULE), FUNCTION)


'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The files of a candidate, and its entry.

    Attributes:
        module: with the entry, such as `pkg.ops`.
        function: the entry's name in it.
        files: contents by path, relative to the folder that is put on the import path.
    """

    module: str
    function: str
    files: Mapping[str, bytes]

    @property
    def modules(self) -> dict[str, str]:
        """The texts of Python files by their paths."""
        return {n: t for n, t in sorted(_texts(self.files).items()) if n.endswith(".py")}

    @property
    def own(self) -> str | None:
        """The path of the entry's module; None if it is compiled."""
        stem = self.module.replace(".", "/")
        return next((n for n in (f"{stem}.py", f"{stem}/__init__.py") if n in self.modules), None)


def bundle_text(bundle: Bundle) -> str:
    """Return the source text that holds a bundle."""
    texts = _texts(bundle.files)
    packed = {
        name: base64.b85encode(zlib.compress(data, 9)).decode()
        for name, data in bundle.files.items()
        if name not in texts
    }
    return _text(bundle.module, bundle.function, texts, packed)


def _text(module: str, function: str, texts: Mapping[str, str], packed: Mapping[str, str]) -> str:
    shown = [f"{name!r}: {source_literal(text)}," for name, text in sorted(texts.items())]
    others = [f"{name!r}: {data!r}," for name, data in sorted(packed.items())]
    return "".join(
        (
            _MARK.format(function=function, module=module),
            f"MODULE, FUNCTION = {module!r}, {function!r}\n",
            "\n".join(["TEXTS = {", *shown, "}", "PACKED = {", *others, "}"]),
            _LOADER,
            f"{function} = _entry()\n",
        )
    )


@lru_cache(maxsize=4)
def bundle_in(source: str) -> Bundle | None:
    """Return the bundle that a source text is; None for any other text."""
    if not source.startswith(_BEGINNING):
        return None
    try:
        head, texts, packed, *_ = ast.parse(source).body
        module, function = _value(head)
        named: dict[str, str] = _value(texts)
        data: dict[str, str] = _value(packed)
        files = {name: text.encode() for name, text in named.items()}
        files |= {n: zlib.decompress(base64.b85decode(d)) for n, d in data.items()}
        # Anything else would be read as one thing and run as another. The packed text is taken as
        # it is, since another zlib would pack it otherwise.
        is_one = _text(module, function, named, data) == source
    except (SyntaxError, ValueError, TypeError, AttributeError, zlib.error, RecursionError):
        return None
    return Bundle(module=module, function=function, files=files) if is_one else None


def parsed(source: str) -> ast.Module:
    """Parse a candidate's source: of a bundle, the modules that its entry imports, as one.

    The entry's module comes last.

    Raises:
        Exception: as `ast.parse`, of the entry's module.
    """
    bundle = bundle_in(source)
    if bundle is None:
        return ast.parse(source)
    if bundle.own is None:
        return ast.Module(body=[], type_ignores=[])
    modules = bundle.modules
    trees = {bundle.own: ast.parse(modules[bundle.own], bundle.own)}
    todo = [*_imported_by(bundle.own, trees[bundle.own]), *_packages_of(bundle.own)]
    while todo:
        name = todo.pop()
        if name in modules and name not in trees:
            # What is no Python fails where it is imported.
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                trees[name] = ast.parse(modules[name], name)
                todo += _imported_by(name, trees[name])
    own = trees.pop(bundle.own)
    return ast.Module(body=[s for t in (*trees.values(), own) for s in t.body], type_ignores=[])


def _imported_by(name: str, tree: ast.Module) -> Iterator[str]:
    """Yield the paths at which modules may be that a module imports."""
    package = name.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _paths_of(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = [*base, *(node.module or "").split(".")] if node.module else base
            yield from _paths_of(base)
            for alias in node.names:
                yield from _paths_of([*base, alias.name])


def _paths_of(parts: Sequence[str]) -> Iterator[str]:
    """Yield where a module may be, and the packages that are imported with it."""
    path = "/".join(parts)
    yield f"{path}.py"
    yield from _packages_of(f"{path}/")


def _packages_of(name: str) -> Iterator[str]:
    parts = name.split("/")[:-1]
    return ("/".join([*parts[: n + 1], "__init__.py"]) for n in range(len(parts)))


def source_literal(source: str) -> str:
    """Return a source as an exact Python literal, readable if possible."""
    for quotes in ("'''", '"""'):
        for prefix in ("r", ""):
            literal = f"{prefix}{quotes}{source}{quotes}"
            try:
                if ast.literal_eval(literal) == source:
                    return literal
            except (SyntaxError, ValueError):
                continue
    return repr(source)


def _texts(files: Mapping[str, bytes]) -> dict[str, str]:
    found = {}
    for name, data in files.items():
        try:
            found[name] = data.decode()
        except UnicodeDecodeError:
            continue
    return found


def _value(node: ast.stmt) -> Any:
    if not isinstance(node, ast.Assign):
        raise ValueError("not a bundle")
    return ast.literal_eval(node.value)
