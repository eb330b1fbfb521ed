"""Numbers of system calls, from the kernel's <asm/unistd_64.h> and <asm-generic/unistd.h>.

From 424 on they are the same on all architectures.
"""

from __future__ import annotations

import platform
from typing import NamedTuple


class Architecture(NamedTuple):
    """An architecture as seccomp sees it.

    Attributes:
        audit: AUDIT_ARCH_* of <linux/audit.h>.
        column: which of the two numbers in a line of the tables is its own.
    """

    audit: int
    column: int


ARCHITECTURES = {"x86_64": Architecture(0xC000003E, 0), "aarch64": Architecture(0xC00000B7, 1)}

# Name, x86_64, aarch64; -1 where an architecture has no such call.
_TABLE = """
clone 56 220            connect 42 203          ioprio_set 251 30       kill 62 129
prlimit64 302 261       rt_sigqueueinfo 129 138 rt_tgsigqueueinfo 297 240
sched_setaffinity 203 122   sched_setattr 314 274   sched_setparam 142 118
sched_setscheduler 144 119  setpriority 141 140     socket 41 198       socketpair 53 199
tgkill 234 131          tkill 200 130           truncate 76 45
ptrace 101 117          process_vm_readv 310 270    process_vm_writev 311 271
kcmp 312 272            perf_event_open 298 241     userfaultfd 323 282     bpf 321 280
keyctl 250 219          add_key 248 217         request_key 249 218     mount 165 40
umount2 166 39          pivot_root 155 41       unshare 272 97          setns 308 268
init_module 175 105     finit_module 313 273    delete_module 176 106   kexec_load 246 104
kexec_file_load 320 294 reboot 169 142          swapon 167 224          swapoff 168 225
acct 163 89             quotactl 179 60         chroot 161 51           settimeofday 164 170
clock_settime 227 112   clock_adjtime 305 266   adjtimex 159 171        sethostname 170 161
setdomainname 171 162   iopl 172 -1             ioperm 173 -1           modify_ldt 154 -1
lookup_dcookie 212 18   syslog 103 116          vhangup 153 58          personality 135 92
name_to_handle_at 303 264   open_by_handle_at 304 265
fanotify_init 300 262   fanotify_mark 301 263   migrate_pages 256 238   move_pages 279 239
shmget 29 194           shmat 30 196            shmctl 31 195           shmdt 67 197
msgget 68 186           msgsnd 69 189           msgrcv 70 188           msgctl 71 187
semget 64 190           semop 65 193            semtimedop 220 192      semctl 66 191
mq_open 240 180         mq_unlink 241 181       mq_notify 244 184
"""
_SAME = """
pidfd_send_signal 424   io_uring_setup 425      io_uring_enter 426      io_uring_register 427
open_tree 428           move_mount 429          fsopen 430              fsconfig 431
fsmount 432             fspick 433              clone3 435              pidfd_getfd 438
process_madvise 440     mount_setattr 442       quotactl_fd 443         process_mrelease 448
open_tree_attr 467
"""


def architecture() -> Architecture | None:
    """Return this machine's architecture; None for one without numbers here."""
    return ARCHITECTURES.get(platform.machine())


def numbers(of: Architecture) -> dict[str, int]:
    """Return the numbers of system calls that an architecture has, by name."""
    words = _TABLE.split()
    rows = zip(words[::3], words[1::3], words[2::3], strict=True)
    found = {name: int(pair[of.column]) for name, *pair in rows}
    words = _SAME.split()
    found |= {name: int(n) for name, n in zip(words[::2], words[1::2], strict=True)}
    return {name: number for name, number in found.items() if number >= 0}
