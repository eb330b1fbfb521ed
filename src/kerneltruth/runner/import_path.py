"""How processes of this package find it."""

from __future__ import annotations

import os
import site
from pathlib import Path

import kerneltruth


def import_path() -> str:
    """Return the PYTHONPATH with which a new process finds this package."""
    package = str(Path(kerneltruth.__file__).parents[1])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if package not in site.getsitepackages():
        paths.insert(0, package)
    return os.pathsep.join(dict.fromkeys(p for p in paths if p))
