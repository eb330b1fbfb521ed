"""What is learned from launches: block sizes, configurations, and whose work a call is."""

from types import SimpleNamespace

import pytest

from kerneltruth.oracle.launches_seen import COUNTED_CALLS, MAX_CONFIGS, LaunchesSeen
from kerneltruth.runner.observation import KernelLaunches, KernelWork, Launch, Observation

MINE = KernelWork(runs=(KernelLaunches(name="mine", module="f.py", own=True, launches=1),))
THEIRS = KernelWork(runs=(KernelLaunches(name="mm", module="aten", own=False, launches=3),))


def launches_in(*observations, language="triton", source="", idle=False):
    launches = LaunchesSeen(SimpleNamespace(language=language, source=source))
    for number, observation in enumerate(observations):
        launches.note(observation, number, idle=idle)
    return launches


def launched(configs=1, **constants):
    launch = Launch(kernel="k", grid=(1,), constants=constants, signature={}, configs=configs)
    return Observation(ended="returned", launches=(launch,))


def working(work):
    return Observation(ended="returned", work=work)


def test_block_sizes_come_from_the_source_and_from_launches():
    assert launches_in(source="BLOCK = 32\n").blocks == {32}
    assert launches_in(launched(BLOCK=64, FLAG=True, eps=0.5), source="BLOCK = 32\n").blocks == {
        32,
        64,
    }


def test_the_number_of_configurations_is_learned_from_launches_up_to_a_limit():
    assert launches_in(launched(configs=5), launched()).configs == 5
    assert launches_in(launched(configs=5), launched(configs=10**6)).configs == MAX_CONFIGS


def test_the_work_is_that_of_the_first_call_unless_a_later_one_launches_an_own_kernel():
    assert launches_in(working(THEIRS), working(THEIRS)).work == (THEIRS, 0)
    assert launches_in(working(THEIRS), working(MINE)).work == (MINE, 1)


def test_a_call_whose_kernels_do_nothing_shows_no_work():
    assert launches_in(working(MINE), idle=True).work is None


@pytest.mark.parametrize(
    ("language", "calls", "may"),
    [("triton", 99, True), ("cuda", COUNTED_CALLS, False), ("cuda", 1, True), ("torch", 1, False)],
)
def test_calls_are_counted_until_an_own_kernel_is_seen_or_is_not_to_be_expected(
    language, calls, may
):
    launches = launches_in(*[working(THEIRS)] * calls, language=language)
    assert launches.may_show_work is may
    launches.note(working(MINE), "case", idle=False)
    assert not launches.may_show_work
    launches.forget_work()
    assert launches.may_show_work
