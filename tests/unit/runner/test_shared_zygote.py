"""A zygote serves every process that was forked from the one that started it."""

import multiprocessing

import pytest

from kerneltruth.runner.host import Runner

pytestmark = pytest.mark.processes


def _ask(runner, answers):
    answers.put(runner.versions()["python"])


@pytest.mark.slow
def test_processes_forked_before_the_zygote_is_ready_all_see_that_it_is():
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with Runner(device="cpu") as runner:
        judges = [context.Process(target=_ask, args=(runner, answers)) for _ in range(2)]
        for judge in judges:
            judge.start()
        for judge in judges:
            judge.join(timeout=60)
        alive = [judge for judge in judges if judge.is_alive()]
        for judge in alive:
            judge.kill()
        assert alive == []
        assert answers.get() == answers.get() == runner.versions()["python"]
