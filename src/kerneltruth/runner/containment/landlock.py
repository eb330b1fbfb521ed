"""Landlock by its three system calls: which files a process and its descendants may use.

A rule gives rights to a file, or to all below a folder; what no rule gives is refused. Nothing can
take a restriction back. Rights are those of the ABI at hand: what an older kernel does not know, it
cannot restrict. See landlock(7) and <linux/landlock.h>.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable, Mapping

from kerneltruth.runner.containment.libc import checked, libc

# The same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ABI_OF_KERNEL, _RULE_PATH_BENEATH = 1, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << n for n in range(4))
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR, MAKE_REG = (1 << n for n in range(4, 9))
MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = (
    1 << n for n in range(9, 16)
)
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE
WRITE |= MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
# How many of the rights above an ABI knows, from the first on.
_KNOWN = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_KNOWN = 16
_TCP = 0b11
_SCOPES = 0b11
# The first ABI that restricts TCP, and the first that keeps signals within the domain.
TCP_ABI, SCOPE_ABI = 4, 6


def abi() -> int:
    """Return the kernel's version of Landlock; 0 without it."""
    found: int = libc().syscall(_CREATE_RULESET, None, 0, _ABI_OF_KERNEL)
    return max(0, found)


def restrict(rules: Mapping[str, int] | None) -> None:
    """Restrict this thread and all that it starts, for good; call it while there is one thread.

    Args:
        rules: rights by path; paths that do not exist are left out. None restricts no files, but
            TCP and signals.

    Raises:
        OSError: the kernel refuses.
    """
    version = abi()
    handled = 0 if rules is None else (1 << _KNOWN.get(version, _ALL_KNOWN)) - 1
    words = [handled]
    words += [_TCP] if version >= TCP_ABI else []
    words += [_SCOPES] if version >= SCOPE_ABI else []
    if not any(words):
        return
    attribute = struct.pack(f"={len(words)}Q", *words)
    ruleset = _called(_CREATE_RULESET, attribute, len(attribute), 0)
    try:
        for path, rights in (rules or {}).items():
            _add(ruleset, path, rights & handled)
        _called(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _add(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= _OF_FILES
        if rights:
            rule = struct.pack("=Qi", rights, opened)
            _called(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(opened)


def merged(*rules: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return rights by path; a path that is named twice gets both rights."""
    found: dict[str, int] = {}
    for path, rights in (rule for each in rules for rule in each):
        found[path] = found.get(path, 0) | rights
    return found


def _called(number: int, *arguments: object) -> int:
    return checked("Landlock", libc().syscall(number, *arguments))
