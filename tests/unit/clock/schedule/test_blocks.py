"""Disturbed blocks are repeated; the others count, until there are enough."""

from hypothesis import given
from hypothesis import strategies as st

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.schedule.blocks import Blocks

REASONS = st.lists(st.sampled_from([None, "clock moved"]))


@given(reasons=REASONS, repeats=st.integers(0, 5))
def test_a_disturbed_block_counts_only_after_all_repetitions(reasons, repeats):
    blocks = Blocks(effort=Effort(repeats=repeats))
    for number, reason in enumerate(reasons):
        exhausted = len(blocks.disturbed) == repeats
        counts = blocks.record({"eager": ()}, {"eager": (float(number),)}, reason)
        assert counts is (reason is None or exhausted)
    assert len(blocks.counted) == len(blocks.overheads)
    assert len(blocks.counted) + len(blocks.disturbed) == len(reasons)
    assert len(blocks.disturbed) <= repeats


@given(counted=st.integers(0, 12), seconds=st.floats(0, 4), narrow=st.booleans())
def test_blocks_are_between_the_fewest_and_the_most(counted, seconds, narrow):
    blocks = Blocks(effort=Effort(blocks=(6, 10), budget_s=2.0))
    for _ in range(counted):
        blocks.record({}, {}, None)
    over = blocks.are_enough(seconds=seconds, most=10, enough=lambda: narrow)
    if counted >= 10:
        assert over
    elif counted < 6:
        assert not over
    else:
        assert over is (narrow or seconds > 2.0)
