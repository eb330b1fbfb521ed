"""Read and write the tool's files: whole or not at all, with one clear line on failure."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from kerneltruth.documents.model import VALUES_OF_RUN, loads
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.regular_file import read_regular


def cache_folder(name: str) -> Path:
    """Return the folder of that name in the user's cache: in `~/.cache/kerneltruth` on Linux."""
    return user_cache_path("kerneltruth", appauthor=False) / name


def read_json(path: Path) -> Any:
    """Read the JSON document in a file of a run.

    Raises:
        UserError: the file cannot be read, is too large, or is not JSON.
    """
    try:
        return loads(read_regular(path).decode("utf-8"), most=VALUES_OF_RUN)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check the path") from error
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path} is damaged ({reason}); restore it, or judge the kernel again"
        ) from error


def run_parents() -> tuple[Path, ...]:
    """Return the folders in which commands make runs that nobody names, the preferred one first."""
    return Path("runs"), Path(tempfile.gettempdir()) / "kerneltruth-runs"


def new_folder(command: str, parents: Sequence[Path] = ()) -> Path:
    """Create a new directory for what a command writes, in the first parent that can be written.

    By default that is `runs/`, or else a temporary folder.

    Raises:
        EnvironmentFault: none can be made here.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    for parent in parents or run_parents():
        for number in range(1000):
            path = parent / (f"{command}-{stamp}" + (f"-{number}" if number else ""))
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError:
                break
            return path
    raise EnvironmentFault(f"no run directory can be made below {os.getcwd()}; name one with --out")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write into one line that says what to do.

    Raises:
        EnvironmentFault: in place of any OSError.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        step = "free some space" if full else "check the path and its permissions"
        raise EnvironmentFault(
            f"cannot write {path}: {error.strerror or error}; {step}, then run the same command "
            "again: what was written stays readable"
        ) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte; `os.write` alone may write fewer."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it appears whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # What lies there is left from before, or a link that someone has planted.
        temporary.unlink(missing_ok=True)
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
