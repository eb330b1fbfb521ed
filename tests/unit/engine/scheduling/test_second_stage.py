"""The second stage of a pool: one worker, batches of one task, and what its death leaves."""

import os
import signal
import threading
import time
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest

from kerneltruth.engine.scheduling.local_pool import LocalPool, Then
from kerneltruth.engine.scheduling.scheduler import Done, Lost
from kerneltruth.errors import EnvironmentFault, InternalError

pytestmark = pytest.mark.processes


@dataclass(frozen=True)
class Sum:
    task: str
    number: int
    flag: str = ""


def add(job, report):
    report(1)
    return job.number


def times_ten(batch):
    return [10 * result for _, result in batch]


def even(job, result):
    return result % 2 == 0


def lost_result(job, result, reason):
    return f"{result} lost: {reason}"


def results(jobs, then, workers=2):
    events = list(LocalPool(work=add, workers=workers, then=then).run(jobs))
    assert not any(isinstance(e, Lost) for e in events)
    return [(e.job, e.result) for e in events if isinstance(e, Done)]


def test_wanted_results_go_through_the_second_stage_and_others_do_not():
    jobs = [Sum(task=str(i % 3), number=i) for i in range(12)]
    found = results(jobs, Then(wanted=even, work=times_ten, lost=lost_result))
    assert dict(found) == {j: 10 * j.number if j.number % 2 == 0 else j.number for j in jobs}
    assert len(found) == len(jobs)


def test_the_second_stage_may_want_nothing():
    jobs = [Sum(task="a", number=1), Sum(task="b", number=3)]
    assert dict(results(jobs, Then(wanted=even, work=times_ten, lost=lost_result))) == {
        jobs[0]: 1,
        jobs[1]: 3,
    }


def everything(job, result):
    return True


def who(batch):
    return [(os.getpid(), threading.get_ident(), len(batch))] * len(batch)


def test_one_worker_does_all():
    jobs = [Sum(task=str(i % 4), number=i) for i in range(16)]
    found = results(jobs, Then(wanted=everything, work=who, lost=lost_result), workers=3)
    assert len(found) == 16
    assert len({pid for _, (pid, _, _) in found}) == 1
    assert os.getpid() not in {pid for _, (pid, _, _) in found}


def test_no_batch_is_larger_than_it_may_be():
    jobs = [Sum(task="a", number=i) for i in range(20)]
    found = results(jobs, Then(wanted=everything, work=who, lost=lost_result, batch=3))
    assert len(found) == 20
    assert max(count for _, (_, _, count) in found) <= 3


def tasks_seen(batch):
    seen = "".join(job.task for job, _ in batch)
    return [seen] * len(batch)


def test_jobs_of_one_task_are_done_together():
    jobs = [Sum(task="abc"[i % 3], number=i) for i in range(15)]
    found = results(jobs, Then(wanted=everything, work=tasks_seen, lost=lost_result, batch=15))
    assert {seen for _, seen in found} <= {x * 5 + y * 5 + z * 5 for x, y, z in permutations("abc")}


def test_the_second_stage_waits_for_a_whole_batch_while_judges_are_at_work():
    jobs = [Sum(task="a", number=i) for i in range(10)]
    found = results(jobs, Then(wanted=everything, work=tasks_seen, lost=lost_result, batch=4))
    assert sorted(len(seen) for _, seen in found) == [2] * 2 + [4] * 8


def die_at_first(batch):
    flag = Path(batch[0][0].flag)
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return times_ten(batch)


def test_a_batch_whose_worker_dies_is_done_by_another(tmp_path):
    jobs = [Sum(task="a", number=i, flag=str(tmp_path / "flag")) for i in range(6)]
    found = results(jobs, Then(wanted=everything, work=die_at_first, lost=lost_result))
    assert dict(found) == {j: 10 * j.number for j in jobs}


def die_at_four(batch):
    if any(result == 4 for _, result in batch):
        os.kill(os.getpid(), signal.SIGKILL)
    return times_ten(batch)


def test_a_job_that_kills_two_workers_has_the_result_of_the_lost():
    jobs = [Sum(task="a", number=i) for i in range(8)]
    found = dict(
        results(jobs, Then(wanted=everything, work=die_at_four, lost=lost_result, batch=1))
    )
    assert len(found) == 8
    assert found[jobs[4]].startswith("4 lost: the process that times died twice (exit code -9)")
    assert all(found[j] == 10 * j.number for j in jobs if j.number != 4)


def test_a_job_that_kills_workers_takes_no_other_job_with_it():
    jobs = [Sum(task="ab"[i % 3 == 0], number=i) for i in range(20)]
    found = dict(
        results(jobs, Then(wanted=everything, work=die_at_four, lost=lost_result, batch=8))
    )
    assert [j.number for j, result in found.items() if isinstance(result, str)] == [4]
    assert all(found[j] == 10 * j.number for j in jobs if j.number != 4)


def test_a_lost_job_is_named_even_if_it_is_the_only_one():
    (found,) = results(
        [Sum(task="a", number=4)], Then(wanted=even, work=die_at_four, lost=lost_result)
    )
    assert found[1].startswith("4 lost")


def die_after_two(batch):
    flag = Path(batch[0][0].flag)
    done = times_ten(batch)
    if flag.exists():
        return done
    flag.touch()
    return (os.kill(os.getpid(), signal.SIGKILL) if i == 2 else r for i, r in enumerate(done))


def test_results_that_a_worker_gave_before_it_died_stay(tmp_path):
    jobs = [Sum(task="a", number=i, flag=str(tmp_path / "flag")) for i in range(5)]
    found = results(jobs, Then(wanted=everything, work=die_after_two, lost=lost_result, batch=5))
    assert dict(found) == {j: 10 * j.number for j in jobs}
    assert len(found) == len(jobs)


def die_when_idle(batch):
    flag = Path(batch[0][0].flag)
    if not flag.exists():
        flag.write_text(str(os.getpid()))
        threading.Timer(0.05, os._exit, args=(1,)).start()
    return times_ten(batch)


def second_waits_for_death(job, report):
    flag = Path(job.flag)
    while job.number == 2 and not (flag.exists() and is_gone(flag.read_text())):
        time.sleep(0.01)
    return job.number


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_worker_that_died_between_two_batches_is_replaced(tmp_path):
    jobs = [Sum(task=str(i), number=i, flag=str(tmp_path / "flag")) for i in (1, 2)]
    then = Then(wanted=everything, work=die_when_idle, lost=lost_result, batch=1)
    events = LocalPool(work=second_waits_for_death, workers=2, then=then).run(jobs)
    assert {e.job: e.result for e in events} == {jobs[0]: 10, jobs[1]: 20}


def fail(batch):
    raise ValueError("a bug of ours")


def no_device(batch):
    raise EnvironmentFault("no device")


def test_a_bug_in_the_second_stage_is_raised_with_its_place():
    with pytest.raises(InternalError, match="in the second stage: a bug of ours"):
        results([Sum(task="a", number=0)], Then(wanted=even, work=fail, lost=lost_result))


def test_a_fault_of_the_machine_in_the_second_stage_is_raised_as_one():
    with pytest.raises(EnvironmentFault, match="no device"):
        results([Sum(task="a", number=0)], Then(wanted=even, work=no_device, lost=lost_result))


def die(job, report):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_job_that_its_judge_did_not_survive_does_not_go_on():
    then = Then(wanted=everything, work=times_ten, lost=lost_result)
    (event,) = LocalPool(work=die, workers=1, then=then).run([Sum(task="a", number=0)])
    assert isinstance(event, Lost)


def stay_if_odd(job, report):
    if job.number % 2:
        time.sleep(600)
    return job.number


def test_the_worker_ends_together_with_the_judges(tmp_path):
    def give_one_and_stay(batch):
        (tmp_path / str(os.getpid())).touch()
        yield 10
        time.sleep(600)

    then = Then(wanted=even, work=give_one_and_stay, lost=lost_result, batch=1)
    jobs = [Sum(task="b", number=1), Sum(task="a", number=2)]
    events = LocalPool(work=stay_if_odd, workers=2, then=then, stop_s=2.0).run(jobs)
    assert next(e for e in events if isinstance(e, Done)).result == 10
    began = time.monotonic()
    events.close()
    assert time.monotonic() - began < 3.8
    (worker,) = (int(path.name) for path in tmp_path.iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
