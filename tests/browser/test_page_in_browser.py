"""The page in Firefox at a desk and Chromium on a phone: quiet, offline, and doing what it says."""

import csv
import io
import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from visit import Visit

from kerneltruth.analysis.illusions import illusion_share
from kerneltruth.analysis.metrics import rates
from kerneltruth.analysis.selection import failed_obligations
from kerneltruth.report.page.wording import share_interval, share_said


@pytest.fixture
def visit(browser, study):
    return Visit(browser, study.address)


def answer_of(attempt):
    return attempt.task, attempt.method, attempt.model, attempt.sample


def right_said(results):
    return share_said(rates(results)[0].exe)


def test_it_opens_without_a_word_on_the_console_and_asks_only_for_itself(visit, study):
    assert visit.console() == []
    assert {*visit.requests()} <= {study.address}


def test_it_is_no_wider_than_the_screen(visit, browser):
    assert visit.run("return document.documentElement.scrollWidth") <= browser.width


def test_all_parts_are_there(visit):
    headings = visit.texts("main h2")
    assert headings[:1] == ["Summary"]
    assert {"Verdicts", "Categories", "Stages", "Speed", "Rounds", "Illusions", "Findings"} <= set(
        headings
    )


def test_the_summary_says_what_the_analysis_says(visit, study):
    assert visit.text(".tile[data-part=exe] .counts") == right_said(study.material.study.answers)


@pytest.mark.slow
@pytest.mark.sampled(by=lambda filters, belongs, **width: [str(filters), *width.values()])
@pytest.mark.parametrize(
    ("filters", "belongs"),
    [
        ({"category": "Activation"}, lambda r: r.category == "Activation"),
        (
            {"method": "refine \u00b7 large-70b"},
            lambda r: (r.method, r.model) == ("refine", "large-70b"),
        ),
        ({"dtype": "bfloat16"}, lambda r: "bfloat16" in r.dtypes),
        ({"verdict": "fail"}, lambda r: r.verdict == "fail"),
        ({"verdict": "nan"}, lambda r: r.kind == "nan"),
        ({"text": "gelu ONE_shot"}, lambda r: "gelu" in r.task and r.method == "one_shot"),
        ({"obligation": "layouts"}, lambda r: "layouts" in failed_obligations(r)),
        ({"work": "without torch-only"}, lambda r: not r.torch_only),
        (
            {"category": "Fusion", "dtype": "float16"},
            lambda r: r.category == "Fusion" and "float16" in r.dtypes,
        ),
    ],
)
def test_filters_leave_what_belongs_and_count_it_again(visit, study, filters, belongs):
    visit.filter(**filters)
    left = [r for r in study.material.study.answers if belongs(r)]
    assert 0 < len(left) < len(study.material.study.answers)
    assert visit.text("#filters .status").startswith(f"{len(left):,} answers left by")
    assert visit.text(".tile[data-part=exe] .counts") == right_said(left)
    assert visit.text(".tile[data-part=exe] .interval") == share_interval(rates(left)[0].exe)
    assert visit.text("[data-listing=attempts] .pager p").endswith(f"of {len(left)}")
    shown = visit.texts("#funnel tbody tr:not([hidden]) th")
    assert len(shown) == len({(r.method, r.model) for r in left})


@pytest.mark.slow
def test_illusions_are_those_of_every_round_whatever_is_counted(visit, study):
    kernels = study.material.study.distinct
    visit.filter(category="Fusion")
    own = [r for r in kernels if r.category == "Fusion"]
    found = illusion_share(replace(study.material.study, distinct=tuple(own)))
    assert visit.text(".tile[data-part=illusions] .counts") == share_said(found)
    assert visit.text(".tile[data-part=illusions] .interval") == share_interval(found)
    listed = visit.text("[data-listing=illusions] .pager p")
    assert listed.endswith(f"of {found.numerator}")


@pytest.mark.slow
def test_counted_again_a_table_says_what_python_wrote(visit):
    selectors = ("#summary .tiles", "#by-category", "#funnel", "#map")
    # Until a filter is set, the page shows what Python counted.
    before = [visit.text(s) for s in selectors]
    visit.filter(category="Fusion", method="refine \u00b7 small-7b")
    assert [visit.text(s) for s in selectors] != before
    visit.click("#filters [type=reset]")
    visit.until("return document.querySelector('#filters .status').innerText.includes('no filter')")
    assert [visit.text(s) for s in selectors] == before


@pytest.mark.slow
def test_where_nothing_was_timed_none_is_said_to_be_slow(browser, untimed):
    visit = Visit(browser, untimed.address)
    for dtype in ("any", "float32"):
        visit.filter(dtype=dtype)
        assert visit.texts("#funnel tbody tr:not([hidden]) .num")
        heads = visit.texts("#funnel thead th")
        assert [head for head in heads if "timed" in head or "faster" in head] == []
        tiles = visit.texts("#summary .tile h3")
        assert [tile for tile in tiles if "eager" in tile or "timed" in tile] == []
    assert "Nothing was timed in these runs." in visit.text("#speed")


def test_every_attempt_can_be_counted_in_place_of_answers(visit, study):
    visit.filter(counted="every attempt")
    distinct = study.material.study.distinct
    assert visit.text("#filters .status").startswith(f"{len(distinct)} attempts")
    assert visit.text(".tile[data-part=exe] .counts") == right_said(distinct)


def test_what_a_filter_does_not_change_says_so(visit):
    assert not visit.run("return [...document.querySelectorAll('.scope')].some((e) => !e.hidden)")
    visit.filter(category="Fusion")
    assert visit.run("return [...document.querySelectorAll('.scope')].every((e) => !e.hidden)")


def test_the_map_shows_the_tasks_that_are_left(visit):
    visit.filter(category="Convolution")
    assert visit.texts("#map tbody tr:not([hidden]) th") == [
        "Convolution",
        "conv2d",
        "conv_transpose2d",
    ]


def test_a_heading_sorts_its_table_and_says_how(visit):
    visit.click("#by-category thead button", 3)
    heading = "return document.querySelectorAll('#by-category thead th')[3].ariaSort"
    values = (
        "return [...document.querySelectorAll('#by-category tbody tr')]"
        ".map((row) => Number(row.children[3].dataset.value))"
    )
    assert visit.run(heading) == "descending"
    found = visit.run(values)
    assert found == sorted(found, reverse=True)
    visit.click("#by-category thead button", 3)
    assert visit.run(heading) == "ascending"
    assert visit.run(values) == sorted(found)


def test_a_list_is_sorted_as_a_whole_and_shown_in_pages(visit, study):
    visit.click("[data-listing=attempts] thead button", 6)
    speeds = [s for r in study.material.study.answers if (s := r.speedup()) is not None]
    top = visit.texts("[data-listing=attempts] tbody tr td:nth-child(7)")[0]
    assert top.startswith(f"{max(speeds):.2f}\u00d7")
    first = visit.texts("[data-listing=attempts] tbody th")
    assert len(first) == 20
    visit.click("[data-listing=attempts] [data-move='1']")
    assert visit.text("[data-listing=attempts] .pager p").startswith("21 \u2013 40 of")


def test_the_findings_are_those_of_the_answers(visit, study):
    found = sum(r.finding is not None for r in study.material.study.answers)
    assert visit.text("[data-listing=findings] .pager p").endswith(f"of {found}")


def test_a_finding_shows_its_case_its_picture_its_source_and_how_to_replay_it(visit):
    visit.filter(verdict="value")
    visit.open("findings")
    said = visit.text("#sheet .body")
    for part in ("The case", "smallest failing", "Where in the output", "times the bound"):
        assert part in said
    assert "kerneltruth replay " in said
    assert "/findings/kernelbenchx-" in said
    assert "elements are wrong" in said
    assert len(visit.texts("#sheet .code tr")) > 5


def test_answers_without_labels_are_told_apart_by_their_files(browser, unlabelled):
    visit = Visit(browser, unlabelled.address)
    files = visit.texts("[data-listing=attempts] tbody td.file")
    origins = [r.origin for r in unlabelled.material.study.answers]
    assert [text.removeprefix("file ") for text in files] == origins[:20]


def test_an_attempt_shows_its_profile(visit):
    visit.open("findings")
    rows = visit.texts("#sheet [aria-label=Profile] tbody tr")
    assert rows[1].split("\t") == ["shapes", "broken", "3 held", "the contract"]


@pytest.mark.slow
def test_a_script_beside_a_finding_is_on_the_page(visit, study):
    finding, script = next(iter(study.material.scripts.items()))
    number = next(
        i for i, r in enumerate(study.material.study.attempts) if (r.run, r.finding) == finding
    )
    visit.run("location.hash = arguments[0]", f"attempt={number}")
    visit.sheet()
    assert "The script that shows it" in visit.text("#sheet .body")
    visit.click("#sheet details summary")
    assert script.strip() in visit.text("#sheet details")


@pytest.mark.slow
def test_most_findings_have_a_map_of_the_output_and_the_worst_element(visit):
    visit.filter(verdict="value", counted="every attempt")
    maps = 0
    for number in range(5):
        visit.open("findings", number)
        maps += visit.exists("#sheet .picture .w")
        if visit.exists("#sheet .picture"):
            assert visit.exists("#sheet .picture .worst")
        visit.click("#sheet .close")
    assert maps >= 3


@pytest.mark.slow
def test_the_changes_since_the_round_before_make_the_new_source_of_the_old(visit, study):
    visit.filter(counted="every attempt", text="-r2")
    attempts = study.material.study.attempts
    for number in range(3):
        visit.open("attempts", number)
        key = visit.run("return location.hash").partition("attempt=")[2].partition("&")[0]
        new = attempts[int(key)]
        old = next(r for r in attempts if answer_of(r) == answer_of(new) and r.round == 1)
        sources = study.material.sources
        before, after = (Counter(sources[r.sha256].split("\n")) for r in (old, new))
        rows = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        removed = Counter(visit.run(rows, "#sheet .del .text"))
        added = Counter(visit.run(rows, "#sheet .add .text"))
        assert removed or added
        assert before - removed + added == after
        visit.click("#sheet .close")


@pytest.mark.slow
def test_rounds_lead_to_each_other(visit):
    visit.filter(counted="every attempt", text="-r2")
    visit.open("attempts")
    visit.click("#sheet .rounds button", 0)
    visit.until("return document.getElementById('sheet-about').innerText.includes('round 0')")
    visit.sheet()
    assert not visit.exists("#sheet .choices")


@pytest.mark.slow
def test_next_and_previous_walk_the_list(visit):
    visit.open("findings")
    first = visit.text("#sheet-about")
    visit.click("#sheet [data-step='1']")
    visit.sheet()
    assert visit.text("#sheet-about") != first
    visit.click("#sheet [data-step='-1']")
    visit.sheet()
    assert visit.text("#sheet-about") == first
    assert visit.run("return document.querySelector('#sheet [data-step=\"-1\"]').disabled")


@pytest.mark.slow
def test_the_address_leads_back_to_filters_and_attempt(visit, browser, study):
    visit.filter(category="Fusion", verdict="fail")
    visit.open("attempts")
    address, about = browser.current_url, visit.text("#sheet-about")
    again = Visit(browser, address)
    again.sheet()
    assert again.text("#sheet-about") == about
    assert again.text("#filters .status").endswith("left by 2 filters")


def test_a_link_of_the_contents_leaves_filters_as_they_are(visit):
    visit.filter(category="Fusion")
    status = visit.text("#filters .status")
    visit.click(".contents a[href='#findings']")
    visit.until("return location.hash === '#findings'")
    assert visit.text("#filters .status") == status


@pytest.mark.slow
def test_an_address_that_names_nothing_does_nothing(browser, study):
    for tail in ("attempt=99999", "attempt=-1", "category=77&verdict=kind", "%E0%A4%A", "=&=&"):
        visit = Visit(browser, f"{study.address}#{tail}")
        assert visit.console() == []
        assert visit.text("#filters .status").endswith("no filter")


@pytest.mark.slow
def test_the_leaderboard_leads_to_its_kernels(browser, leaderboard):
    visit = Visit(browser, leaderboard.address)
    assert {"Leaderboard", "Best kernels", "Devices"} <= set(visit.texts("main h2"))
    visit.click("#best .kernels a")
    visit.sheet()
    assert "pass" in visit.text("#sheet .body")
    assert visit.console() == []


@pytest.mark.slow
def test_one_device_of_several_can_be_chosen(browser, leaderboard):
    visit = Visit(browser, leaderboard.address)
    visit.filter(run="cuda:0 (NVIDIA A100)")
    study = leaderboard.material.study
    assert visit.text("#filters .status").startswith(f"{len(study.answers)} answers")
    own = [r for r in study.attempts if r.run == 1]
    visit.filter(counted="every attempt")
    assert visit.text(".tile[data-part=exe] .counts") == right_said(own)


def test_every_listed_torch_only_answer_is_marked(visit, study):
    visit.filter(work="torch-only")
    plain = sum(r.torch_only for r in study.material.study.answers)
    assert visit.text("[data-listing=attempts] .pager p").endswith(f"of {plain}")
    marks = visit.texts("[data-listing=attempts] .verdict")
    assert marks
    assert [mark for mark in marks if "torch-only" not in mark] == []


SAVED = """
const done = arguments[arguments.length - 1], made = URL.createObjectURL;
URL.createObjectURL = (blob) => { blob.text().then(done); return made.call(URL, blob); };
document.querySelector(arguments[0]).click();
"""


def saved(visit, selector):
    """The text of the file that a button saves."""
    return visit.browser.execute_async_script(SAVED, selector)


PIXELS = """
const done = arguments[arguments.length - 1], made = URL.createObjectURL;
URL.createObjectURL = (blob) => {
  createImageBitmap(blob).then((image) => {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, {width: image.width, height: image.height});
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const all = context.getImageData(0, 0, image.width, image.height).data, colours = new Set();
    for (let i = 0; i < all.length; i += 4) colours.add(all.slice(i, i + 3).join());
    done([blob.type, image.width, image.height, [...colours]]);
  });
  return made.call(URL, blob);
};
document.querySelector(arguments[0]).click();
"""


def test_a_table_is_saved_as_it_is_shown(visit, study):
    visit.filter(category="Fusion")
    rows = list(csv.reader(io.StringIO(saved(visit, "#by-category .save"))))
    assert rows[0][:4] == ["category", "tasks", "answers", "loads and runs"]
    ((name, _, answers, share, counts, *_),) = rows[1:]
    own = [r for r in study.material.study.answers if r.category == "Fusion"]
    called = sum(r.called for r in own)
    assert (name, int(answers)) == ("Fusion", len(own))
    assert (float(share), counts) == (called / len(own), f"{called} of {len(own)}")


def test_a_list_is_saved_whole(visit, study):
    visit.filter(category="Fusion")
    rows = list(csv.DictReader(io.StringIO(saved(visit, "[data-listing=attempts] .save"))))
    own = [r for r in study.material.study.answers if r.category == "Fusion"]
    assert [row["file"] for row in rows] == [r.origin for r in own]
    assert [row["task"] for row in rows] == [r.task for r in own]
    speeds = [r.speedup() for r in own]
    assert [float(row["speedup"]) if row["speedup"] else None for row in rows] == [
        s if s is None else pytest.approx(s, rel=1e-5) for s in speeds
    ]


def test_what_looks_like_a_formula_is_saved_as_words(browser, hostile):
    visit = Visit(browser, hostile.address)
    rows = csv.reader(io.StringIO(saved(visit, "[data-listing=attempts] .save")))
    fields = [field for row in rows for field in row]
    assert not [f for f in fields if f[:1] in ("=", "+", "@")]


def test_a_chart_is_saved_with_its_caption_and_its_colours(visit):
    drawing = ElementTree.fromstring(saved(visit, "#speed figure .save"))
    assert drawing[0].text.startswith("fast_p by method")
    strokes = {e.get("stroke") for e in drawing.iter() if e.tag.endswith("}line")}
    assert "rgb(10, 90, 134)" in strokes
    assert not any("var(" in (value or "") for e in drawing.iter() for value in e.attrib.values())
    assert visit.console() == []


def test_a_chart_is_saved_as_a_picture_of_twice_its_pixels(visit):
    drawing = ElementTree.fromstring(saved(visit, "#speed figure .save"))
    found = visit.browser.execute_async_script(PIXELS, "#speed figure .save + .save")
    form, width, height, colours = found
    assert form == "image/png"
    assert (width, height) == tuple(2 * int(float(drawing.get(n))) for n in ("width", "height"))
    assert {"255,255,255", "10,90,134"} <= set(colours)
    assert visit.console() == []


def test_a_point_of_a_chart_says_what_it_is(visit):
    titles = visit.run(
        "return [...document.querySelectorAll('#summary figure .hit title')]"
        ".map((t) => t.textContent)"
    )
    assert titles
    assert all(re.fullmatch(r"[\w.]+: \d+ of \d+, .*%.*", t) for t in titles), titles


@pytest.mark.slow
def test_paper_is_light_and_shows_whole_tables(chromium, study):
    visit = Visit(chromium, study.address)
    visit.click("#theme")
    visit.click("#theme")
    colour = "return getComputedStyle(document.body).color"
    dark = visit.run(colour)
    chromium.command("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert (dark, visit.run(colour)) == ("rgb(231, 232, 233)", "rgb(26, 29, 32)")
        cut = visit.run(
            "return [...document.querySelectorAll('.scroll')]"
            ".filter((e) => e.clientHeight && e.scrollHeight > e.clientHeight + 1)"
            ".map((e) => e.ariaLabel)"
        )
        assert cut == []
    finally:
        chromium.command("Emulation.setEmulatedMedia", {"media": "", "features": []})
        visit.click("#theme")
