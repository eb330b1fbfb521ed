"""Pages of made-up runs, and headless browsers: Firefox, and Chromium at two widths.

A browser that is not there, or its driver, or selenium, skips its tests, visibly. `CHROMIUM`,
`CHROMEDRIVER` and `FIREFOX` name other programs.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from chromium import Chromium
from synthetic import write_run

from kerneltruth.report.html import page
from kerneltruth.report.page.document import page_document
from kerneltruth.report.page.material import collect, write_page

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}


def program(variable, *names):
    """The program that the environment names, or the first of these that is there."""
    named = os.environ.get(variable)
    return named or next((path for name in names if (path := shutil.which(name))), None)


def start_chromium(folder, width, height):
    pytest.importorskip("selenium", reason="selenium is not installed")
    found = program("CHROMIUM", "chromium", "chromium-browser", "google-chrome")
    driver = program("CHROMEDRIVER", "chromedriver")
    if not found or not driver:
        pytest.skip("needs chromium and chromedriver (Debian: chromium chromium-driver)")
    return Chromium(found, driver, folder, width, height)


def start_firefox(folder, width, height):
    pytest.importorskip("websocket", reason="websocket-client, of selenium, is not installed")
    from firefox import Firefox, NotStartedError

    found = program("FIREFOX", "firefox-esr", "firefox")
    if not found:
        pytest.skip("needs firefox (Debian: firefox-esr)")
    try:
        return Firefox(found, folder, width, height)
    except NotStartedError as error:
        pytest.skip(f"firefox does not start here: {error}")


@pytest.fixture(scope="session")
def browsers(tmp_path_factory):
    """Starts each browser once, where its first test asks for it."""
    started, missing = {}, {}

    def started_once(name):
        if name in missing:
            pytest.skip(missing[name])
        if name not in started:
            start = start_firefox if name == "firefox" else start_chromium
            size = WIDTHS.get(name, WIDTHS["desktop"])
            try:
                started[name] = start(tmp_path_factory.mktemp("profile"), *size)
            except pytest.skip.Exception as skipped:
                missing[name] = str(skipped)
                raise
        return started[name]

    yield started_once
    for browser in started.values():
        browser.quit()


@pytest.fixture(params=list(WIDTHS))
def chromium(request, browsers):
    """Chromium as wide as a desk's screen, and as a phone's."""
    return browsers(request.param)


@pytest.fixture(params=["firefox", "phone"])
def browser(request, browsers):
    """Firefox as wide as a desk's screen, and Chromium as a phone's: one of each costs half."""
    return browsers(request.param)


@dataclass(frozen=True)
class WrittenPage:
    """A page and what it was made of."""

    path: Path
    material: object

    @property
    def address(self):
        return self.path.as_uri()


def report_page(folder, *runs, **options):
    material = collect(runs)
    path = folder / "report.html"
    write_page(path, page(page_document(material, **options)))
    return WrittenPage(path, material)


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """A page of 160 attempts."""
    folder = tmp_path_factory.mktemp("study")
    return report_page(folder, write_run(folder / "run", attempts=160))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """A page of candidates that are named, and print, what a browser might run."""
    folder = tmp_path_factory.mktemp("hostile")
    return report_page(folder, write_run(folder / "run", attempts=150, seed=1, hostile=True))


@pytest.fixture(scope="session")
def untimed(tmp_path_factory):
    """A page of a run without a GPU."""
    folder = tmp_path_factory.mktemp("untimed")
    return report_page(folder, write_run(folder / "run", attempts=120, timed=False))


@pytest.fixture(scope="session")
def unlabelled(tmp_path_factory):
    """A page of a run whose attempts say neither who made them nor which they are."""
    folder = tmp_path_factory.mktemp("unlabelled")
    run = write_run(folder / "run", attempts=40)
    log = run / "results.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps({**line, "labels": {}}) + "\n" for line in lines))
    return report_page(folder, run)


@pytest.fixture(scope="session")
def leaderboard(tmp_path_factory):
    """A page of two runs on two devices."""
    folder = tmp_path_factory.mktemp("leaderboard")
    runs = [
        write_run(folder / name, attempts=150, device=f"cuda:0 (NVIDIA {name})")
        for name in ("H100", "A100")
    ]
    return report_page(folder, *runs, ranks=True)


@pytest.fixture(scope="session")
def of_few(tmp_path_factory):
    """A page of few attempts, on two devices: axe looks at each of its elements."""
    folder = tmp_path_factory.mktemp("of-few")
    devices = {name: f"cuda:0 (NVIDIA {name})" for name in ("H100", "A100")}
    return report_page(
        folder,
        *(write_run(folder / n, attempts=30, device=device) for n, device in devices.items()),
    )
