"""How a service deals with what its judges say, and with judges that die."""

import os
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from kerneltruth.engine.requests import CheckRequest
from kerneltruth.engine.service import TRIES, JudgeService
from kerneltruth.errors import EnvironmentFault, InternalError, UserError

pytestmark = pytest.mark.processes


class Service:
    """A service whose judges do what a function does with the task of a request."""

    def __init__(self, does, *, workers=2):
        self.told = []
        self.judges = JudgeService(
            ["cpu"],
            workers=workers,
            targets=(),
            tell=lambda number, answer: self.told.append((number, answer)),
            new_work=lambda runner, most: lambda job, tell: does(job.request.task, tell),
        )

    def ask(self, number, task):
        request = CheckRequest(file=Path("relu.py"), source="", task=task, keep=False)
        self.judges.ask(number, request)

    def until_told(self, count):
        while len(self.told) < count:
            self.judges.deal()
            self.judges.take(wait(self.judges.pipes(), 10))
        return self.told


@pytest.fixture
def service():
    made = []

    def make(does, **how):
        made.append(Service(does, **how))
        return made[-1]

    yield make
    for each in made:
        each.judges.close()


def answer(task, tell):
    """End as the task's name says."""
    match task:
        case "mistake":
            raise UserError("no such task")
        case "fault":
            raise EnvironmentFault("no device")
        case "bug":
            raise ZeroDivisionError("ours")
        case _:
            tell("half done")
            return task


def test_an_answer_is_told_once_under_the_number_of_its_request(service):
    judges = service(answer)
    for number, task in enumerate(("gelu", "silu", "gelu", "elu")):
        judges.ask(number, task)

    assert sorted(judges.until_told(4)) == [(0, "gelu"), (1, "silu"), (2, "gelu"), (3, "elu")]
    assert judges.judges.pipes() == []


@pytest.mark.parametrize(
    ("task", "kind", "says"),
    [
        ("mistake", UserError, "^no such task$"),
        ("fault", EnvironmentFault, "^no device$"),
        ("bug", InternalError, r"^ours\nTraceback .*\n(.*\n)*ZeroDivisionError"),
    ],
)
def test_an_error_is_an_answer_and_its_judge_goes_on(task, kind, says, service):
    judges = service(answer, workers=1)
    judges.ask(1, task)
    judges.ask(2, "gelu")
    (first, error), (second, good) = judges.until_told(2)

    assert (first, second, good) == (1, 2, "gelu")
    with pytest.raises(kind, match=says):
        raise error


def test_a_judge_that_dies_is_replaced_and_its_request_tried_once_more(service, tmp_path):
    def dies_first(task, tell):
        if task == "relu" and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os._exit(7)
        return task

    judges = service(dies_first, workers=1)
    judges.ask(1, "relu")
    judges.ask(2, "gelu")

    assert judges.until_told(2) == [(1, "relu"), (2, "gelu")]


def test_a_request_of_which_every_judge_dies_is_given_up_with_the_exit_code(service, tmp_path):
    def dies(task, tell):
        with (tmp_path / "tries").open("a") as file:
            file.write("x")
        os._exit(7)

    judges = service(dies)
    judges.ask(5, "relu")
    ((number, given_up),) = judges.until_told(1)

    assert number == 5
    assert (given_up.document.task, given_up.document.verdict) == ("relu", "infra")
    assert given_up.document.detail == "the judge process died twice (exit code 7)"
    assert (tmp_path / "tries").read_text() == "x" * TRIES


def test_a_cancelled_request_has_no_answer_though_its_pipe_was_ready(service):
    judges = service(answer)
    judges.ask(1, "gelu")
    judges.judges.deal()
    ready = wait(judges.judges.pipes(), 10)
    judges.judges.cancel(1)
    judges.judges.take(ready)
    judges.ask(2, "silu")

    assert judges.until_told(1) == [(2, "silu")]
