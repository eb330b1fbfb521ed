"""Compile mode: every launch is compiled for several targets, and none runs.

The candidate's host code runs under the facade on CPU tensors, and each launch goes through
Triton's own argument binding, specialization and compiler, once per target. Nothing is executed, so
outputs hold garbage. Host code that fails on them later is no compile error, nor is a refused
launch whose arguments may derive from such garbage.

The process must start without TRITON_INTERPRET, which is read when kernels and Triton's own device
library are decorated.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kerneltruth.runner import emulation
from kerneltruth.runner.child import autotune, launches
from kerneltruth.runner.child.binaries import describe, read_cubin
from kerneltruth.runner.child.failures import reason_first
from kerneltruth.runner.observation import Binary

MAX_THREADS = 1024
MAX_TENSOR_MEMORY = 512
_ERROR_CHARACTERS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A GPU to compile for.

    Attributes:
        backend: Triton's name of its kind, "cuda" or "hip".
        warp_size: threads that run in step.
        shared_bytes: the most shared memory that one program may have.
    """

    backend: str
    arch: int | str
    warp_size: int
    shared_bytes: int


TARGETS = {
    "sm_80": Target(backend="cuda", arch=80, warp_size=32, shared_bytes=163 * 1024),
    "sm_89": Target(backend="cuda", arch=89, warp_size=32, shared_bytes=99 * 1024),
    "sm_90": Target(backend="cuda", arch=90, warp_size=32, shared_bytes=227 * 1024),
    "sm_100": Target(backend="cuda", arch=100, warp_size=32, shared_bytes=227 * 1024),
    "gfx942": Target(backend="hip", arch="gfx942", warp_size=64, shared_bytes=64 * 1024),
}


class _RefusedError(Exception):
    """The compiler refused, and `error` says how."""

    def __init__(self, error: Exception, text: str) -> None:
        super().__init__(text)
        self.error = error
        self.text = text


@dataclass(slots=True)
class _State:
    targets: tuple[str, ...] = ()
    current: int = 0
    binaries: list[Binary] = field(default_factory=list)
    refusals: dict[tuple[Any, ...], _RefusedError] = field(default_factory=dict)
    reported: set[tuple[str, str, str]] = field(default_factory=set)
    reads_before: int | None = None


_STATE = _State()


def install(targets: Sequence[str]) -> None:
    """Make launches compile for `targets` in this process, permanently.

    Installs the facade and the choice of configurations too, if they are not there yet.

    Raises:
        ValueError: an unknown target, or a process in which kernels are interpreted.
    """
    import triton.compiler
    from triton import knobs
    from triton.runtime.jit import JITFunction

    unknown = [name for name in targets if name not in TARGETS]
    if unknown or not targets:
        raise ValueError(f"unknown targets {unknown}; there are {', '.join(TARGETS)}")
    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        raise ValueError("kernels are interpreted in this process, so they cannot be compiled")
    if _STATE.targets:
        raise ValueError(f"this process compiles for {', '.join(_STATE.targets)} already")
    _STATE.targets = tuple(targets)
    emulation.install()
    triton.runtime.driver.set_active(TargetDriver())
    triton.compiler.compile = _compiling(triton.compiler.compile)
    JITFunction.run = _run_compiling(JITFunction.run)
    launches.install()
    # Line tables cost a tenth of the time and are never read.
    knobs.compilation.disable_line_info = True


def collect() -> tuple[Binary, ...]:
    """Return what was compiled or refused since the last `collect`, each specialization once."""
    binaries = tuple(_STATE.binaries)
    _STATE.binaries.clear()
    _STATE.reads_before = None
    return binaries


class TargetDriver(emulation.PretendDriver):
    """Triton's driver for the current target."""

    def __init__(self) -> None:
        """Triton keeps one kernel cache per device index, so each target is a device."""
        super().__init__()
        self.get_current_device = lambda: _STATE.current
        self.utils.load_binary = _loaded

    def device_properties(self, device: int) -> dict[str, object]:
        """Return the known properties of the target's device."""
        target = TARGETS[_STATE.targets[device]]
        return {
            **super().device_properties(device),
            "max_shared_mem": target.shared_bytes,
            "warpSize": target.warp_size,
            "arch": str(target.arch),
        }

    def get_current_target(self) -> Any:
        """Return the current target."""
        from triton.backends.compiler import GPUTarget

        target = TARGETS[_STATE.targets[_STATE.current]]
        return GPUTarget(target.backend, target.arch, target.warp_size)


def _loaded(name: str, binary: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
    """Handles and counts of a kernel: module, function, registers, spills, threads."""
    facts = read_cubin(binary)
    return 0, 0, facts.registers or 0, facts.spills or 0, MAX_THREADS


def _run_compiling(original: Callable[..., Any]) -> Callable[..., Any]:
    """`JITFunction.run` that compiles for every target and returns the first one's kernel."""

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        tuning = autotune.tuning()
        kernels: list[Any] = []
        failed: _RefusedError | None = None
        tainted = _STATE.reads_before is not None and emulation.reads() > _STATE.reads_before
        if _STATE.reads_before is None:
            _STATE.reads_before = emulation.reads()
        for index, name in enumerate(_STATE.targets):
            if tuning is not None and name in tuning.done:
                continue
            try:
                with _compiling_for(index):
                    kernels.append(_bound(original, self, args, grid, kwargs))
                if tuning is not None:
                    tuning.done.add(name)
            except _RefusedError as refused:
                tolerable = isinstance(refused.error, autotune.passed_over())
                if tuning is not None and not tuning.last and tolerable:
                    failed = refused
                elif not tainted:
                    _report(self.fn.__name__, name, refused.text)
        if failed is not None:
            raise failed.error
        return kernels[0] if kernels else _NoKernel(self.fn)

    return run


def _bound(
    original: Callable[..., Any], function: Any, args: Any, grid: Any, kwargs: dict[str, object]
) -> Any:
    """Bind and compile, nothing else; any error refuses this launch."""
    try:
        return original(function, *args, grid=grid, warmup=True, **kwargs)
    except _RefusedError:
        raise
    except Exception as error:
        raise _RefusedError(error, _one_text(error, "")) from error


@contextlib.contextmanager
def _compiling_for(index: int) -> Iterator[None]:
    _STATE.current = index
    try:
        yield
    finally:
        _STATE.current = 0


def _compiling(original: Callable[..., Any]) -> Callable[..., Any]:
    def compile_(src: Any, target: Any = None, options: Any = None, **rest: Any) -> Any:
        key = (_STATE.current, src.hash(), str(options))
        if key in _STATE.refusals:
            raise _STATE.refusals[key]
        start = time.perf_counter()
        diagnostics: list[str] = []
        try:
            with _captured(diagnostics):
                kernel = original(src, target=target, options=options, **rest)
            _check_resources(kernel.metadata)
        except Exception as error:
            refused = _RefusedError(error, _one_text(error, "".join(diagnostics)))
            _STATE.refusals[key] = refused
            raise refused from error
        seconds, target_name = time.perf_counter() - start, _STATE.targets[_STATE.current]
        _STATE.binaries.append(describe(kernel, name=src.name, target=target_name, seconds=seconds))
        return kernel

    return compile_


def _check_resources(metadata: Any) -> None:
    """Check what Triton checks when it loads a kernel onto a device."""
    from triton.runtime.errors import OutOfResources

    target = TARGETS[_STATE.targets[_STATE.current]]
    threads = metadata.num_warps * target.warp_size
    tensor_memory = getattr(metadata, "tmem_size", None) or 0
    for needed, limit, what in (
        (metadata.shared, target.shared_bytes, "shared memory"),
        (threads, MAX_THREADS, "threads"),
        (tensor_memory, MAX_TENSOR_MEMORY, "tensor memory"),
    ):
        if needed > limit:
            raise OutOfResources(needed, limit, what)


def _report(kernel: str, target: str, text: str) -> None:
    if (kernel, target, text) not in _STATE.reported:
        _STATE.reported.add((kernel, target, text))
        _STATE.binaries.append(Binary(kernel=kernel, target=target, ok=False, error=text))


class _NoKernel(launches.WarmKernel):
    """Returned if no target has a kernel: answers host code's questions, launches nothing."""

    def __init__(self, function: Any) -> None:
        super().__init__(function, {})
        self.n_regs, self.metadata.shared = 0, 1

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *args, **kwargs: None


@contextlib.contextmanager
def _captured(diagnostics: list[str]) -> Iterator[None]:
    """Keep the compiler's output (whole modules, on standard error) for the message only."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            diagnostics.append(file.read().decode(errors="replace"))


def _one_text(error: Exception, diagnostics: str) -> str:
    """Return the same words for the same refusal: no local paths, no dumps of modules."""
    said = f"{type(error).__name__}: {error}"
    cause = error.__cause__
    if cause is not None and str(cause) not in said:
        said += f"\n{type(cause).__name__}: {cause}"
    lines = said.splitlines()
    lines += [line for line in diagnostics.splitlines() if re.search(r"\berror:|LLVM ERROR", line)]
    kept = [line for line in lines if not line.startswith("Repro command")]
    return re.sub(r"/\S*/(?=[^/\s]+)", "", reason_first("\n".join(kept)))[:_ERROR_CHARACTERS]
