"""What becomes of a request whose reference's own process is lost."""

from types import SimpleNamespace

import pytest

from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.observation import Observation
from kerneltruth.suites.remote import Rejected, Remote

NO_ROOM = "the device's memory: cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY"


def remote(*seen: Observation) -> Remote:
    ends = iter(seen)
    session = SimpleNamespace(call=lambda *_, **__: next(ends))
    return Remote(None, SimpleNamespace(open=lambda candidate: session))


def lost(message: str) -> Observation:
    return Observation(ended="lost", message=message)


def test_a_child_that_is_lost_twice_is_the_machines_fault():
    twice = remote(lost("the keeper is gone"), lost("the keeper is gone"))
    with pytest.raises(EnvironmentFault, match="a reference was lost: the keeper is gone; try"):
        twice.document({}, {}, dict, deadline_s=1.0)


def test_a_request_whose_child_is_lost_is_made_once_more():
    once = remote(lost("the keeper is gone"), Observation(ended="returned", results=()))
    assert once.outputs({}, {}, deadline_s=1.0) == ()


def test_a_request_that_finds_no_memory_is_rejected_at_once():
    with pytest.raises(Rejected, match="CUDA_ERROR_OUT_OF_MEMORY"):
        remote(lost(NO_ROOM)).outputs({}, {}, deadline_s=1.0)
