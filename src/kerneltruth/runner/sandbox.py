"""Limit what a child may touch: environment, folders, descriptors, resources; and end it.

`confine` applies resource limits in the child, after the fork and before the candidate's first
line; `containment` does the rest. The host measures deadlines and has the child's whole tree
killed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from kerneltruth.runner.containment.cgroups import ControlGroup
from kerneltruth.runner.containment.libc import prctl

_KEPT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "VIRTUAL_ENV",
)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# A descendant that survives SIGKILL for this long is stuck in the kernel.
_KILL_S = 5.0
ADDRESS_SPACE = 8 * 2**30
FILE_SIZE = 2 * 2**30
_MOST_COUNTED = 1024
MEMORY = 16 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimits:
    """A child's limits. `address_space` adds to what the zygote holds; None means no limit.

    CUDA maps far more address space than it uses, so there is no such limit on a CUDA device.
    `threads` adds to those of all other processes of the user, which may become more meanwhile.
    `processes`, `memory`, `disk` and `files` are of all that the child starts and writes together:
    the warden looks at them now and then, and a control group, if there is one, enforces the first
    two. What it compiled is kept up to `kept` bytes.
    """

    address_space: int | None = ADDRESS_SPACE
    file_size: int = FILE_SIZE
    descriptors: int = 4096
    threads: int = 4096
    processes: int = 1024
    memory: int = MEMORY
    disk: int = 4 * 2**30
    files: int = 50_000
    kept: int = 2**29


def total_memory() -> int:
    """Return the bytes of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * resource.getpagesize()


def base_environment(parent: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that children see, with single-threaded libraries."""
    kept = {name: parent[name] for name in _KEPT if name in parent}
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
    return {**kept, **threads, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def private_environment(folder: Path, cache: Path | None) -> dict[str, str]:
    """Return variables that keep all that a child writes in its own folder, or compile cache."""
    compiled = folder if cache is None else cache
    return {
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(folder / "home" / ".cache"),
        "TRITON_HOME": str(folder / "home"),
        "TRITON_CACHE_DIR": str(compiled / "triton"),
        "TORCH_EXTENSIONS_DIR": str(compiled / "extensions"),
        "TORCHINDUCTOR_CACHE_DIR": str(compiled / "inductor"),
        "CUDA_CACHE_PATH": str(compiled / "cuda"),
    }


def make_folders(folder: Path, user: int | None = None) -> None:
    """Create a child's private folders, for their owner only: a user, by default this one."""
    for part in (folder, folder / "home", folder / "tmp", folder / "work"):
        part.mkdir(mode=0o700, exist_ok=True)
        if user is not None:
            os.chown(part, user, -1)


def remove_folder(folder: Path) -> None:
    """Remove a private folder, whatever the candidate did to the permissions in it."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    for parent, names, _ in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            if not os.path.islink(path):
                with contextlib.suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def exceeded(
    limits: ResourceLimits, folders: Iterable[Path], group: ControlGroup | None = None
) -> str | None:
    """Return which limit of all together the children of this process exceed, in words.

    Args:
        limits: theirs.
        folders: where they may write.
        group: what holds them to limits of memory and processes; None has these looked at.
    """
    if group is None:
        processes, memory = _tree(limits.processes)
        many, much = processes > limits.processes, memory > limits.memory
    else:
        many, much = group.out_of_tasks, group.out_of_memory
    if many:
        threads = "" if group is None else " and threads"
        return f"ran more than {limits.processes} processes{threads}"
    if much:
        return f"took more than {limits.memory >> 20} MiB of memory, with all its processes"
    files, size = _written(folders, limits.files)
    if files > limits.files:
        return f"wrote more than {limits.files} files"
    return f"wrote more than {limits.disk >> 20} MiB of files" if size > limits.disk else None


def _tree(most: int) -> tuple[int, int]:
    """Return how many processes there are below this one, and what memory is theirs alone.

    Stops above `most`. All are forks, so each begins with as much as this process has.
    """
    own, found, memory = _resident("self"), 0, 0
    for pid in _below(os.getpid()):
        with contextlib.suppress(OSError):
            memory += max(0, _resident(pid) - own)
            found += 1
        if found > most:
            break
    return found, memory


def _below(above: int) -> Iterator[str]:
    """The processes that a process has started, and theirs."""
    todo = [str(above)]
    while todo:
        pid = todo.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                todo += Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
        if pid != str(above):
            yield pid


def processes_beside(child: int) -> int:
    """Return how many running processes a child has started, orphans among them.

    Its warden adopts orphans, and starts the first process of the child's own namespace.
    """
    try:
        _, warden = _state(str(child))
    except OSError:
        return 0
    running = 0
    for pid in islice(_below(warden), _MOST_COUNTED):
        with contextlib.suppress(OSError):
            ours = pid == str(child) or _is_first(pid)
            running += not ours and _state(pid)[0] not in "ZX"
    return running


def is_at_rest(child: int) -> bool:
    """Return whether a child has one thread, and no process that it has started still runs."""
    try:
        return len(os.listdir(f"/proc/{child}/task")) == 1 and not processes_beside(child)
    except OSError:
        return True


def _is_first(pid: str) -> bool:
    """Return whether a process is the first one of a namespace of processes."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    numbers = next((s.split()[1:] for s in status.splitlines() if s.startswith("NSpid:")), [])
    return len(numbers) > 1 and numbers[-1] == "1"


def _state(pid: str) -> tuple[str, int]:
    """The state of a process, in a letter, and its parent."""
    state, parent, *_ = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return state, int(parent)


def _resident(pid: str) -> int:
    """Return the bytes in memory that are no file's."""
    _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(resident) - int(shared)) * resource.getpagesize()


def _written(folders: Iterable[Path], most: int) -> tuple[int, int]:
    """Return how many files and folders lie in folders, and the bytes on the disk; to `most`."""
    count, size, todo = 0, 0, [os.fspath(folder) for folder in folders]
    while todo and count <= most:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in islice(entries, most + 1 - count):
                count += 1
                with contextlib.suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
    return count, size


def keep_compiled(cache: Path, limits: ResourceLimits) -> None:
    """Remove a candidate's compile cache if it holds more than compiled kernels take."""
    count, size = _written((cache,), limits.files)
    if count > limits.files or size > limits.kept:
        remove_folder(cache)


def confine(limits: ResourceLimits, user: int | None = None) -> None:
    """Limit the resources of this process, and of all that it starts as a user."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_FSIZE, limits.file_size)
    _lower(resource.RLIMIT_NOFILE, limits.descriptors)
    _lower(resource.RLIMIT_MSGQUEUE, 0)
    # The system counts all threads of the user, and root's not at all.
    threads = _threads_of(os.geteuid() if user is None else user)
    _lower(resource.RLIMIT_NPROC, threads + limits.threads)
    if limits.address_space is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _lower(resource.RLIMIT_AS, pages * resource.getpagesize() + limits.address_space)


def _threads_of(user: int) -> int:
    """Return how many threads a user has."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                # A folder is linked to by itself, by its parent, and by each folder in it.
                about = os.stat(f"/proc/{name}/task")
                count += (about.st_nlink - 2) if about.st_uid == user else 0
    return count


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def keep_descriptors(keep: Iterable[int]) -> None:
    """Close every descriptor but the standard ones and those to keep."""
    kept = {0, 1, 2, *keep}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent, of that pid, is gone."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, daemons included."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def descendants(root: int, *, spare: Collection[int] = ()) -> set[int]:
    """Return living processes below `root`, without `spare` and those below it."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                # The command's name may hold spaces and parentheses: fields count from the last.
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    children.setdefault(int(fields[1]), []).append(int(name))
    found: set[int] = set()
    todo = [root]
    while todo:
        new = {c for c in children.get(todo.pop(), []) if c not in spare} - found
        found |= new
        todo += new
    return found


def kill_tree(*, spare: Collection[int] = ()) -> int:
    """Kill and reap all descendants of this process; returns how many could not be killed.

    Stops them first, and repeats until none is new, so that a process that forks faster than it is
    killed cannot escape. Needs `adopt_orphans`, or daemons escape.
    """
    end = time.monotonic() + _KILL_S
    while True:
        if reap()[1]:
            return 0
        stopped: set[int] = set()
        while new := descendants(os.getpid(), spare=spare) - stopped:
            _signal(new, signal.SIGSTOP)
            stopped |= new
        if not stopped or time.monotonic() > end:
            # A process that has just ended by itself is no descendant any more, but must still be
            # reaped.
            reap()
            return len(stopped)
        _signal(stopped, signal.SIGKILL)
        time.sleep(0.002)


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def reap() -> tuple[dict[int, int], bool]:
    """Reap dead children; return their wait statuses, and whether no children are left."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, True
        if pid == 0:
            return ended, False
        ended[pid] = status
