"""A control group for a child: the system's kernel limits the memory and tasks of its whole tree.

Groups are made below the one that this process is in, with version 1 (as root), or with version 2
where controllers are on for it, or beside it where that is delegated. See cgroups(7).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_MEMBERSHIPS = Path("/proc/self/cgroup")
_NEEDED = frozenset({"memory", "pids"})
# A group is busy for a moment after the death of its last process.
_REMOVE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlGroup:
    """A child's group: one folder of each controller in version 1, the same twice in version 2."""

    memory: Path
    tasks: Path

    def limit(self, *, memory: int, tasks: int) -> None:
        """Set bytes of memory, and how many processes and threads there may be.

        Raises:
            OSError: the system refuses.
        """
        (self.tasks / "pids.max").write_text(str(tasks))
        if self.memory != self.tasks:
            (self.memory / "memory.limit_in_bytes").write_text(str(memory))
            return
        (self.memory / "memory.max").write_text(str(memory))
        # Where there is no swap, there is no such file.
        with contextlib.suppress(FileNotFoundError):
            (self.memory / "memory.swap.max").write_text("0")

    def join(self) -> None:
        """Put this process, with all that it will start, into the group."""
        for folder in {self.memory, self.tasks}:
            (folder / "cgroup.procs").write_text("0")

    @property
    def out_of_memory(self) -> bool:
        """Whether a process of the group was killed because memory was used up."""
        name = "memory.events" if self.memory == self.tasks else "memory.oom_control"
        return _count(self.memory / name, "oom_kill") > 0

    @property
    def out_of_tasks(self) -> bool:
        """Whether a process or thread was refused because there were too many."""
        return _count(self.tasks / "pids.events", "max") > 0

    def remove(self) -> None:
        """Remove the group, whose processes are dead."""
        _remove({self.memory, self.tasks})


def make(
    name: str,
    *,
    memory: int,
    tasks: int,
    root: Path = _ROOT,
    memberships: Path = _MEMBERSHIPS,
) -> ControlGroup | None:
    """Make a group with limits; return None where this process, of these groups, may not."""
    for above in _above(root, memberships):
        group = ControlGroup(memory=above.memory / name, tasks=above.tasks / name)
        try:
            for folder in {group.memory, group.tasks}:
                folder.mkdir()
            group.limit(memory=memory, tasks=tasks)
        except OSError:
            group.remove()
        else:
            return group
    return None


def remove_all(prefix: str) -> None:
    """Remove groups whose names begin so, and whose processes are dead."""
    above = {f for group in _above(_ROOT, _MEMBERSHIPS) for f in (group.memory, group.tasks)}
    _remove({folder for parent in above for folder in parent.glob(f"{prefix}*")})


def _remove(folders: set[Path]) -> None:
    end = time.monotonic() + _REMOVE_S
    for folder in folders:
        while folder.exists():
            try:
                folder.rmdir()
            except OSError:
                if time.monotonic() > end:
                    break
                time.sleep(0.005)


def may_make() -> bool:
    """Return whether children get groups here."""
    group = make(f"kerneltruth-try-{os.getpid()}", memory=2**30, tasks=16)
    if group is not None:
        group.remove()
    return group is not None


def _above(root: Path, memberships: Path) -> Iterator[ControlGroup]:
    """Yield groups below which one could be made."""
    found = {}
    for line in memberships.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path.lstrip("/")
    if found.keys() >= _NEEDED:
        memory, tasks = (_there(root / name, found[name]) for name in ("memory", "pids"))
        yield ControlGroup(memory=memory, tasks=tasks)
    if "" in found:
        own = _there(root, found[""])
        for folder in (own, *([own.parent] if _delegated(own.parent) else [])):
            with contextlib.suppress(OSError):
                if set((folder / "cgroup.subtree_control").read_text().split()) >= _NEEDED:
                    yield ControlGroup(memory=folder, tasks=folder)


def _there(root: Path, path: str) -> Path:
    """Return a group's folder; in a container whose root is the group, that."""
    return root / path if (root / path).is_dir() else root


def _delegated(folder: Path) -> bool:
    """Return whether systemd leaves what is below to the user: others may not make groups there."""
    with contextlib.suppress(OSError):
        return os.getxattr(folder, "user.delegate") == b"1"
    return False


def _count(file: Path, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            if line.split()[:1] == [name]:
                return int(line.split()[1])
    return 0
