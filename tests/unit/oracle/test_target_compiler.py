"""What a candidate launches is compiled for targets whose GPU is not here."""

from dataclasses import replace

from scripted import RELU, case_of, returned, session_of

from kerneltruth.runner.observation import Binary, Launch, Observation


def launch(**constants):
    return Launch(kernel="k", grid=(1,), constants=constants, signature={"x": "*fp32"}, configs=1)


def expected(session):
    return session.cache.get(RELU, case_of(RELU))


def compiling(**binary):
    found = Binary(kernel="k", target="sm_90", ok=True)
    made = Observation(
        ended="returned", binaries=(found, Binary(kernel="k", target="sm_80", **binary))
    )
    return session_of(RELU, lambda call: returned(call.tensors["x"]), compiled=lambda call: made)


def test_a_launch_is_compiled_once():
    session = compiling(ok=True)
    for _ in range(2):
        assert session.compile(expected(session), (launch(BLOCK=8),), 0) is None
    assert len(session.runner.calls) == 1
    session.compile(expected(session), (launch(BLOCK=16),), 0)
    assert len(session.runner.calls) == 2
    assert len(session.targets.binaries) == 4


def test_the_first_target_that_refuses_is_named():
    session = compiling(ok=False, error="too much shared memory")
    refused = session.compile(expected(session), (launch(),), 0)
    assert (refused.target, refused.detail) == ("sm_80", "k: too much shared memory")


def test_what_was_refused_is_refused_again():
    """The first time may have been beyond the core, where it is declined."""
    session = compiling(ok=False, error="too much shared memory")
    first = session.compile(expected(session), (launch(),), 0)
    assert session.compile(expected(session), (launch(),), 0) == first
    assert session.compile(expected(session), (replace(launch(), kernel="other"),), 0) is not None
    assert len(session.runner.calls) == 2


def test_nothing_launched_is_nothing_to_compile():
    session = compiling(ok=True)
    assert session.compile(expected(session), (), 0) is None
    assert session.runner.opened == []
