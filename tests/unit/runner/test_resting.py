"""Children that are stopped for a while and go on."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from children import call, vector

pytestmark = pytest.mark.processes

SLOW = "import time\ndef f(x):\n    time.sleep(0.3)\n    return x"


BUSY = """import time
def f(x):
    while time.process_time() < {}:
        pass
    return x"""


@pytest.fixture
def crowd():
    """Move a process to a processor that others, each in a session of its own, keep busy."""
    cpu = min(os.sched_getaffinity(0))
    spin = f"import os; os.sched_setaffinity(0, {{{cpu}}}); os.write(1, b'.')\nwhile True: pass"
    started = []

    def begin(pid, others):
        os.sched_setaffinity(pid, {cpu})
        for _ in range(others):
            command = [sys.executable, "-c", spin]
            started.append(
                subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
            )
        for process in started:
            assert process.stdout.read(1) == b"."

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def wait_until(true):
    end = time.monotonic() + 30
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    assert true()


def test_a_child_that_rests_answers_when_it_goes_on(opened):
    session = opened("def f(x): return x")
    assert call(session, vector(1.0)).ended == "returned"
    session.pause()
    wait_until(lambda: session.paused)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call, session, vector(1.0))
        time.sleep(0.3)
        assert not answer.done()
        session.resume()
        assert answer.result(30).ended == "returned"
    assert not session.paused


@pytest.mark.slow
def test_a_deadline_waits_for_a_child_that_rests(opened):
    session = opened(SLOW)
    assert call(session, vector(1.0)).ended == "returned"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(call, session, vector(1.0), deadline_s=1.5)
        time.sleep(0.05)
        session.pause()
        time.sleep(2.0)
        session.resume()
        assert answer.result(30).ended == "returned"


@pytest.mark.slow
def test_a_deadline_waits_for_a_child_that_waits_for_a_processor(opened, crowd):
    session = opened(BUSY.format(0.15))
    assert session.loaded.ended == "returned"
    crowd(session.pid, others=6)

    assert call(session, vector(1.0), deadline_s=0.5).ended == "returned"
    assert session.queued_s > 0.3


@pytest.mark.slow
def test_no_deadline_waits_for_a_child_that_crowds_the_processor_itself(opened, crowd):
    busy = BUSY.format(60.0).replace("def f(x):", "import os\ndef f(x):\n    os.fork()")
    session = opened(busy)
    assert session.loaded.ended == "returned"
    crowd(session.pid, others=6)

    assert call(session, vector(1.0), deadline_s=1.0).ended == "timeout"
    assert session.queued_s < 0.5


@pytest.mark.slow
def test_no_deadline_waits_longer_than_a_while_for_a_processor(opened, crowd):
    session = opened(BUSY.format(60.0))
    assert session.loaded.ended == "returned"
    crowd(session.pid, others=14)

    began = time.monotonic()
    assert call(session, vector(1.0), deadline_s=1.0).ended == "timeout"
    assert 9.9 < session.queued_s <= 10.0
    assert time.monotonic() - began < 30.0


def test_a_child_that_is_only_beginning_rests_when_it_runs(opened):
    session = opened("def f(x): return x")
    session.pause()
    with ThreadPoolExecutor(1) as pool:
        loaded = pool.submit(lambda: session.loaded)
        wait_until(lambda: session.pid is not None and session.paused)
        session.resume()
        assert loaded.result(30).ended == "returned"


def test_a_child_that_takes_the_place_of_one_that_rests_rests_too(opened):
    session = opened("def f(x): return x")
    assert session.loaded.ended == "returned"
    session.pause()
    session.restart()
    with ThreadPoolExecutor(1) as pool:
        loaded = pool.submit(lambda: session.loaded)
        wait_until(lambda: session.pid is not None and session.paused)
        assert not loaded.done()
        session.resume()
        assert loaded.result(30).ended == "returned"


def test_a_child_that_rests_can_be_ended(opened):
    session = opened("def f(x): return x")
    assert session.loaded.ended == "returned"
    session.pause()
    began = time.monotonic()
    session.close()
    assert time.monotonic() - began < 5
    assert session.paused
    session.resume()
