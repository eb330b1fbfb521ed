"""For all tests: marks by folder, groups of one process, a limit of time, skips without a GPU."""

import signal
from pathlib import Path

import pytest

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


def pytest_itemcollected(item):
    """Mark a test with what its folder needs, and with the group that runs in one process."""
    folder = item.path.relative_to(TESTS).parts[0]
    for name in NEEDS.get(folder, ()):
        item.add_marker(name)
    # The tests of one file share what its fixtures start.
    item.add_marker(pytest.mark.xdist_group(TOGETHER.get(folder, item.path.stem)))


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


def pytest_terminal_summary(terminalreporter):
    """Say in one line that the page went untested: a skip of all its tests is easily missed."""
    skipped = terminalreporter.stats.get("skipped", [])
    page = [r for r in skipped if r.nodeid.startswith("tests/browser/")]
    if page:
        terminalreporter.write_line(
            f"the page of `report` was not tested: {len(page)} tests of it were skipped", red=True
        )


def pytest_collection_modifyitems(config, items):
    gpu_items = [item for item in items if item.get_closest_marker("gpu")]
    if not gpu_items:
        return
    import torch

    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in gpu_items:
        item.add_marker(skip)
