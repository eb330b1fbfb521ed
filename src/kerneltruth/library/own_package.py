"""A function of a package: whether its source needs the package, and where that lies."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageOfFunction:
    """The package that a function needs.

    Attributes:
        folder: of the package.
        entry: the function in it, as `pkg.ops:softmax`.
        relative: whether it imports relatively, which nothing but the package allows.
    """

    folder: Path
    entry: str
    relative: bool


def package_of(function: Callable[..., Any], text: str) -> PackageOfFunction | None:
    """Return the package that a function's source imports from; None where it needs none.

    A process elsewhere has no package for relative imports, and may not find one that is not
    installed.

    Args:
        function: as it stands in its module.
        text: its source, with what that needs of its file.
    """
    module = sys.modules.get(function.__module__)
    top, dot, _ = function.__module__.partition(".")
    if module is None or not getattr(module, "__package__", None):
        return None
    name = function.__module__ if dot or module.__package__ == top else ""
    (folder, *_) = getattr(sys.modules.get(top), "__path__", None) or [""]
    if not name or not folder or not hasattr(module, function.__name__):
        return None
    relative, absolute = _imports(text, top)
    if relative or (absolute and not _is_installed(Path(folder))):
        return PackageOfFunction(
            folder=Path(folder), entry=f"{name}:{function.__name__}", relative=relative
        )
    return None


def _imports(text: str, top: str) -> tuple[bool, bool]:
    """Return whether a source imports relatively, and whether it imports the package by name."""
    relative = absolute = False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            relative |= node.level > 0
            absolute |= node.level == 0 and (node.module or "").partition(".")[0] == top
        elif isinstance(node, ast.Import):
            absolute |= any(alias.name.partition(".")[0] == top for alias in node.names)
    return relative, absolute


def _is_installed(folder: Path) -> bool:
    paths = sysconfig.get_paths()
    places = [Path(paths[name]).resolve() for name in ("purelib", "platlib", "stdlib")]
    return any(folder.resolve().is_relative_to(place) for place in places)
