"""Energy by a card's counter around long batches; cards, children and seconds are scripts."""

from dataclasses import dataclass, field, replace

import pytest
from timed_children import MANY, Child, Clock, Sides

from kerneltruth.clock.device.telemetry import NoTelemetry, Reading
from kerneltruth.clock.protocol.sides import Side
from kerneltruth.clock.schedule.energy import BATCH_S, SETTLE_S, measure_energy
from kerneltruth.clock.schedule.phase import Phase
from kerneltruth.runner.timing.messages import RunBatch

EFFORTS = [MANY, replace(MANY, graph_below_s=0.0)]
IDLE_W = 80.0
# Seconds between two steps of the counter.
STEP_S = 0.08


@dataclass
class Card:
    """A card whose counter moves every few hundredths of a second.

    Attributes:
        loops: when each began and ended, and its joules beside those that the idle card takes.
        goes: how often the counter can be read.
        states: what is read of the card, one after the other; the last for ever.
    """

    clock: Clock
    loops: list = field(default_factory=list)
    goes: float = float("inf")
    stuck: bool = False
    states: list = field(default_factory=lambda: [Reading()])

    def read(self):
        self.clock.now += 0.03
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def energy_j(self):
        self.goes -= 1
        if self.goes < 0:
            return "NVML: GPU is lost"
        at = 0.0 if self.stuck else self.clock.now // STEP_S * STEP_S
        shares = ((j, min(max((at - b) / (e - b), 0.0), 1.0)) for b, e, j in self.loops)
        return IDLE_W * at + sum(joules * share for joules, share in shares)

    def close(self):
        """Nothing to close."""


@dataclass
class Hungry(Child):
    """A child whose calls cost energy, and take another time in a loop.

    Attributes:
        loops_s: seconds of a call in a loop; None for the usual ones.
        seen: at each loop: the name, its calls, and which children were paused.
    """

    card: Card = None
    name: str = ""
    joules: float = 0.0
    loops_s: float | None = None
    fails: bool = False
    seen: list = field(default_factory=list)
    others: dict = field(default_factory=dict)

    def request(self, message, **how):
        began, usual = self.clock.now, self.call_s
        is_loop = isinstance(message, RunBatch) and len(message.buffers) > 200
        if is_loop:
            self.seen.append((self.name, [n for n, c in self.others.items() if c.paused]))
            self.call_s = usual if self.loops_s is None else self.loops_s
            if self.fails:
                self.ends[RunBatch] = "died"
        found = super().request(message, **how)
        if is_loop and found.ended == "returned":
            calls = (self.clock.now - began) / self.call_s
            self.card.loops.append((began, self.clock.now, self.joules * calls))
        self.call_s = usual
        return found


@pytest.fixture
def card(clock):
    return Card(clock)


@pytest.fixture
def seconds_pass(clock):
    """A sleep that takes no time; `slept` are its seconds."""

    def sleep(seconds):
        clock.now += seconds
        sleep.slept.append(seconds)

    sleep.slept = []
    return sleep


@pytest.fixture
def measured(clock, card, seconds_pass):
    """The energy of a candidate and of baselines with these scripts, timed before."""

    def measure(candidate, *baselines, effort=MANY, telemetry=card):
        sides, seen = Sides(clock), []
        scripts = dict(
            zip(("candidate", "eager", "compile"), (candidate, *baselines), strict=False)
        )
        for name, script in scripts.items():
            child = Hungry(clock, card=card, name=name, seen=seen, **script)
            child.others = sides.children
            sides.children[name] = child
            sides.made.append(Side(name=name, child=child))
        made = sides.benchmark(effort=effort)
        made.prepare()
        made.run(lambda c: False)
        found = measure_energy(made, telemetry, sleep=seconds_pass)
        return found, made, seen

    return measure


@pytest.mark.parametrize("effort", EFFORTS)
def test_a_call_costs_what_the_counter_shows_around_its_laps(measured, effort):
    found, _, _ = measured(
        {"call_s": 2e-5, "joules": 0.004}, {"call_s": 4e-5, "joules": 0.012}, effort=effort
    )
    own, eager = found.sides["candidate"], found.sides["eager"]
    assert found.reason is own.reason is eager.reason is None
    assert found.idle_watts == pytest.approx(IDLE_W)
    assert own.joules == pytest.approx(0.004 + IDLE_W * 2e-5, rel=0.005)
    assert eager.joules == pytest.approx(0.012 + IDLE_W * 4e-5, rel=0.005)
    assert own.watts == pytest.approx(IDLE_W + 0.004 / 2e-5, rel=0.005)
    assert eager.watts == pytest.approx(IDLE_W + 0.012 / 4e-5, rel=0.005)
    assert own.laps == pytest.approx([own.joules] * 2, rel=0.005)


@pytest.mark.parametrize("call_s", [1e-6, 2e-5, 3e-3, 1.7])
def test_a_lap_takes_a_second_however_long_a_call_is(measured, call_s):
    found, _, _ = measured({"call_s": call_s, "joules": call_s * 100}, {"call_s": call_s})
    own = found.sides["candidate"]
    assert own.reason is None
    assert own.calls * call_s >= BATCH_S * 0.99
    assert own.seconds == pytest.approx(2 * own.calls * call_s, rel=0.03)


def test_the_second_laps_run_in_the_reverse_order_of_the_first(measured):
    _, _, seen = measured({}, {}, {})
    order = [name for name, _ in seen]
    assert sorted(order[:3]) == ["candidate", "compile", "eager"]
    assert order[3:] == order[:3][::-1]


def test_the_candidate_is_paused_while_a_baseline_runs_and_at_no_other_time(measured):
    _, made, seen = measured({}, {})
    assert {(name, *paused) for name, paused in seen} == {("candidate",), ("eager", "candidate")}
    assert not made.sides[0].child.paused


def test_the_candidate_is_paused_while_the_idle_card_is_measured(measured):
    _, made, _ = measured({}, {})
    states = []

    def sleep(seconds):
        made.sides[0].child.clock.now += seconds
        if seconds >= SETTLE_S:
            states.append(made.sides[0].child.paused)

    measure_energy(made, made.sides[0].child.card, sleep=sleep)
    assert states == [True, True]


@pytest.mark.parametrize(("loops_s", "counts"), [(1.1e-5, False), (1.5e-5, True), (1.7e-5, True)])
def test_a_lap_whose_calls_are_not_as_timed_is_not_reported(measured, loops_s, counts):
    """A candidate that leaves out work in the loop, or sleeps, shows no energy of its calls."""
    script = {"call_s": 1.5e-5, "joules": 0.002}
    found, _, _ = measured({**script, "loops_s": loops_s}, {})
    own = found.sides["candidate"]
    assert (own.joules is not None) is (own.watts is not None) is bool(own.laps) is counts
    assert found.sides["eager"].joules is not None
    if not counts:
        assert own.reason == "a call took 11 us in the loop and 15 us when timed, over 20% apart"


def test_calls_of_false_events_are_those_that_the_judges_clock_has_seen(measured):
    found, _, _ = measured({"call_s": 3e-3, "claims": 0.5}, {"call_s": 3e-3})
    assert found.sides["candidate"].reason is None


@pytest.mark.parametrize(("capped", "counts"), [(False, False), (True, True)])
def test_a_slower_lap_counts_where_the_power_limit_explains_it(measured, card, capped, counts):
    if capped:
        card.states = [Reading(held_down={"sw_power_cap": n}) for n in range(99)]
    found, _, _ = measured({"call_s": 1.5e-5, "joules": 0.01, "loops_s": 2.1e-5}, {})
    assert (found.sides["candidate"].joules is not None) is counts


def test_a_sleeping_candidate_counts_on_no_power_limit_beyond_what_that_explains(measured, card):
    card.states = [Reading(held_down={"sw_power_cap": n}) for n in range(99)]
    found, _, _ = measured({"call_s": 1.5e-5, "joules": 0.01, "loops_s": 3e-5}, {})
    assert found.sides["candidate"].joules is None


def test_the_energy_of_another_process_is_nobodys(measured, card):
    card.states = [Reading(), Reading(others=2)]
    found, _, _ = measured({}, {})
    reasons = {side.reason for side in found.sides.values()}
    assert reasons == {"2 other processes on the device"}


def test_where_there_is_no_counter_no_call_is_made_and_nothing_waits(measured, seconds_pass):
    found, _, seen = measured({}, {}, telemetry=NoTelemetry("NVML: not supported"))
    assert (found.idle_watts, found.sides, found.reason) == (None, {}, "NVML: not supported")
    assert seen == seconds_pass.slept == []


def test_a_card_that_is_lost_on_the_way_ends_it(measured, card):
    card.goes = 40
    found, made, _ = measured({}, {})
    assert (found.idle_watts, found.sides, found.reason) == (None, {}, "NVML: GPU is lost")
    assert not made.sides[0].child.paused


def test_a_counter_that_stands_still_reports_nothing(measured, card):
    card.stuck = True
    found, _, _ = measured({}, {})
    assert {side.reason for side in found.sides.values()} == {"the energy counter stood still"}


def test_a_side_that_fails_in_its_lap_says_why_and_spoils_no_times(measured):
    found, made, seen = measured({"fails": True}, {"joules": 0.01})
    own = found.sides["candidate"]
    assert own.reason == "candidate: died: as the script says"
    assert (own.joules, own.laps, own.calls) == (None, (), 0)
    assert found.sides["eager"].joules is not None
    assert [name for name, _ in seen].count("candidate") == 1
    assert made.phase is Phase.MEASURED
