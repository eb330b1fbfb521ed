"""What a user reads where a reference's own process is lost."""

from types import SimpleNamespace

import pytest

from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.observation import Observation
from kerneltruth.suites.remote import Remote


def test_a_lost_child_of_a_reference_is_the_machines_fault():
    session = SimpleNamespace(call=lambda *_, **__: Observation(ended="lost", message="no memory"))
    remote = Remote(None, SimpleNamespace(open=lambda candidate: session))
    with pytest.raises(EnvironmentFault, match="the child of a reference was lost: no memory; try"):
        remote.document({}, {}, dict, deadline_s=1.0)
