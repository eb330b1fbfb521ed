"""Call a candidate in this process, for profilers: they cannot follow forks.

`python -m kerneltruth.runner.child.without_judge FILE` reads a `Load`, then the messages that
allocate and fill input buffers. There is no wall here, and nothing observed here counts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from kerneltruth.runner.child.worker import Worker
from kerneltruth.runner.protocol import Load, TimedStep, WireMessage
from kerneltruth.runner.wire import decode, encode

_LIMIT = 2**40


def write(path: Path, load: Load, messages: tuple[TimedStep, ...]) -> None:
    """Write what `main` reads."""
    path.write_bytes(b"".join(map(encode, (load, *messages))))


def main(path: str) -> str | None:
    """Call the candidate on each buffer twice; the profiler sees only the second call.

    Returns why that failed, if it failed.
    """
    load, *messages = _messages(path)
    # The source is written to the folder that it is imported from.
    os.chdir(os.path.dirname(path))
    assert isinstance(load, Load)
    worker = Worker(load)
    for seen in (worker.load(), *(worker.time(e) for e in messages if isinstance(e, TimedStep))):
        if seen.ended != "returned":
            return f"{load.filename}: {seen.ended}: {seen.message}"
    on_gpu = load.device != "cpu"
    for call in worker.timed.calls():
        call()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
    for call in worker.timed.calls():
        call()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
    return None


def _messages(path: str) -> Iterator[WireMessage]:
    with open(path, "rb") as file:
        while file.peek(1):
            yield decode(file.read, limit=_LIMIT)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
