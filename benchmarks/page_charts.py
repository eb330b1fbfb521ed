"""Charts by Vega-Lite in place of the page's own: what they would cost, and if they would run.

    pip install altair vl-convert-python
    python benchmarks/page_charts.py

One chart of speedups with intervals is made by Altair and put, with the libraries that draw it,
into a file as `report` writes it: no network, and a policy that allows its own style and scripts
by their hashes. Chromium opens it with that policy, with a weaker one and without. Beside it stands
the page of the synthetic run of the browser's tests.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine

from kerneltruth.report.html import STYLES, TEMPLATES, page
from kerneltruth.report.page import cells, rounds, scales
from kerneltruth.report.page.document import page_document
from kerneltruth.report.page.embed import policy
from kerneltruth.report.page.material import collect

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from synthetic import write_run  # noqa: E402

from conftest import WIDTHS, start  # noqa: E402

ATTEMPTS = 400
REPEATS = 5
WAIT_S = 5.0
MOST_SAID = 90
COUNT = "return document.querySelectorAll('canvas, #vis svg').length"
HEADER = "Content-Security-Policy"
NONE, WITHOUT_TYPES, WHOLE = "none", "the page's, without trusted types", "the page's"
MARK = re.compile(r"<svg.*?</svg>", re.DOTALL)
PLACE = '<div id="vis"></div>'


def import_s(module: str) -> float:
    """Return the median seconds that a fresh process takes to import a module."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    words = [sys.executable, "-c", code]
    ran = [subprocess.run(words, capture_output=True, check=True) for _ in range(REPEATS)]
    return statistics.median(float(each.stdout) for each in ran)


def vega_page(rule: str) -> str:
    """Return a file with one chart, under the page's policy or a weaker one."""
    import altair
    import vl_convert

    rows = [{"method": name, "speedup": 1.2, "low": 1.1, "high": 1.3} for name in "abc"]
    base = altair.Chart(altair.Data(values=rows)).encode(y="method:N")
    ends = base.mark_rule().encode(x="low:Q", x2="high:Q")
    chart = ends + base.mark_tick().encode(x="speedup:Q")
    draw = f"vegaEmbed('#vis', {chart.to_json(indent=None)});"
    script = f"{vl_convert.javascript_bundle()}\n{draw}".replace("</script", "<\\/script")
    said = policy(styles=(), scripts=(script,))
    if rule == WITHOUT_TYPES:
        said = said.replace("; require-trusted-types-for 'script'", "")
    head = "" if rule == NONE else f'<meta http-equiv="{HEADER}" content="{said}">'
    tail = f'<body>{PLACE}<script type="module">{script}</script></body>'
    return f'<!doctype html><html><head><meta charset="utf-8">{head}</head>{tail}</html>'


def drawn(folder: Path, text: str) -> tuple[bool, str]:
    """Return whether Chromium draws the chart, and its complaints."""
    path = folder / "chart.html"
    path.write_text(text)
    browser = start(folder / "profile", *WIDTHS["desktop"])
    try:
        browser.get(path.as_uri())
        time.sleep(WAIT_S)
        found = browser.execute_script(
            "return document.querySelectorAll('canvas, #vis svg').length"
        )
        errors = [entry["message"] for entry in browser.get_log("browser")]
        # Behind the file's name and the place in it.
        said = (error.partition(".html ")[2].partition(" ")[2][:MOST_SAID] for error in errors)
        return bool(found), "; ".join(dict.fromkeys(said))
    finally:
        browser.quit()


def own() -> tuple[int, int, int]:
    """Return bytes of the page, bytes of charts in it, and lines of the code that makes them."""
    with tempfile.TemporaryDirectory() as name:
        text = page(page_document(collect([write_run(Path(name) / "run", attempts=ATTEMPTS)])))
    assert "charts" in STYLES
    style = (TEMPLATES / "style" / "charts.css").read_text()
    charts = sum(len(found.encode()) for found in MARK.findall(text)) + len(style.encode())
    files = [*(Path(str(m.__file__)) for m in (cells, rounds, scales))]
    files += [TEMPLATES / "style" / "charts.css", TEMPLATES / "parts" / "cells.html"]
    return len(text.encode()), charts, sum(len(f.read_text().splitlines()) for f in files)


def main() -> int:
    """Measure, and write the report."""
    options = machine.parser("What Vega-Lite would cost the page.").parse_args()
    size, charts, lines = own()
    rows: list[list[object]] = [
        ["bytes of a file with one chart by Vega-Lite", len(vega_page(NONE).encode())],
        ["bytes of the whole page of 400 attempts", size],
        ["bytes of all bars, strips and plots in it, with their style", charts],
        ["lines that make these, and all tables", lines],
        ["seconds to import altair", import_s("altair")],
        ["seconds to import jinja2", import_s("jinja2")],
    ]
    said = ["", "| policy | chart is drawn | Chromium's complaints, each cut |", "|---|---|---|"]
    for rule in (NONE, WITHOUT_TYPES, WHOLE):
        with tempfile.TemporaryDirectory() as folder:
            shown, complaint = drawn(Path(folder), vega_page(rule))
        said.append(f"| {rule} | {'yes' if shown else 'no'} | {complaint} |")
    machine.publish(
        "page_charts",
        "Charts of the page by Vega-Lite",
        machine.facts("cpu"),
        [*machine.table(["what", "measured"], rows), *said],
        folder=options.results,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
