"""Read a folder or an installed package as a candidate: its files, and the entry named in them."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from kerneltruth.errors import UserError
from kerneltruth.runner.bundle import MOST_BYTES, MOST_FILES, Bundle, bundle_text, parsed_text

_ENTRY = re.compile(r"([A-Za-z_][\w.]*):(\w*)")
_LEFT_OUT = ("__pycache__", "build", "dist")
_COMPILED = (".so", ".pyd")


def names_module(entry: str | None) -> bool:
    """Return whether an entry is of a folder or a package: `ops:softmax`."""
    return entry is not None and ":" in entry


def read_package(path: Path, entry: str) -> str:
    """Return the source text of a candidate in a folder, or in an installed package.

    Args:
        path: a folder, or the name of a package that is installed.
        entry: the module and its function, as `pkg.ops:softmax`.

    Raises:
        UserError: there is no such folder, module or function, or the files are too large.
    """
    named = _ENTRY.fullmatch(entry)
    if named is None:
        raise UserError(f"--entry {entry!r}: must be MODULE:FUNCTION, such as pkg.ops:softmax")
    root, folder = _placed(path, named[1])
    module, function = _module(root, folder, named[1], entry), named[2]
    files = dict(_files(root, folder))
    bundle = Bundle(module=module, function=function, files=files)
    if bundle.own is not None:
        _require_defined(bundle, entry)
    elif not function:
        raise UserError(f"--entry {entry!r}: name the function, as {entry}softmax")
    return bundle_text(bundle)


def _placed(path: Path, module: str) -> tuple[Path, Path]:
    """Return the folder that Python must search, and the file or folder of the candidate in it."""
    if path.is_dir():
        folder = path.resolve()
        # A package of a namespace has no such file.
        named = module.partition(".")[0] == folder.name and _file_of(folder, module) is None
        is_package = named or (folder / "__init__.py").is_file()
        return (folder.parent if is_package else folder), folder
    if path.exists():
        raise UserError(
            f"{path}: it is a file, and --entry MODULE:FUNCTION needs a folder; give the folder, "
            "or --entry FUNCTION"
        )
    found = installed(str(path))
    if found is None:
        raise UserError(
            f"cannot read {str(path)!r}: there is no such folder, and no such package is "
            "installed; name a folder, or a package that Python finds"
        )
    return found.parent, found


def installed(name: str) -> Path | None:
    """Return the folder or the file of a package that Python finds; nothing is imported."""
    # The search for a name with dots would import.
    if not name.isidentifier():
        return None
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:
        return None
    if spec is None or not (spec.submodule_search_locations or spec.has_location):
        return None
    places = list(spec.submodule_search_locations or ())
    return Path(places[0] if places else str(spec.origin)).resolve()


def _module(root: Path, folder: Path, given: str, entry: str) -> str:
    """Return the module's full name; a package's own name may be left out.

    Raises:
        UserError: there is no such module.
    """
    package = folder.stem if folder.parent == root else ""
    names = [given] if not package else [given, f"{package}.{given}"]
    for name in names:
        inside = not package or name.partition(".")[0] == package
        if inside and _file_of(root, name) is not None:
            return name
    known = [_dotted(p.relative_to(root)) for p in _walk(folder) if p.suffix == ".py"]
    some = ", ".join(known[:5]) + (", ..." if len(known) > 5 else "")
    raise UserError(f"--entry {entry!r}: {folder} has no module {given!r}; it has {some or 'none'}")


def _file_of(root: Path, module: str) -> Path | None:
    stem = root.joinpath(*module.split("."))
    plain = (stem.with_name(stem.name + ".py"), stem / "__init__.py")
    built = [p for s in _COMPILED for p in stem.parent.glob(f"{stem.name}.*{s}")]
    return next((p for p in (*plain, *built) if p.is_file()), None)


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _files(root: Path, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a candidate by their paths below the root.

    Raises:
        UserError: they are too large, or one cannot be read.
    """
    total = 0
    for number, path in enumerate(_walk(folder)):
        if number == MOST_FILES:
            raise UserError(
                f"{folder}: it has over {MOST_FILES:,} files; name the folder of the entry alone"
            )
        data = _read(path)
        total += len(data)
        if total > MOST_BYTES:
            raise UserError(
                f"{folder}: its files are over {MOST_BYTES >> 20} MiB with {path.name}, and are "
                "stored with findings; move away what the entry does not need"
            )
        yield path.relative_to(root).as_posix(), data


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(
            f"cannot read {str(path)!r}: {error.strerror}; make it readable, or move it away"
        ) from error


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, without hidden ones, caches, builds and runs."""
    if folder.is_file():
        yield folder
        return
    if (folder / "run.json").is_file():
        return
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        if path.name.startswith(".") or path.name in _LEFT_OUT or path.name.endswith(".egg-info"):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        elif path.is_file() and path.suffix != ".pyc":
            yield path


def _require_defined(bundle: Bundle, entry: str) -> None:
    """Refuse a function that its module cannot have.

    Raises:
        UserError: the module binds no such name, or none is given.
    """
    assert bundle.own is not None
    try:
        tree = parsed_text(bundle.modules[bundle.own])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Its verdict says so.
        return
    functions = [s.name for s in tree.body if isinstance(s, ast.FunctionDef)]
    public = [name for name in functions if not name.startswith("_")]
    some = ", ".join(public[:5]) or "no public function"
    if not bundle.function:
        raise UserError(f"--entry {entry!r}: name the function: {bundle.own} has {some}")
    if bundle.function not in _bound(tree) and not {"*", "__getattr__"} & _bound(tree):
        raise UserError(
            f"--entry {entry!r}: {bundle.own} defines no {bundle.function!r}; it has {some}"
        )


def _bound(tree: ast.Module) -> set[str]:
    """Return all names that any statement of the module, or of its functions, may bind."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add(asname or name.partition(".")[0])
    return found
