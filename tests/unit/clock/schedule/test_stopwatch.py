"""Where seconds go."""

import contextlib

from kerneltruth.clock.schedule.stopwatch import Stopwatch


def test_seconds_add_up_by_part_however_a_block_ends(clock):
    spent = Stopwatch(clock.read)
    for what, seconds in (("laps", 2.0), ("rows", 0.5), ("laps", 1.0)):
        with spent.on(what):
            clock.now += seconds
    with contextlib.suppress(RuntimeError), spent.on("rows"):
        clock.now += 0.25
        raise RuntimeError("no")
    assert spent == {"laps": 3.0, "rows": 0.75}
