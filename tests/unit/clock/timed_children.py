"""A timed child without a process: it answers messages, and its clock is a script."""

import random
from dataclasses import dataclass, field, replace
from functools import partial

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import Side
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.documents.case import Case
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    CaptureGraphs,
    CountOperators,
    FillBuffers,
    RunBatch,
    ShowResult,
    SpotCheck,
)
from kerneltruth.tasks.spec import task

RELU = task(
    "relu(x[M, N])",
    category="Test",
    dims={"M": "batch", "N": "spatial"},
    reference=lambda x: x.relu(),
    description="",
    flops="M * N",
    benchmark={"M": 4, "N": 8},
)
CASE = Case(task="relu", dims=(("M", 4), ("N", 8)), seed=3)
SMALL = Effort(
    batch_s=0.0016, graph_batch_s=0.0048, blocks=(8, 12), budget_s=1e9, memory_bytes=2**20, shown=2
)
MANY = replace(SMALL, blocks=(12, 12))
# Rows of batches that show what a batch costs around its calls.
SHORTEST = 2


@dataclass
class Clock:
    """Seconds as the judge sees them; children's calls let them pass."""

    now: float = 100.0

    def read(self):
        return self.now


@dataclass
class Child:
    """Calls take `call_s`, of which the child claims the share `claims`.

    Attributes:
        around_s: what a batch costs beside its calls; `longer_s` what it costs more if it is not
            one of the shortest.
        each_s: what each call costs beside what its events show.
        launch_s: what a graph takes to launch.
        host_s: the host's part of a call, outside of graphs; `waits` says that it does so for the
            device, `claims_host_s` what it says of it if that is something else.
        ran: what it says that a call runs.
        ends: how an message of a kind ends, where not well; for good, or for a number of times.
        requests: every message, in order.
        sample: the calls that are sampled; `given` what they were given, by row.
    """

    clock: Clock
    call_s: float = 2e-5
    claims: float = 1.0
    around_s: float = 1e-4
    longer_s: float = 0.0
    each_s: float = 0.0
    launch_s: float = 0.0
    host_s: float = 0.0
    claims_host_s: float | None = None
    ran: dict = field(default_factory=dict)
    waits: bool = False
    noise: object = lambda: 1.0
    ends: dict = field(default_factory=dict)
    requests: list = field(default_factory=list)
    restarts: int = 0
    captured: tuple = ()
    contents: dict = field(default_factory=dict)
    buffers: int = 0
    last: int = -1
    spot_check: SpotCheck = field(default_factory=SpotCheck)
    given: dict = field(default_factory=dict)
    paused: bool = False

    def pause(self):
        self.paused = True

    def resume(self):
        self.paused = False

    def request(self, message, *, sizes=None, deadline_s=30.0):
        self.requests.append(message)
        end = self.ends.get(type(message))
        if end is not None:
            return Observation(ended=end, error="Scripted", message="as the script says")
        match message:
            case AllocateBuffers(count=count):
                self.buffers, self.captured, self.contents = count, (), {}
                self.spot_check = SpotCheck()
            case SpotCheck():
                self.spot_check = message
            case FillBuffers(buffers=buffers, windows=windows):
                for i, buffer in enumerate(buffers):
                    assert buffer < self.buffers
                    self.contents[buffer] = tuple(w[i] for w in windows)
            case CaptureGraphs(groups=groups):
                self.captured = groups
            case RunBatch(buffers=buffers, graphs=True):
                self.clock.now += self.longer_s * (len(buffers) > 1)
                host_s = len(buffers) * self.launch_s
                return self._batch(
                    [r for g in buffers for r in self.captured[g]], message.head_start_s, host_s
                )
            case RunBatch(buffers=buffers):
                self.clock.now += self.longer_s * (len(buffers) > SHORTEST)
                return self._batch(buffers, message.head_start_s, len(buffers) * self.host_s)
            case CountOperators():
                return Observation(ended="returned", timings=self.ran)
            case ShowResult(spot_checks=True):
                return Observation(
                    ended="returned",
                    message=str([self.given[buffer] for buffer in self.spot_check.buffers]),
                )
            case ShowResult():
                return Observation(ended="returned", message=f"{self.contents[self.last]}")
        return Observation(ended="returned")

    def _batch(self, buffers, head_start_s, host):
        assert all(buffer in self.contents for buffer in buffers)
        self.given = {
            buffer: self.contents[source]
            for buffer, source in zip(self.spot_check.buffers, self.spot_check.sources, strict=True)
            if buffer in buffers
        }
        self.contents |= self.given
        self.last = buffers[-1]
        calls = len(buffers)
        took = calls * self.call_s * self.noise()
        if self.waits:
            # Each call is enqueued when the one before is done.
            took, host = took + host, head_start_s + took + host
        elif host > head_start_s:
            # The device may run out of calls.
            took = max(took, host - head_start_s)
        self.clock.now += self.around_s + head_start_s + took + calls * self.each_s
        claimed = host if self.claims_host_s is None else calls * self.claims_host_s
        timings = {"device_s": took * self.claims, "host_s": claimed}
        return Observation(ended="returned", timings=timings | {"peak_bytes": 64.0 * calls})

    def restart(self):
        self.restarts += 1
        self.buffers, self.captured, self.contents = 0, (), {}

    def of(self, kind):
        return [m for m in self.requests if isinstance(m, kind)]


@dataclass
class Sides:
    """The child of each side, by name."""

    clock: Clock
    children: dict = field(default_factory=dict)
    made: list = field(default_factory=list)

    def add(self, name, **script):
        self.children[name] = child = Child(self.clock, **script)
        self.made.append(Side(name=name, child=child))
        return child

    def benchmark(self, *, effort=SMALL, seed=1, **more):
        return InterleavedBenchmark(
            sides=list(self.made),
            inputs=make_bench_inputs(RELU, CASE),
            effort=effort,
            rng=stream(seed, "contest"),
            now=self.clock.read,
            **more,
        )


def measured_laps(child):
    """The batches that count: those that are not as short as can be."""
    return [m for m in child.of(RunBatch) if len(m.buffers) > SHORTEST]


def finished(clock, candidate, *baselines, effort=MANY):
    """A benchmark of a candidate and baselines with these scripts, run to its end."""
    sides = Sides(clock)
    scripts = zip(("candidate", "eager", "compile"), (candidate, *baselines), strict=False)
    for name, script in scripts:
        child = sides.add(name, **script)
        if "noise" not in script:
            child.noise = partial(random.Random(name).gauss, 1, 0.003)
    made = sides.benchmark(effort=effort)
    made.prepare()
    made.run(lambda c: False)
    return made
