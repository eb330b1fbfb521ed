"""Launches that a candidate's own shared objects make: its CUDA C++, and templates within it.

Code that nvcc compiles calls the CUDA runtime through a table of addresses that the dynamic linker
has filled in. While a call is watched, the entries of launching functions lead here; each launch is
reported and made, or not made. Libraries such as cuBLAS launch through tables of their own, which
stay as they are. On a machine of another kind than Linux on x86-64 or AArch64 nothing is seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import platform
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

# For each function that launches: how many words its arguments take, and which is the kernel. A
# `dim3` takes two, in registers on both machines.
LAUNCHING = {
    **dict.fromkeys(
        (
            *("cudaLaunchKernel", "cudaLaunchKernel_ptsz"),
            *("__cudaLaunchKernel", "__cudaLaunchKernel_ptsz"),
            *("cudaLaunchCooperativeKernel", "cudaLaunchCooperativeKernel_ptsz"),
        ),
        (8, 0),
    ),
    **dict.fromkeys(("cudaLaunchKernelExC", "cudaLaunchKernelExC_ptsz"), (3, 1)),
    **dict.fromkeys(("cuLaunchKernel", "cuLaunchKernel_ptsz"), (11, 0)),
    **dict.fromkeys(("cuLaunchKernelEx", "cuLaunchKernelEx_ptsz"), (4, 1)),
    **dict.fromkeys(("cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz"), (10, 0)),
}
# Relocations of such a table: by data and by call.
_RELOCATIONS = {"x86_64": (6, 7), "aarch64": (1025, 1026)}
_DYNAMIC = 2
_STRTAB, _SYMTAB, _RELA, _RELASZ, _JMPREL, _PLTRELSZ = 5, 6, 7, 8, 23, 2
_PAGE = 4096
_READ_WRITE = 3
_WORD = ctypes.c_uint64

NAMELESS = "(unnamed)"
# Receives a launch's demangled kernel name and the object's path; returns whether to make it.
MakesLaunch = Callable[[str, str], bool]


class _Object(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_uint64),
        ("count", ctypes.c_uint16),
    )


class _Symbol(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSlot:
    """An entry of an object's table: where it lies, and the launching function that it names."""

    path: str
    address: int
    function: str


def loaded(is_own: Callable[[str], bool]) -> dict[str, tuple[int, int]]:
    """Return the candidate's shared objects by path: load address and dynamic section."""
    found: dict[str, tuple[int, int]] = {}

    def note(info: Any, size: int, data: Any) -> int:
        about = info.contents
        path = (about.name or b"").decode(errors="replace")
        if path.startswith("/") and not path.startswith(("/usr/", "/lib")) and is_own(path):
            section = _dynamic(about)
            if section:
                found[path] = about.base, section
        return 0

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Object), ctypes.c_size_t, ctypes.c_void_p)
    _libc().dl_iterate_phdr(kind(note), None)
    return found


def _dynamic(about: Any) -> int:
    for i in range(about.count):
        header = ctypes.string_at(about.headers + 56 * i, 56)
        kind, _, _, address = struct.unpack_from("<IIQQ", header)
        if kind == _DYNAMIC:
            return int(about.base + address)
    return 0


def slots(path: str, base: int, section: int) -> list[LaunchSlot]:
    """Return the entries of an object's table that launch kernels."""
    wanted = _RELOCATIONS.get(platform.machine(), ())
    tags = _tags(section)
    # glibc has made addresses of what the file holds as offsets.
    where = {t: v if v > base else v + base for t, v in tags.items()}
    if _STRTAB not in tags or _SYMTAB not in tags:
        return []
    found = []
    for table, size in ((_RELA, _RELASZ), (_JMPREL, _PLTRELSZ)):
        if not tags.get(size):
            continue
        for offset, info, _ in struct.iter_unpack(
            "<QQq", ctypes.string_at(where[table], tags[size])
        ):
            if info & 0xFFFFFFFF not in wanted:
                continue
            (name,) = struct.unpack("<I", ctypes.string_at(where[_SYMTAB] + 24 * (info >> 32), 4))
            function = ctypes.string_at(where[_STRTAB] + name).decode(errors="replace")
            if function in LAUNCHING:
                found.append(LaunchSlot(path=path, address=base + offset, function=function))
    return found


def _tags(section: int) -> dict[int, int]:
    tags: dict[int, int] = {}
    while True:
        tag, value = struct.unpack("<qQ", ctypes.string_at(section, 16))
        if tag == 0:
            return tags
        tags[tag] = value
        section += 16


@contextlib.contextmanager
def watched(is_own: Callable[[str], bool], ask: MakesLaunch) -> Iterator[None]:
    """While entered, decide on each launch of the candidate's own objects."""
    found = [s for path, where in loaded(is_own).items() for s in slots(path, *where)]
    before = [int(_WORD.from_address(slot.address).value) for slot in found]
    # They must outlive their calls.
    hooks = [_hook(slot, ask) for slot in found]
    for slot, hook in zip(found, hooks, strict=True):
        _write(slot.address, ctypes.cast(hook, ctypes.c_void_p).value or 0)
    try:
        yield
    finally:
        for slot, value in zip(found, before, strict=True):
            _write(slot.address, value)


def _hook(slot: LaunchSlot, ask: MakesLaunch) -> Any:
    words, kernel = LAUNCHING[slot.function]
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[_WORD] * words)
    # As the object itself finds it: what the table held may lead to the linker, which would fill
    # in the entry.
    library = ctypes.CDLL(slot.path)
    original = kind(ctypes.cast(getattr(library, slot.function), ctypes.c_void_p).value or 0)

    def launch(*arguments: int) -> int:
        if ask(_name(library, slot.function, arguments[kernel]), slot.path):
            return int(original(*arguments))
        return 0

    return kind(launch)


def _name(library: ctypes.CDLL, function: str, kernel: int) -> str:
    """Return a kernel's demangled name, if it is known."""
    if function.startswith(("__cuda", "cuLaunch")):
        mangled = _drivers_name(kernel)
    else:
        mangled = _symbols_name(kernel) or _runtimes_name(library, kernel)
    return _demangled(mangled) if mangled else NAMELESS


def _runtimes_name(library: ctypes.CDLL, address: int) -> bytes | None:
    name = ctypes.c_char_p()
    with contextlib.suppress(AttributeError):
        # The runtime reports a refusal at the next check, which is the candidate's.
        if library.cudaPeekAtLastError() == 0:
            if not library.cudaFuncGetName(ctypes.byref(name), ctypes.c_void_p(address)):
                return name.value
            library.cudaGetLastError()
    return None


def _drivers_name(handle: int) -> bytes | None:
    name = ctypes.c_char_p()
    with contextlib.suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        for ask in (driver.cuKernelGetName, driver.cuFuncGetName):
            if not ask(ctypes.byref(name), ctypes.c_void_p(handle)):
                return name.value
    return None


def _symbols_name(address: int) -> bytes | None:
    symbol = _Symbol()
    known = _libc().dladdr(ctypes.c_void_p(address), ctypes.byref(symbol))
    return symbol.name if known and symbol.address == address else None


def qualified(name: str) -> str:
    """Strip result, template arguments and parameters from a kernel's demangled name."""
    text = name.removeprefix("void ").replace("(anonymous namespace)", "{anonymous}")
    return text.partition("(")[0].partition("<")[0].strip() or name


@functools.cache
def _demangled(mangled: bytes) -> str:
    text = mangled.decode(errors="replace")
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libstdc++.so.6")
        library.__cxa_demangle.restype = ctypes.c_void_p
        failed = ctypes.c_int()
        made = library.__cxa_demangle(mangled, None, None, ctypes.byref(failed))
        if not failed.value and made:
            text = ctypes.string_at(made).decode(errors="replace")
    return text


def _write(address: int, value: int) -> None:
    page = address & -_PAGE
    # The linker has made the table read-only, unless it is filled in lazily.
    if _libc().mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), _READ_WRITE):
        raise OSError(ctypes.get_errno(), "mprotect")
    _WORD.from_address(address).value = value


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
