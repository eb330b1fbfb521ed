"""What a process needs beside a candidate, by language and mode, before the candidate is imported.

Each is imported only if it is needed: most candidates' processes would wait for none of them.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

from kerneltruth.runner import emulation
from kerneltruth.runner.child import pretrained
from kerneltruth.runner.languages import TRITON_COMPILES
from kerneltruth.runner.protocol import Load
from kerneltruth.runner.unsupported import UnsupportedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorders:
    """The modules that record what a candidate does; None where there is nothing to record.

    Attributes:
        launches: those of Triton kernels.
        compiling: kernels that are compiled in place of being launched.
        extensions: those that it builds of C++ or CUDA.
    """

    launches: ModuleType | None = None
    compiling: ModuleType | None = None
    extensions: ModuleType | None = None


def recorders_for(load: Load) -> Recorders:
    """Install what the candidate needs, and return what records it.

    Raises:
        UnsupportedError: this machine, or the mode, cannot run such a candidate.
    """
    on_cpu, compiling = load.device == "cpu", load.mode == "compile"
    if load.pretrained:
        pretrained.offer()
    if load.language == "cuda" and on_cpu:
        raise UnsupportedError("a CUDA source needs a CUDA device")
    if load.language == "gluon" and on_cpu and not compiling:
        raise UnsupportedError("a Gluon kernel needs a GPU: Triton's interpreter runs none")
    if load.language not in TRITON_COMPILES:
        if compiling:
            raise UnsupportedError(f"only Triton compiles without running: {load.language}")
        return Recorders(extensions=_extensions(load) if load.language == "cuda" else None)
    if on_cpu:
        refusal = importlib.import_module("kerneltruth.runner.interpreter").refusal()
        if refusal is not None:
            raise UnsupportedError(refusal)
        emulation.install()
    if load.mode == "time":
        return Recorders()
    dry = None
    if compiling:
        dry = importlib.import_module("kerneltruth.runner.child.compile_only")
        dry.install(load.targets)
    launches = importlib.import_module("kerneltruth.runner.child.launches")
    launches.install()
    return Recorders(launches=launches, compiling=dry)


def _extensions(load: Load) -> ModuleType:
    """Import PyTorch's build tools, which no other candidate needs."""
    extensions = importlib.import_module("kerneltruth.runner.extensions")
    extensions.install(load.kit)
    if load.mode == "run" and "triton" in load.source:
        importlib.import_module("kerneltruth.runner.child.launches").count()
    return extensions
