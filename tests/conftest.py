"""For all tests: what each needs, which share a process, a limit of time, skips without a GPU."""

import os
import signal
from pathlib import Path

import pytest

from sampling import in_sample

pytest_plugins = ["pytester"]

# Threads of several test processes on a few cores wait for each other in busy loops.
os.environ.setdefault("OMP_NUM_THREADS", "1")

TESTS = Path(__file__).parent
# What every test of a folder needs. Within `unit` a file says so itself.
NEEDS = {
    "browser": ("browser", "processes"),
    "cli": ("processes",),
    "cluster": ("cluster", "processes"),
    "gpu": ("processes",),
    "interpreter": ("interpreter", "processes"),
    "quality": ("interpreter", "processes"),
}
# Folders whose tests run one after the other: two browsers, or a browser and a Ray, would starve
# each other, and commands share warm runners.
TOGETHER = {"browser": "services", "cluster": "services", "cli": "commands"}
# Files of `unit` that take longest: begun last, they would keep one process busy alone.
FIRST = ("test_extensions.py", "test_judging.py")
# How many tests `--sample` leaves out.
LEFT_OUT = pytest.StashKey()


def pytest_itemcollected(item):
    """Mark a test with what its folder needs, and as fast if it needs nothing."""
    for name in NEEDS.get(item.path.relative_to(TESTS).parts[0], ()):
        item.add_marker(name)
    if not any(map(item.get_closest_marker, ("processes", "sweep"))):
        item.add_marker("fast")


def pytest_addoption(parser):
    parser.addoption(
        "--sample", action="store_true", help="run a part of each sweep, and nothing slow"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With -n: a file's tests share what its fixtures start, so one process runs them."""
    from xdist.scheduler import LoadScopeScheduling

    # `--dist loadgroup` of pytest-xdist 3.8 groups nothing with pytest 9.2, and does not say so.
    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return TOGETHER.get(file.split("/")[1], file)

    return ByFile(config, log)


# For each test, and what comes before and after it; the longest takes a tenth of this.
LIMIT_S = 600


def _limited(item):
    def expired(signum, frame):
        raise TimeoutError(f"{item.nodeid} took over {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(LIMIT_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_limited)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_limited)
pytest_runtest_teardown = pytest.hookimpl(wrapper=True)(_limited)


@pytest.fixture(autouse=True)
def _own_variables_stay():
    """Fail a test that leaves a variable of the package set: those after it would be judged so."""
    before = _own_variables()
    yield
    assert _own_variables() == before


def _own_variables():
    return {name: v for name, v in os.environ.items() if name.startswith("KERNELTRUTH_")}


@pytest.fixture(scope="session")
def runner():
    """A runner on the CPU for all tests that do not spoil it: each warm process takes seconds."""
    from kerneltruth.runner.host import Runner

    with Runner(device="cpu", targets=()) as made:
        yield made


def pytest_terminal_summary(terminalreporter):
    """Say in a line each what went untested: a skip of all its tests is easily missed."""
    if terminalreporter.config.option.sample:
        left = terminalreporter.config.stash.get(LEFT_OUT, 0)
        terminalreporter.write_line(
            f"{left} slow tests and items of sweeps were not run; `make test-all` runs them"
        )
    skipped = terminalreporter.stats.get("skipped", [])
    page = [r for r in skipped if r.nodeid.startswith("tests/browser/")]
    if page:
        terminalreporter.write_line(
            f"the page of `report` was not tested: {len(page)} tests of it were skipped", red=True
        )


def pytest_sessionfinish(session):
    """Tell the process that reports how many were left out: with -n, it collects none."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    # All processes collect the same.
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_collection_modifyitems(config, items):
    if config.option.sample:
        sample = [*in_sample(items)]
        config.hook.pytest_deselected(items=[*{*items}.difference(sample)])
        config.stash[LEFT_OUT] = len(items) - len(sample)
        items[:] = sample
    items.sort(key=lambda item: item.path.name not in FIRST)
    gpu_items = [item for item in items if item.get_closest_marker("gpu")]
    if not gpu_items:
        return
    import torch

    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in gpu_items:
        item.add_marker(skip)
