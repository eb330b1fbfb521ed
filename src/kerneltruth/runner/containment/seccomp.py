"""A seccomp filter: which system calls a process and its descendants may make.

It is assembled here in classic BPF, because no maintained package of PyPI does so without
libseccomp. Calls are refused with an error, so that an honest program falls back as it does on a
machine without them; a foreign ABI of system calls, whose numbers mean something else, kills.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable

from kerneltruth.runner.containment.libc import prctl
from kerneltruth.runner.containment.numbers import Architecture, architecture, numbers

# <linux/filter.h>, <linux/seccomp.h>
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_MASK = 0x54
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_X32 = 0x40000000

_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPE = 1, 1, 5, 0xF
# CLONE_NEW* of <linux/sched.h>, without CLONE_NEWTIME, which `clone` cannot ask for.
_CLONE_NAMESPACES = 0x7E020000

# Other processes, the kernel, its tables and its clocks; and ways to share memory, or to name
# files, that Landlock does not see.
_REFUSED = """
ptrace process_vm_readv process_vm_writev pidfd_getfd process_madvise process_mrelease kcmp
perf_event_open userfaultfd bpf keyctl add_key request_key
mount umount2 pivot_root move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick
mount_setattr unshare setns chroot
init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct
quotactl quotactl_fd settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname
iopl ioperm modify_ldt lookup_dcookie syslog vhangup personality
name_to_handle_at open_by_handle_at fanotify_init fanotify_mark
shmget shmat shmctl shmdt msgget msgsnd msgrcv msgctl semget semop semtimedop semctl
mq_open mq_unlink mq_notify connect
"""
# As if the kernel were older: libraries fall back.
ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
# Their first argument is a process, 0 being the caller.
_OF_A_PROCESS = (
    *("prlimit64", "migrate_pages", "move_pages"),
    *("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"),
)
# Their second argument is a process.
_OF_A_SECOND = ("setpriority", "ioprio_set")
_SIGNALS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_BLIND_SIGNALS = ("tkill", "pidfd_send_signal")

Instruction = tuple[int, int, int, int]
_ALLOWED: Instruction = (_RETURN, 0, 0, _ALLOW)


def program(of: Architecture, *, own: int, sockets: bool, scoped: bool) -> list[Instruction]:
    """Return the filter: (code, jump if true, jump if false, constant) of each instruction.

    Args:
        of: the architecture.
        own: the process, which may name itself where a call takes a process.
        sockets: whether it may listen on sockets of its own, as the CUDA driver does at its start;
            never connect to another's.
        scoped: whether Landlock keeps its signals within its own processes, so that all may be
            sent.
    """
    known = numbers(of)
    lines: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_JUMP_EQUAL, 1, 0, of.audit),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for name in ABSENT:
        lines += _when(known.get(name), [_refusal(errno.ENOSYS)])
    # A library that names its own threads by their numbers is refused too: it costs it no more than
    # their priority.
    for name in _OF_A_PROCESS:
        lines += _when(known.get(name), _only(0, (0, own)))
    for name in _OF_A_SECOND:
        lines += _when(known.get(name), _only(1, (0, own)))
    namespaces = [_load(0), (_JUMP_SET, 0, 1, _CLONE_NAMESPACES), _refusal(errno.EPERM), _ALLOWED]
    lines += _when(known.get("clone"), namespaces)
    for name in ("socket", "socketpair"):
        allowed = sockets or name == "socketpair"
        lines += _when(known.get(name), _unix() if allowed else [_refusal(errno.EACCES)])
    if not scoped:
        for name in _SIGNALS:
            lines += _when(known.get(name), _only(0, (0, own, -own)))
        for name in _BLIND_SIGNALS:
            lines += _when(known.get(name), [_refusal(errno.EPERM)])
    for name in _REFUSED.split():
        lines += _when(known.get(name), [_refusal(errno.EPERM)])
    return [*lines, _ALLOWED]


def install(*, sockets: bool, scoped: bool) -> None:
    """Filter the system calls of this process and of all that it starts, for good.

    Needs PR_SET_NO_NEW_PRIVS; call it while there is one thread.

    Raises:
        OSError: the kernel refuses, or the architecture is not known here.
    """
    of = architecture()
    if of is None:
        raise OSError(errno.ENOSYS, f"seccomp: no filter for {os.uname().machine}")
    lines = program(of, own=os.getpid(), sockets=sockets, scoped=scoped)
    code = b"".join(struct.pack("=HBBI", *line) for line in lines)
    held = ctypes.create_string_buffer(code)
    filter_ = struct.pack("@HP", len(lines), ctypes.addressof(held))
    prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filter_)


def _when(number: int | None, then: list[Instruction]) -> list[Instruction]:
    """Return a filter that runs instructions, with a return last, if the call has this number."""
    return [] if number is None else [(_JUMP_EQUAL, 0, len(then), number), *then]


def _load(argument: int) -> Instruction:
    # The lower half: both architectures are little-endian.
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)


def _refusal(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | error)


def _only(argument: int, values: Iterable[int]) -> list[Instruction]:
    """Allow the call if an argument is one of these, as 32 bits."""
    constants = [value & 0xFFFFFFFF for value in values]
    jumps = [(_JUMP_EQUAL, len(constants) - n, 0, c) for n, c in enumerate(constants)]
    return [_load(argument), *jumps, _refusal(errno.EPERM), _ALLOWED]


def _unix() -> list[Instruction]:
    """Allow connected sockets of this machine: of datagrams each may name another receiver."""
    refused = _refusal(errno.EACCES)
    return [
        _load(0),
        (_JUMP_EQUAL, 0, 4, _AF_UNIX),
        _load(1),
        (_MASK, 0, 0, _SOCK_TYPE),
        (_JUMP_EQUAL, 2, 0, _SOCK_STREAM),
        (_JUMP_EQUAL, 1, 0, _SOCK_SEQPACKET),
        refused,
        _ALLOWED,
    ]
