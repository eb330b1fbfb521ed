"""Pages of made-up runs, and a headless Chromium at two widths.

Without Chromium, its driver or selenium the tests are skipped, visibly. `CHROMIUM` and
`CHROMEDRIVER` name other programs.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from synthetic import write_run

from kerneltruth.report.html import page
from kerneltruth.report.page.document import page_document
from kerneltruth.report.page.material import collect, write_page

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def program(variable, *names):
    """The program that the environment names, or the first of these that is there."""
    named = os.environ.get(variable)
    return named or next((path for name in names if (path := shutil.which(name))), None)


def start(folder, width, height):
    """A new Chromium with an empty profile; skips the test where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = program("CHROMIUM", "chromium", "chromium-browser", "google-chrome")
    driver = program("CHROMEDRIVER", "chromedriver")
    if not chromium or not driver:
        pytest.skip("needs chromium and chromedriver (Debian: chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver)
    browser = webdriver.Chrome(options=options, service=service)
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return browser


@pytest.fixture(scope="session", params=list(WIDTHS))
def chromium(request, tmp_path_factory):
    """Chromium as wide as a desk's screen, and as a phone's."""
    browser = start(tmp_path_factory.mktemp("profile"), *WIDTHS[request.param])
    browser.kerneltruth_width = WIDTHS[request.param][0]
    yield browser
    browser.quit()


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
