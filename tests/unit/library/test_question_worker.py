"""What a judge of the server answers where the machine fails it."""

import pytest
from msgspec import structs

from kerneltruth.errors import EnvironmentFault
from kerneltruth.library.messages import CheckMessage, QueuedQuestion, answer_in
from kerneltruth.library.work import QuestionWorker
from kerneltruth.runner.host import Runner

pytestmark = pytest.mark.processes

ABOUT = CheckMessage(
    file="relu.py",
    source="def relu(x): return x.clamp(min=0)",
    task="relu",
    contract="core",
    cases=2,
    seed=1,
    dtypes=(),
    strategies=(),
    require_kernel=False,
    deadline_s=20.0,
    explain="none",
    out=None,
)


def asked(runner):
    return QuestionWorker(runner, 1)(QueuedQuestion(number=3, about=ABOUT), lambda said: None)


def test_a_device_that_went_away_is_one_line_and_no_verdict():
    # The runner does not look whether its device is there: it was, when it was chosen.
    with (
        Runner(device="cuda:7", targets=()) as runner,
        pytest.raises(
            EnvironmentFault, match=r"^device cuda:7 is gone: this machine shows "
        ) as caught,
    ):
        asked(runner)
    assert "\n" not in str(caught.value)


def test_a_machine_that_failed_once_is_tried_again(runner, monkeypatch):
    ended = iter(["infra", "pass"])
    whole = QuestionWorker._judged

    def fails_first(self, options):
        judged = whole(self, options)
        document = structs.replace(judged.document, verdict=next(ended))
        return type(judged)(document=document)

    monkeypatch.setattr(QuestionWorker, "_judged", fails_first)
    answer = answer_in(asked(runner))
    assert (answer.number, answer.document.verdict) == (3, "pass")
