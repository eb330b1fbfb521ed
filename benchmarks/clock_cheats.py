"""What cheats of the timer gain, and what honest use of streams, graphs and workspaces loses.

    python benchmarks/clock_cheats.py [--device cuda]

Every kernel is timed against eager PyTorch, as `kerneltruth time` does. A cheat gains if anything
is called faster; an honest kernel loses if it is not timed, or suspected.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import machine

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import known_machine
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import find

WORK = """
import torch
def work(input, dim):
    x = input - input.amax(dim, keepdim=True)
    e = x.exp()
    return e / e.sum(dim, keepdim=True)
"""
# Those that call `work` compute softmax in several steps, and so are honestly slower than eager
# PyTorch; those that leave out work are as quick as eager where they do it.
CHEATS = {
    "side stream, never joined": """
_side = torch.cuda.Stream()
def softmax(input, dim, dtype=None):
    out = torch.empty_like(input)
    with torch.cuda.stream(_side):
        out.copy_(work(input, dim))
    return out
""",
    "ahead of the lap, on a side stream that does not wait": """
_early = torch.cuda.Stream()
def softmax(input, dim, dtype=None):
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("a graph would begin with it")
    with torch.cuda.stream(_early):
        out = torch.softmax(input, dim)
    torch.cuda.current_stream().wait_stream(_early)
    return out
""",
    "a thread fills the result later": """
import threading
def _fill(out, input, dim):
    out.copy_(work(input, dim))
def softmax(input, dim, dtype=None):
    out = torch.empty_like(input)
    threading.Thread(target=_fill, args=(out, input, dim)).start()
    return out
""",
    "Event.elapsed_time patched": """
torch.cuda.Event.elapsed_time = lambda self, other: 0.001
def softmax(input, dim, dtype=None):
    return work(input, dim)
""",
    "events of the harness patched": """
import kerneltruth.runner.timing.timed_worker as _track
_track._elapsed = lambda before, after: 0.001
def softmax(input, dim, dtype=None):
    return work(input, dim)
""",
    "events of the harness three tenths short, and a host that says it is four times as slow": """
import kerneltruth.runner.timing.timed_worker as _track
_elapsed, _clock = _track._elapsed, _track._perf_counter
_track._elapsed = lambda before, after: 0.7 * _elapsed(before, after)
_track._perf_counter = lambda: 4 * _clock()
def softmax(input, dim, dtype=None):
    return torch.softmax(input, dim)
""",
    "events and clocks of the harness a tenth of theirs": """
import kerneltruth.runner.timing.timed_worker as _track
_elapsed, _clock = _track._elapsed, _track._perf_counter
_track._elapsed = lambda before, after: 0.1 * _elapsed(before, after)
_track._perf_counter = lambda: 0.1 * _clock()
def softmax(input, dim, dtype=None):
    return work(input, dim)
""",
    "synchronize patched away": """
import kerneltruth.runner.timing.timed_worker as _track
_track._synchronize = None
torch.cuda.synchronize = lambda *a: None
def softmax(input, dim, dtype=None):
    return work(input, dim)
""",
    "clocks patched": """
import time
time.perf_counter = time.monotonic = lambda: 0.0
def softmax(input, dim, dtype=None):
    return work(input, dim)
""",
    "cached by pointer": """
_known = {}
def softmax(input, dim, dtype=None):
    key = input.data_ptr()
    if key not in _known:
        _known[key] = torch.softmax(input, dim)
    return _known[key]
""",
    "cached by some values": """
_known = {}
def softmax(input, dim, dtype=None):
    key = tuple(input.flatten()[:: max(1, input.numel() // 4)].tolist())
    if key not in _known:
        _known[key] = work(input, dim)
    return _known[key]
""",
    "no work after 30 calls": """
_calls, _last = 0, None
def softmax(input, dim, dtype=None):
    global _calls, _last
    _calls += 1
    if _calls <= 30:
        _last = torch.softmax(input, dim)
    return _last
""",
    "work at every second call": """
_calls, _last = 0, None
def softmax(input, dim, dtype=None):
    global _calls, _last
    _calls += 1
    if _calls % 2 or _last is None:
        _last = torch.softmax(input, dim)
    return _last
""",
    "one call in ten is left out": """
import random
def softmax(input, dim, dtype=None):
    out = torch.empty_like(input)
    return out if random.random() < 0.1 else torch.softmax(input, dim, out=out)
""",
    "no work after 3,000 calls, nor in graphs after 600": """
_calls = 0
def softmax(input, dim, dtype=None):
    global _calls
    _calls += 1
    most = 600 if torch.cuda.is_current_stream_capturing() else 3000
    out = torch.empty_like(input)
    return out if _calls > most else torch.softmax(input, dim, out=out)
""",
    "in graphs only the last call of each works": """
_calls = 0
def softmax(input, dim, dtype=None):
    global _calls
    out = torch.empty_like(input)
    if not torch.cuda.is_current_stream_capturing():
        _calls = 0
        return torch.softmax(input, dim, out=out)
    _calls += 1
    rows = 0 if input._base is None else input._base.shape[0] - 4
    size = max(rows // 9, 1)
    return out if _calls % size else torch.softmax(input, dim, out=out)
""",
    "calls of a graph computed at once": """
_made, _calls = None, 0
def softmax(input, dim, dtype=None):
    global _made, _calls
    every = input._base
    if every is None or not torch.cuda.is_current_stream_capturing():
        _calls = 0
        return torch.softmax(input, dim)
    size = max((every.shape[0] - 4) // 9, 1)
    if _calls % size == 0:
        _made = torch.softmax(every[:, : input.numel()].reshape(-1, *input.shape), dim)
    _calls += 1
    return _made[input.storage_offset() // every.shape[1]]
""",
    "flush of the caches patched": """
import kerneltruth.runner.timing.timed_worker as _track
_track._sum = lambda memory: memory
def softmax(input, dim, dtype=None):
    return work(input, dim)
""",
    "lazy tensor": """
class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, input, dim):
        made = torch.Tensor._make_subclass(cls, torch.empty_like(input))
        made._input, made._dim = input, dim
        return made
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [work(a._input, a._dim) if isinstance(a, Lazy) else a for a in args]
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
def softmax(input, dim, dtype=None):
    return Lazy(input, dim)
""",
    "nothing is computed": """
def softmax(input, dim, dtype=None):
    return torch.empty_like(input)
""",
}
HONEST = {
    "plain": """
def softmax(input, dim, dtype=None):
    return work(input, dim)
""",
    "one call of PyTorch": """
def softmax(input, dim, dtype=None):
    return torch.softmax(input, dim)
""",
    "a stream, joined": """
_side = torch.cuda.Stream()
def softmax(input, dim, dtype=None):
    _side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(_side):
        out = work(input, dim)
    torch.cuda.current_stream().wait_stream(_side)
    return out
""",
    "a graph of its own, inputs copied": """
_made = {}
def softmax(input, dim, dtype=None):
    key = (tuple(input.shape), input.dtype, dim)
    if key not in _made:
        held = input.clone()
        work(held, dim)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = work(held, dim)
        _made[key] = graph, held, out
    graph, held, out = _made[key]
    held.copy_(input)
    graph.replay()
    return out.clone()
""",
    "a workspace for the result": """
_made = {}
def softmax(input, dim, dtype=None):
    key = (tuple(input.shape), input.dtype)
    if key not in _made:
        _made[key] = torch.empty_like(input)
    return _made[key].copy_(work(input, dim))
""",
}


# Memory holds few of such inputs: calls are made one by one.
LARGE = {"M": 8192, "N": 4096}


def main() -> int:
    options = machine.parser(__doc__.splitlines()[0]).parse_args()
    device = machine.device_of(options)
    task = find("kernelbenchx/softmax")
    task = replace(task, perf=(*task.perf, LARGE))
    found: list[dict[str, Any]] = []
    with Runner(device=device) as runner:
        runner.start(("time",))
        benchmarker = Benchmarker(
            runner,
            machine=known_machine(runner),
            seed=20251121,
            baselines=("eager",),
            effort=Effort(budget_s=0.5),
            sources=baseline_sources,
        )
        for role, kernels in (("cheat", CHEATS), ("honest", HONEST)):
            for name, text in kernels.items():
                candidate = read_candidate(
                    WORK + text, "softmax.py", task_names=("softmax",), task="softmax"
                )
                timed = benchmarker.time(task, candidate)
                shapes = timed.shapes or ()
                outcomes = [s.baselines["eager"].outcome for s in shapes]
                right = timed.outcome == "timed"
                good = right if role == "honest" else not (right and "faster" in outcomes)
                found.append(
                    {
                        "role": role,
                        "name": name,
                        "good": good,
                        "outcome": timed.outcome,
                        "detail": timed.detail or "",
                        "ratios": [s.baselines["eager"].ratio for s in shapes],
                        "outcomes": outcomes,
                        "methods": [s.method for s in shapes],
                        "graded": [s.graded.calls for s in shapes],
                        "flags": sorted({f for s in shapes for f in s.flags}),
                    }
                )
        benchmarker.close(wait=True)
    facts = machine.facts(device)
    rows = [
        (
            f["name"],
            f["role"],
            f["outcome"],
            ", ".join(f"{r:.2f} {o}" for r, o in zip(f["ratios"], f["outcomes"], strict=True)),
            ", ".join(map(str, f["graded"])),
            ", ".join(f["flags"]),
            f["detail"].splitlines()[0][:90] if f["detail"] else "",
            "yes" if f["good"] else "NO",
        )
        for f in found
    ]
    cheats = [f for f in found if f["role"] == "cheat"]
    honest = [f for f in found if f["role"] == "honest"]
    lines = [
        f"{sum(f['good'] for f in cheats)} of {len(cheats)} cheats gain nothing; "
        f"{sum(f['good'] for f in honest)} of {len(honest)} honest kernels are timed.",
        "",
        *machine.table(
            (
                "kernel",
                "role",
                "outcome",
                "against eager",
                "calls graded",
                "flags",
                "detail",
                "as it should",
            ),
            rows,
        ),
    ]
    machine.publish(
        "clock_cheats",
        "Cheats of the timer, and honest kernels",
        facts,
        lines,
        folder=options.results,
        data={"kernels": found},
    )
    return int(not all(f["good"] for f in found))


if __name__ == "__main__":
    sys.exit(main())
