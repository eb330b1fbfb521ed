"""What a judge of a service answers where the machine fails it."""

from pathlib import Path

import pytest
from msgspec import structs

from kerneltruth.engine.one_file import judge
from kerneltruth.engine.requests import CheckRequest, Judged, NumberedRequest
from kerneltruth.engine.service_judge import ServiceJudge
from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.host import Runner

pytestmark = pytest.mark.processes

REQUEST = CheckRequest(
    file=Path("relu.py"),
    source="def relu(x): return x.clamp(min=0)",
    task="relu",
    cases=2,
    explain="none",
    keep=False,
)


def serve_request(runner, **how):
    job = NumberedRequest(number=3, request=REQUEST)
    return ServiceJudge(runner, 1, **how)(job, lambda said: None)


@pytest.mark.slow
def test_a_device_that_went_away_is_one_line_and_no_verdict():
    # The runner does not look whether its device is there: it was, when it was chosen.
    with (
        Runner(device="cuda:7", targets=()) as runner,
        pytest.raises(
            EnvironmentFault, match=r"^device cuda:7 is gone: this machine shows "
        ) as caught,
    ):
        serve_request(runner)
    assert "\n" not in str(caught.value)


def test_a_machine_that_failed_once_is_tried_again(runner):
    ended = iter(["infra", "pass"])

    def fails_first(*about):
        judged = yield from judge(*about)
        return Judged(document=structs.replace(judged.document, verdict=next(ended)))

    assert serve_request(runner, judge=fails_first).document.verdict == "pass"
