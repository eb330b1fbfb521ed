"""Apply a level of containment to this process: in a child, before a candidate's first line."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping

from kerneltruth.runner.containment import Level, landlock, seccomp
from kerneltruth.runner.containment.libc import checked, libc, prctl

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 4, 24, 38
_PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL = 28, 47, 4
# SECBIT_NOROOT and SECBIT_NO_SETUID_FIXUP, each locked: root is a user like others.
_ROOT_IS_NOBODY = 0b1111
_CAPABILITY_VERSION_3 = 0x20080522
_MOST_CAPABILITIES = 64


def contain(
    level: Level, rules: Mapping[str, int] | None, *, gpu: bool, user: int | None = None
) -> None:
    """Contain this process and all that it starts, for good; call it while there is one thread.

    Args:
        level: what is applied.
        rules: rights by path, from the level `strict` on; None for the judge's own programs, which
            may read any file of the user's.
        gpu: whether the CUDA driver will run here.
        user: whom this process becomes; None leaves it whose it is.

    Raises:
        OSError: the system refuses.
    """
    _drop_capabilities(user)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    # Another process of the user's may then not read its memory. The driver names its threads
    # through files that would no longer be its own, unless it is root.
    prctl(_PR_SET_DUMPABLE, int(gpu and os.geteuid() != 0))
    scoped = False
    if level in ("strict", "namespaces"):
        landlock.restrict(rules)
        scoped = landlock.abi() >= landlock.SCOPE_ABI
    if level != "process":
        seccomp.install(sockets=gpu, scoped=scoped)


def _drop_capabilities(user: int | None) -> None:
    """Give up what root may do beyond others, and to be root if a user is named, for good."""
    with contextlib.suppress(OSError):
        prctl(_PR_SET_SECUREBITS, _ROOT_IS_NOBODY)
    with contextlib.suppress(OSError):
        prctl(_PR_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL)
    # It fails beyond the last capability; without CAP_SETPCAP at once, and then NO_NEW_PRIVS keeps
    # away what could be had.
    with contextlib.suppress(OSError):
        for capability in range(_MOST_CAPABILITIES):
            prctl(_PR_CAPBSET_DROP, capability)
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    checked("capset", libc().capset(header, none))
