"""The right to use a device, with threads that want it and processes that only remember."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from kerneltruth.clock.schedule.background_work import BackgroundWork

# Far more than it takes; a test that passes does not wait so long.
PATIENCE_S = 30
# How long to look whether something happens that must not: too short can only miss it.
A_MOMENT_S = 0.1


class Process:
    def __init__(self):
        self.paused = False
        self.times = 0

    def pause(self):
        self.paused = True
        self.times += 1

    def resume(self):
        self.paused = False


@pytest.fixture
def interruptible():
    """Ctrl-C for this thread; a process in the background begins without Python's handler of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield partial(signal.pthread_kill, threading.get_ident(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def at_work(background, began, end):
    with background.work():
        began.set()
        end.wait(PATIENCE_S)


def test_background_processes_rest_while_batches_run_and_continue_afterwards():
    background, one, always = BackgroundWork(), Process(), Process()
    background.always(lambda: [always])
    with background.beside(lambda: [one]):
        with background.batches():
            assert one.paused
            assert always.paused
        assert not one.paused
        assert not always.paused
    with background.batches():
        assert not one.paused
        assert always.paused


def test_a_process_that_leaves_the_background_during_batches_continues():
    background, one = BackgroundWork(), Process()
    with background.beside(lambda: [one]):
        batches = background.batches()
        batches.__enter__()
    assert one.paused
    batches.__exit__(None, None, None)
    assert not one.paused


def test_background_processes_continue_after_failed_batches():
    background, one = BackgroundWork(), Process()
    with (
        background.beside(lambda: [one]),
        pytest.raises(ValueError, match="failed"),
        background.batches(),
    ):
        raise ValueError("failed")
    assert not one.paused


def test_no_work_begins_while_batches_run(threads):
    background, began, end = BackgroundWork(), threading.Event(), threading.Event()
    end.set()
    with background.batches():
        worker = threads.submit(at_work, background, began, end)
        assert not began.wait(A_MOMENT_S)
    worker.result(PATIENCE_S)
    assert began.is_set()


def test_batches_wait_for_work_that_has_begun(threads):
    background, began, end, timed = (
        BackgroundWork(),
        threading.Event(),
        threading.Event(),
        threading.Event(),
    )

    def batches():
        with background.batches():
            timed.set()

    worker = threads.submit(at_work, background, began, end)
    assert began.wait(PATIENCE_S)
    timer = threads.submit(batches)
    assert not timed.wait(A_MOMENT_S)
    end.set()
    for each in (worker, timer):
        each.result(PATIENCE_S)
    assert timed.is_set()


def test_many_work_at_a_time(threads):
    background, end = BackgroundWork(), threading.Event()
    begun = [threading.Event() for _ in range(3)]
    workers = [threads.submit(at_work, background, began, end) for began in begun]
    assert all(began.wait(PATIENCE_S) for began in begun)
    end.set()
    for each in workers:
        each.result(PATIENCE_S)


def test_work_of_the_thread_that_runs_batches_is_part_of_them():
    finished = []
    background = BackgroundWork(finish=lambda: finished.append(True))
    with background.batches(), background.work():
        # It neither waits for itself, nor does it end what batches have begun.
        entered = True
    assert entered
    assert not finished


def test_batches_interrupted_while_they_wait_release_all_others(interruptible, threads):
    background, began, end = BackgroundWork(), threading.Event(), threading.Event()
    worker = threads.submit(at_work, background, began, end)
    assert began.wait(PATIENCE_S)
    threading.Timer(A_MOMENT_S, interruptible).start()
    with pytest.raises(KeyboardInterrupt), background.batches():
        pytest.fail("somebody is still at work")
    end.set()
    worker.result(PATIENCE_S)
    later = threads.submit(at_work, background, threading.Event(), end)
    later.result(PATIENCE_S)


def test_a_process_that_does_not_stop_blocks_no_batch():
    background, one = BackgroundWork(stop_s=0.05), Process()
    one.pause = lambda: None
    with background.beside(lambda: [one]), background.batches():
        assert not one.paused


def test_work_ends_when_the_device_has_finished_it():
    finished = []
    background = BackgroundWork(finish=lambda: finished.append(True))
    with background.work():
        assert not finished
    assert finished == [True]
    with pytest.raises(ValueError, match="failed"), background.work():
        raise ValueError("failed")
    with background.batches():
        assert finished == [True, True]
