"""A candidate of several files as one source text, which anything that takes a source takes.

The text holds the files. Run as a module, it writes them beside itself, imports the entry's module
from there, and so defines the entry. Reading the candidate's source therefore reads all its files.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

_MARK = "# A candidate of several files: the entry is {function} of the module {module}.\n"
_BEGINNING = _MARK.partition("{")[0]
# As much as a run stores of a case's inputs.
MOST_BYTES = 16 * 2**20
MOST_FILES = 10_000
# Decoding takes twenty times as much memory as its text; five signs are decoded together.
_PIECE = 5 * 2**16
# A parsed word takes up to 2 KiB; a source of 400 KB has about this number.
MOST_WORDS = 100_000
_WORD = re.compile(r"\w+|[^\w\s]")
_STRING = re.compile(
    r"r?(?:'''[^'\\]*+(?:(?:\\.|''?(?!'))[^'\\]*+)*+'''"
    r'|"""[^"\\]*+(?:(?:\\.|""?(?!"))[^"\\]*+)*+"""'
    r"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")',
    re.DOTALL,
)
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
        at = source.index("\nMODULE, FUNCTION = ") + len("\nMODULE, FUNCTION = ")
        module, at = _string(source, at)
        function, at = _string(source, at + len(", "))
        named, at = _strings(source, at, "\nTEXTS = {\n")
        data, at = _strings(source, at, "\nPACKED = {\n")
        files = {name: text.encode() for name, text in named.items()}
        files |= _unpacked(data)
        # Anything else would be read as one thing and run as another. The packed text is taken as
        # it is, since another zlib would pack it otherwise.
        is_one = _text(module, function, named, data) == source
    except (SyntaxError, ValueError, zlib.error):
        return None
    return Bundle(module=module, function=function, files=files) if is_one else None


# Each question about a source asks for it; nobody changes the tree.
@lru_cache(maxsize=1)
def parsed(source: str) -> ast.Module:
    """Parse a candidate's source: of a bundle, the modules that its entry imports, as one.

    The entry's module comes last. Modules beyond `MOST_WORDS` in all are left out.

    Raises:
        TooManyWords: the entry's module alone has more.
        Exception: as `ast.parse`, of the entry's module.
    """
    bundle = bundle_in(source)
    if bundle is None:
        return parsed_text(source)
    if bundle.own is None:
        return ast.Module(body=[], type_ignores=[])
    modules = bundle.modules
    trees = {bundle.own: parsed_text(modules[bundle.own], bundle.own)}
    left = MOST_WORDS - words(modules[bundle.own])
    todo = [*_imported_by(bundle.own, trees[bundle.own]), *_packages_of(bundle.own)]
    while todo:
        name = todo.pop()
        if name in modules and name not in trees and words(modules[name]) <= left:
            left -= words(modules[name])
            # A file that is not Python fails when it is imported.
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                trees[name] = parsed_text(modules[name], name)
                todo += _imported_by(name, trees[name])
    own = trees.pop(bundle.own)
    return ast.Module(body=[s for t in (*trees.values(), own) for s in t.body], type_ignores=[])


class TooManyWords(ValueError):
    """A source takes too long to read, and too much memory."""


def words(text: str) -> int:
    """Count the words and signs of a text, up to one more than `MOST_WORDS`."""
    return sum(1 for _ in islice(_WORD.finditer(text), MOST_WORDS + 1))


def parsed_text(text: str, name: str = "<unknown>") -> ast.Module:
    """Parse the text of one module that anyone may have written.

    Raises:
        TooManyWords: it has more than `MOST_WORDS`.
        Exception: as `ast.parse`.
    """
    if words(text) > MOST_WORDS:
        raise TooManyWords(f"over {MOST_WORDS:,} words and signs; a kernel has fewer")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, name)


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


def _string(source: str, at: int) -> tuple[str, int]:
    """Return the string that is written at a place, and the place behind it."""
    written = _STRING.match(source, at)
    if written is None:
        raise ValueError("not a bundle")
    return ast.literal_eval(written[0]), written.end()


def _strings(source: str, at: int, heading: str) -> tuple[dict[str, str], int]:
    """Return the strings by name below a heading, and the place behind them."""
    if not source.startswith(heading, at):
        raise ValueError("not a bundle")
    found: dict[str, str] = {}
    at += len(heading)
    while not source.startswith("}", at):
        name, at = _string(source, at)
        if len(found) == MOST_FILES:
            raise ValueError("not a bundle")
        found[name], at = _string(source, at + len(": "))
        at += len(",\n")
    return found, at + 1


def _unpacked(data: Mapping[str, str]) -> dict[str, bytes]:
    """Return packed files; none may grow beyond what a folder may hold."""
    found: dict[str, bytes] = {}
    left = MOST_BYTES
    for name, packed in data.items():
        unpacking = zlib.decompressobj()
        parts: list[bytes] = []
        for at in range(0, len(packed), _PIECE):
            piece = base64.b85decode(packed[at : at + _PIECE])
            parts.append(unpacking.decompress(piece, left + 1))
            left -= len(parts[-1])
            if left < 0:
                raise ValueError("not a bundle")
        if not unpacking.eof:
            raise ValueError("not a bundle")
        found[name] = b"".join(parts)
    return found
