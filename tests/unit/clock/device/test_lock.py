"""Processes that may use a device at once: each waits at a gate, and says when it is inside."""

import multiprocessing
import os

import pytest

from kerneltruth.clock.device.lock import device_for_checks, device_for_timing

FORK = multiprocessing.get_context("fork")
# Far more than it takes, even on a busy machine; a test that passes does not wait so long.
PATIENCE_S = 60
# How long to look whether somebody comes in who must not: too short can only miss it.
A_MOMENT_S = 0.15

DEVICE = "cuda:0"


def visit(gate, device, inside, leave):
    with gate(device):
        inside.set()
        leave.wait(PATIENCE_S)


@pytest.fixture
def visitor(tmp_path, monkeypatch):
    """Send a process to a gate; gives its events of being inside and of leaving."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sent = []

    def send(gate, device=DEVICE):
        inside, leave = FORK.Event(), FORK.Event()
        process = FORK.Process(target=visit, args=(gate, device, inside, leave), daemon=True)
        process.start()
        sent.append((process, leave))
        return inside, leave

    yield send
    for _, leave in sent:
        leave.set()
    for process, _ in sent:
        process.join(PATIENCE_S)
        assert process.exitcode == 0


def test_many_may_check_at_once(visitor):
    with device_for_checks(DEVICE):
        (one, _), (other, _) = visitor(device_for_checks), visitor(device_for_checks)
        assert one.wait(PATIENCE_S)
        assert other.wait(PATIENCE_S)


@pytest.mark.parametrize("gate", [device_for_timing, device_for_checks])
def test_a_process_that_times_is_alone(visitor, gate):
    with device_for_timing(DEVICE):
        inside, _ = visitor(gate)
        assert not inside.wait(A_MOMENT_S)
    assert inside.wait(PATIENCE_S)


def test_timing_waits_for_running_checks(visitor):
    checks, leave = visitor(device_for_checks)
    assert checks.wait(PATIENCE_S)
    times, _ = visitor(device_for_timing)
    assert not times.wait(A_MOMENT_S)
    leave.set()
    assert times.wait(PATIENCE_S)


def test_other_devices_are_other_gates(visitor):
    with device_for_timing(DEVICE):
        inside, _ = visitor(device_for_timing, "cuda:1")
        assert inside.wait(PATIENCE_S)


def test_assigned_devices_are_told_apart(visitor, monkeypatch):
    with device_for_timing(DEVICE):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        inside, _ = visitor(device_for_timing)
        assert inside.wait(PATIENCE_S)


def test_the_device_is_held_until_the_outermost_lock_ends(visitor):
    with device_for_timing(DEVICE):
        with device_for_timing(DEVICE), device_for_timing(DEVICE):
            pass
        inside, _ = visitor(device_for_checks)
        assert not inside.wait(A_MOMENT_S)
    assert inside.wait(PATIENCE_S)


def test_the_device_is_free_again_after_an_error(visitor):
    with pytest.raises(ValueError, match="ours"), device_for_timing(DEVICE):
        raise ValueError("ours")
    inside, _ = visitor(device_for_timing)
    assert inside.wait(PATIENCE_S)


def test_a_forked_process_does_not_keep_the_device(visitor):
    with device_for_timing(DEVICE):
        # At another gate, with the files of this one still open.
        inside, _ = visitor(device_for_checks, "cuda:1")
    assert inside.wait(PATIENCE_S)
    with device_for_timing(DEVICE):
        pass


def test_a_process_that_dies_leaves(visitor):
    def die():
        with device_for_timing(DEVICE):
            os._exit(1)

    process = FORK.Process(target=die)
    process.start()
    process.join(PATIENCE_S)
    assert process.exitcode == 1
    inside, _ = visitor(device_for_checks)
    assert inside.wait(PATIENCE_S)
