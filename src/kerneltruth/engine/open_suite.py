"""The suite of the user's own that a judge has open, and whether its files have changed since."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from kerneltruth.documents.model import content_hash
from kerneltruth.runner.host import Runner
from kerneltruth.suites.foreign import is_foreign, opened

# What tasks are made of.
READ = (".py", ".json", ".jsonl", ".yml", ".yaml")


class OpenSuite:
    """At most one suite of the user's own, which stays open between questions.

    Attributes:
        stamp: of the files of the open suite; empty where none is open.
    """

    def __init__(self, runner: Runner, judges: int) -> None:
        """Open nothing yet; arguments as in `suites.foreign.opened`."""
        self._runner = runner
        self._judges = judges
        self._stack = contextlib.ExitStack()
        self._name: str | None = None
        self.stamp = ""

    def open(self, suite: str | None) -> str | None:
        """Return the name of the suite that an option means, registered if it is the user's own.

        Raises:
            UserError: there is no such suite at the path.
        """
        stamp = _stamp(suite) if suite is not None and is_foreign(suite) else ""
        if stamp != self.stamp:
            self._stack.close()
            self.stamp, self._name = "", None
        if suite is None or not stamp:
            return suite
        if not self.stamp:
            entered = opened(suite, self._runner, judges=self._judges)
            self._name = self._stack.enter_context(entered)
            self.stamp = stamp
        return self._name


def _stamp(suite: str) -> str:
    """Return a hash of a suite's name and of the state of its files."""
    path = Path(suite.partition(":")[2])
    return content_hash([suite, [[str(p), *_state(p)] for p in sorted(_files(path))]])


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names if name.endswith(READ))


def _state(path: Path) -> tuple[int, int]:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    return 0, 0
