"""One target of `fuzz.py`, in a process that instruments what it imports: NAME SECONDS FOLDER."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import atheris

# Both import what is to be instrumented.
with atheris.instrument_imports(include=["kerneltruth"]):
    from fuzz_targets import Forgery, targets

    from kerneltruth.errors import UserError

HANG_S = 2.0
LONGEST = 2**16
_GIVE_UP_S = 15.0
_LEAVES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**31,
        2**63,
        -(2**63),
        10**400,
        0.5,
        float("inf"),
        float("nan"),
    ),
    *("", "x", "\ud800", "\x1b[2J", "a\nb", "\0", "../../x", "/dev/zero", "NaN", "9" * 5000),
    *([], {}, [0], [[]], {"": 0}, ["x"] * 300),
)
_KEYS = ("", "x", "\ud800", "~kind", "~bytes", "schema", "key", "task")


class _Hang(BaseException):
    """An input takes so long that waiting for it tells no more."""


class Watch:
    """Counts what one target does with its inputs, and keeps those that do wrong."""

    def __init__(self, name: str, keep: Path, seconds: int) -> None:
        self._seconds = seconds
        self._target = targets()[name]
        self._name, self._keep = name, keep
        self._folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
        self._said = 0.0
        self._path = keep / f"{name}.json"
        self.found: dict[str, Any] = {
            "executions": 0,
            "seconds": 0.0,
            "growth": 0,
            "slowest_s": 0.0,
            "crashes": {},
            "hangs": {},
            "forgeries": {},
        }
        if self._path.exists():
            self.found = json.loads(self._path.read_text())
        self._began = time.process_time() - self.found["seconds"]
        signal.signal(signal.SIGPROF, _give_up)

    @property
    def seeds(self) -> tuple[bytes, ...]:
        """The inputs to start with."""
        return self._target.seeds

    def one(self, data: bytes) -> None:
        """Give the reader one input; end the process once its CPU time is spent."""
        before, peak = _resident(), _peak()
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, _GIVE_UP_S)
        try:
            self._target.read(data, self._folder)
        except self._target.refusals as refusal:
            if isinstance(refusal, UserError) and "\n" in str(refusal):
                self._saw("crashes", data, f"a refusal of several lines: {refusal!r:.200}")
        except Forgery as forgery:
            self._saw("forgeries", data, _where(forgery))
        except _Hang as hang:
            self._saw("hangs", data, _where(hang))
        except Exception as error:
            self._saw("crashes", data, _where(error))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        took = time.process_time() - start
        if took > HANG_S:
            self._saw("hangs", data, f"{took:.1f} s")
        self.found["slowest_s"] = max(self.found["slowest_s"], took)
        if (now := _peak()) > peak:
            self.found["growth"] = max(self.found["growth"], now - before)
        self.found["executions"] += 1
        if time.monotonic() - self._said > 1:
            self._write()
            if self.found["seconds"] >= self._seconds:
                # The fuzzer's own limit is by the clock.
                os._exit(0)

    def _saw(self, kind: str, data: bytes, where: str) -> None:
        """Keep the first input of each place."""
        known = self.found[kind]
        # Numbers differ between inputs of one class.
        place = re.sub(r"\d+(\.\d+)?", "N", where)[:300] if kind == "hangs" else where
        known[place] = known.get(place, 0) + 1
        if known[place] == 1:
            path = self._keep / f"{self._name}-{kind}-{len(known)}"
            path.write_bytes(data)
            path.with_suffix(".txt").write_text(where, errors="backslashreplace")
            self._write()

    def _write(self) -> None:
        self._said = time.monotonic()
        self.found["seconds"] = time.process_time() - self._began
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self.found))
        new.replace(self._path)


def _give_up(signum: int, frame: object) -> None:
    raise _Hang


def _where(error: BaseException) -> str:
    """The type of an exception and the innermost line of this project that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "kerneltruth" in f.filename and "fuzz" not in f.filename] or frames
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
    said = str(error) if type(error).__name__ == "Forgery" else ""
    return f"{type(error).__name__} at {place} {said:.200}".strip()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def changed(data: bytes, rng: random.Random) -> bytes | None:
    """The JSON in some bytes with a few of its values changed; None if there is none.

    JSON is the whole, one of the lines, or what is behind the first byte.
    """
    lines = data.split(b"\n")
    number = rng.randrange(len(lines))
    for before, text, after in (
        (b"", data, b""),
        (data[:1], data[1:], b""),
        (
            b"".join(x + b"\n" for x in lines[:number]),
            lines[number],
            b"\n".join(lines[number + 1 :]),
        ),
    ):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, dict | list):
            continue
        with contextlib.suppress(ValueError, RecursionError):
            for _ in range(rng.randint(1, 3)):
                _change(value, rng)
            made = json.dumps(value, ensure_ascii=rng.random() < 0.9)
            end = b"\n" + after if text is not data and number + 1 < len(lines) else after
            return before + made.encode("utf-8", "surrogatepass") + end
    return None


def _change(value: Any, rng: random.Random) -> None:
    """Replace, drop, add or repeat one value somewhere within a document, in place."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        inner = [k for k in keys if isinstance(value[k], dict | list) and value[k]]
        if not inner or rng.random() < 0.3:
            break
        value = value[rng.choice(inner)]
    leaf = rng.choice(_LEAVES)
    key = rng.choice(keys) if keys else None
    match rng.randrange(6):
        case 0 | 1 | 2 if key is not None:
            value[key] = leaf if rng.random() < 0.8 else value[rng.choice(keys)]
        case 3 if key is not None:
            del value[key]
        case 4 if key is not None and isinstance(value, list):
            value.extend([value[key]] * rng.choice((1, 9, 300)))
        case 4 if key is not None:
            nested: Any = leaf
            for _ in range(rng.choice((3, 60, 900))):
                nested = [nested] if rng.random() < 0.5 else {"a": nested}
            value[key] = nested
        case _ if isinstance(value, dict):
            value[rng.choice(("", "x", "\ud800", "~kind", "~bytes", "schema", "key", "task"))] = (
                leaf
            )
        case _:
            value.insert(0, leaf)


def fuzz(name: str, seconds: int, keep: Path) -> None:
    """Fuzz one target in this process, which ends with it."""
    watch = Watch(name, keep, seconds)
    corpus = keep / f"{name}.corpus"
    corpus.mkdir(exist_ok=True)
    for number, seed in enumerate(watch.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        made = changed(data, rng) if rng.random() < 0.5 else None
        return atheris.Mutate(data, most) if made is None else made[:most]

    options = [
        f"-max_len={LONGEST}",
        "-len_control=0",
        "-timeout=1000",
    ]
    options += ["-rss_limit_mb=0", "-seed=1", "-print_final_stats=1"]
    # Where the fuzzer writes inputs that it finds slow.
    options += [f"-artifact_prefix={corpus}/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], watch.one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    fuzz(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
