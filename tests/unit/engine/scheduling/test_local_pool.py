"""The pool of judges."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from kerneltruth.engine.scheduling.judge_process import STOP_S
from kerneltruth.engine.scheduling.local_pool import LocalPool, LocalPools
from kerneltruth.engine.scheduling.scheduler import Done, Lost, Progress
from kerneltruth.errors import EnvironmentFault, InternalError

pytestmark = pytest.mark.processes


@dataclass(frozen=True)
class Sum:
    task: str
    numbers: tuple[int, ...]
    flag: str = ""


def add_up(job, report):
    report(len(job.numbers))
    return sum(job.numbers)


def die_once(job, report):
    flag = Path(job.flag)
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def die(job, report):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(job, report):
    raise ValueError("a bug of ours")


def report_and_stay(job, report):
    (Path(job.flag) / str(os.getpid())).touch()
    report(1)
    time.sleep(600)


def stay_or_finish_soon(job, report):
    report(1)
    if job.task == "stays":
        time.sleep(600)
    time.sleep(0.3)
    Path(job.flag).touch()


def is_there(pid):
    """Whether a process is there and not yet reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def of_first(job, report):
    time.sleep(0.05)
    return "first", sum(job.numbers)


def of_second(job, report):
    time.sleep(0.05)
    return "second", sum(job.numbers)


def test_pools_share_their_jobs_and_each_works():
    pools = LocalPools(pools=[LocalPool(work=w, workers=1) for w in (of_first, of_second)])
    jobs = [Sum(task=str(n), numbers=(n,)) for n in range(12)]
    results = [e.result for e in pools.run(jobs) if isinstance(e, Done)]

    assert {pool for pool, _ in results} == {"first", "second"}
    assert sorted(number for _, number in results) == list(range(12))


def test_a_job_whose_pool_died_is_lost_and_the_others_are_done():
    pools = LocalPools(pools=[LocalPool(work=w, workers=1) for w in (die, of_second)])
    events = list(pools.run([Sum(task=str(n), numbers=(n,)) for n in range(6)]))

    assert sum(isinstance(e, Done | Lost) for e in events) == 6
    assert any(isinstance(e, Done) for e in events)


def test_a_user_who_interrupts_does_not_wait_long():
    assert STOP_S <= 10


@pytest.mark.slow
def test_judges_at_work_end_together_when_the_caller_stops(tmp_path):
    """They may all be waiting for a device: one after the other they would take minutes."""
    jobs = [Sum(task=str(i), numbers=(), flag=str(tmp_path)) for i in range(8)]
    events = LocalPool(work=report_and_stay, workers=8, stop_s=1.0).run(jobs)
    for _ in jobs:
        assert isinstance(next(events), Progress)
    began = time.monotonic()
    events.close()
    assert time.monotonic() - began < 5
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert len(pids) == 8
    assert not any(map(is_there, pids))


@pytest.mark.slow
def test_a_judge_that_finishes_in_time_is_not_killed_with_the_others(tmp_path):
    jobs = [Sum(task=t, numbers=(), flag=str(tmp_path / t)) for t in ("stays", "ends")]
    events = LocalPool(work=stay_or_finish_soon, workers=2, stop_s=1.5).run(jobs)
    for _ in jobs:
        assert isinstance(next(events), Progress)
    events.close()
    assert [path.name for path in tmp_path.iterdir()] == ["ends"]


@pytest.mark.slow
def test_jobs_that_miss_the_deadline_are_not_waited_for(tmp_path):
    jobs = [Sum(task=t, numbers=(), flag=str(tmp_path / t)) for t in ("stays", "ends")]
    began = time.monotonic()
    events = list(LocalPool(work=stay_or_finish_soon, workers=2, until=began + 2).run(jobs))
    assert 2 <= time.monotonic() - began < 20
    assert [e.job.task for e in events if isinstance(e, Done)] == ["ends"]


def test_every_job_has_exactly_one_result():
    jobs = [Sum(task=str(i % 3), numbers=(i, i)) for i in range(10)]
    results = [e for e in LocalPool(work=add_up, workers=2).run(jobs) if isinstance(e, Done)]
    assert sorted(d.result for d in results) == [2 * i for i in range(10)]
    assert len({d.job for d in results}) == 10


def test_a_judge_goes_on_while_its_result_is_stored(tmp_path):
    jobs = [Sum("a", (1,), str(tmp_path / name)) for name in ("first", "second")]
    events = LocalPool(work=lambda job, report: Path(job.flag).touch(), workers=1).run(jobs)
    assert isinstance(next(events), Done)
    until = time.monotonic() + 20
    while not (tmp_path / "second").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    assert isinstance(next(events), Done)


def test_progress_is_reported_for_the_job_that_makes_it():
    events = list(LocalPool(work=add_up, workers=1).run([Sum(task="a", numbers=(1, 2, 3))]))
    assert [e.news for e in events if isinstance(e, Progress)] == [3]


def test_a_job_whose_judge_is_killed_is_given_to_another(tmp_path):
    job = Sum(task="a", numbers=(), flag=str(tmp_path / "flag"))
    assert [e.result for e in LocalPool(work=die_once, workers=1).run([job])] == ["survived"]


def test_a_job_that_kills_two_judges_is_lost_and_the_rest_goes_on():
    events = list(LocalPool(work=die, workers=1).run([Sum(task="a", numbers=())]))
    assert len(events) == 1
    assert isinstance(events[0], Lost)


def test_a_bug_in_the_judge_is_raised_with_its_place():
    with pytest.raises(InternalError, match="a bug of ours"):
        list(LocalPool(work=fail, workers=1).run([Sum(task="a", numbers=())]))


def no_device(job, report):
    raise EnvironmentFault("no device")


def test_a_fault_of_the_machine_in_the_judge_is_raised_as_one():
    with pytest.raises(EnvironmentFault, match="no device"):
        list(LocalPool(work=no_device, workers=1).run([Sum(task="a", numbers=())]))
