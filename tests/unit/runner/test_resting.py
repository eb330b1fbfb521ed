"""Children that are stopped for a while and go on."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from children import call, vector

pytestmark = pytest.mark.processes

SLOW = "import time\ndef f(x):\n    time.sleep(0.3)\n    return x"


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
