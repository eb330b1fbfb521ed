"""What a child that is killed while it compiles leaves to the next child of its candidate."""

import os
import signal
import time

import pytest
from children import CPU, call, vector, zygote_of

from kerneltruth.runner import compile_cache
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner

pytestmark = pytest.mark.processes

# The first child makes the file, as a compiler that writes in place; the others use what is there.
COMPILING = """
import os, time

MADE = os.path.join(os.path.dirname(os.environ["TORCHINDUCTOR_CACHE_DIR"]), "made.so")

def f(x):
    if not os.path.exists(MADE):
        with open(MADE, "w") as file:
            file.write("half")
            file.flush()
            if x[0] > 0:
                time.sleep(60)
            file.write(" and half")
    if x[0] == 2:
        os.abort()
    return open(MADE).read(), os.stat(MADE).st_ino
"""


@pytest.fixture
def runner(tmp_path):
    with Runner(device=CPU, cache_root=tmp_path) as runner:
        yield runner


@pytest.fixture
def candidate():
    return read_candidate(COMPILING, "f.py", task_names=("f",), task="f")


def result_texts(session, x=0.0):
    return [result.text for result in call(session, vector(x)).results]


@pytest.mark.slow
def test_a_file_cut_short_is_not_used_by_the_next_child(runner, candidate):
    with runner.open(candidate) as session:
        assert call(session, vector(1.0), deadline_s=0.5).ended == "timeout"
        assert result_texts(session)[0] == "'half and half'"


@pytest.mark.slow
def test_it_is_not_used_after_the_judge_has_died_either(runner, candidate, tmp_path):
    with runner.open(candidate) as session:
        assert result_texts(session)
        (mark,) = tmp_path.glob("*/.child-*")
        # As of a child that has begun to work, and writes.
        os.utime(mark)
        (tmp_path / candidate.sha256 / "made.so").write_text("half")
        os.kill(zygote_of(session.pid), signal.SIGKILL)
    with Runner(device=CPU, cache_root=tmp_path) as then, then.open(candidate) as session:
        assert result_texts(session)[0] == "'half and half'"


@pytest.mark.slow
def test_a_child_killed_later_leaves_what_was_compiled_before(runner, candidate):
    with runner.open(candidate) as session:
        before = result_texts(session)
        # Files have times of a coarse clock.
        time.sleep(0.05)
        assert call(session, vector(2.0)).ended == "died"
        assert result_texts(session) == before


@pytest.mark.slow
def test_children_at_once_share_what_is_whole(runner, candidate):
    with runner.open(candidate) as one, runner.open(candidate) as other:
        assert result_texts(one) == result_texts(other)


@pytest.mark.slow
def test_a_cache_cut_short_stays_while_another_child_uses_it(runner, candidate, tmp_path):
    with runner.open(candidate) as user:
        assert user.loaded.ended == "returned"
        with runner.open(candidate) as session:
            assert call(session, vector(1.0), deadline_s=0.5).ended == "timeout"
            assert result_texts(session)[0] == "'half and half'"
        assert (tmp_path / candidate.sha256 / "made.so").read_text() == "half"
    with runner.open(candidate) as session:
        assert result_texts(session)[0] == "'half and half'"
    assert (tmp_path / candidate.sha256 / "made.so").read_text() == "half and half"


@pytest.mark.slow
def test_marks_of_the_dead_do_not_pile_up(runner, candidate, tmp_path):
    for _ in range(3):
        with runner.open(candidate) as session:
            assert result_texts(session)
    assert len([*tmp_path.glob("*/.child-*")]) == 1


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_a_candidate_puts_in_place_of_a_mark_harms_only_its_own_cache(tmp_path, make):
    cache = tmp_path / "candidate"
    cache.mkdir()
    make(cache / ".child-own")
    first = compile_cache.enter(cache)
    assert compile_cache.enter(tmp_path / "another") is not None
    if first is not None:
        os.close(first)


def test_a_place_that_cannot_be_written_gives_no_mark(tmp_path):
    (tmp_path / "cache").write_text("")
    assert compile_cache.enter(tmp_path / "cache") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_cache_of_another_user_is_dropped_and_never_given_away(tmp_path):
    others, own = tmp_path / "others", tmp_path / "cache"
    others.write_text("another's")
    os.close(compile_cache.enter(own))
    os.link(others, own / "linked")
    mark = compile_cache.enter(own, 12345)
    assert {own.stat().st_uid, os.fstat(mark).st_uid} == {12345}
    assert not (own / "linked").exists()
    assert others.stat().st_uid == os.geteuid()
    assert compile_cache.enter(own) is None
    os.close(mark)
    os.close(compile_cache.enter(own))
    assert own.stat().st_uid == os.geteuid()
