"""The page without a mouse, without sight, in the dark, without motion, without scripts."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from visit import Visit


def prefer(chromium, **features):
    listed = [{"name": f"prefers-{n.replace('_', '-')}", "value": v} for n, v in features.items()]
    chromium.command("Emulation.setEmulatedMedia", {"features": listed})


@pytest.fixture
def visit(browser, study):
    return Visit(browser, study.address)


@pytest.fixture
def visit_by_chromium(chromium, study):
    """A visit whose system may prefer this or that."""
    yield Visit(chromium, study.address)
    prefer(chromium)


def named(tree, roles):
    """Names that a screen reader says, by role."""
    return [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if not node["ignored"] and node["role"]["value"] in roles
    ]


@pytest.mark.slow
def test_everything_that_can_be_used_has_a_name(visit_by_chromium, chromium):
    visit_by_chromium.open("findings")
    for _ in range(2):
        tree = chromium.command("Accessibility.getFullAXTree", {})["nodes"]
        found = named(tree, {"button", "link", "combobox", "searchbox", "table", "region", "image"})
        assert len(found) > 5
        assert [pair for pair in found if not pair[1].strip()] == []
        visit_by_chromium.click("#sheet .close")


FAULTS = """
const done = arguments[arguments.length - 1];
// A colour that is still changing has too little contrast.
Promise.all(document.getAnimations().map((one) => one.finished))
  .then(() => axe.run(document, {resultTypes: ["violations"]}))
  .then((found) => done(found.violations.flatMap((fault) => fault.nodes.map(
    (node) => [fault.id, node.target.join(" "), node.failureSummary]))));
"""


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, which finds what keeps readers out."""
    wheel = find_spec("axe_playwright_python")
    if wheel is None:
        pytest.skip("needs axe-core (pip install --no-deps -r requirements/axe.txt)")
    return Path(wheel.origin).with_name("axe.min.js").read_text()


@pytest.mark.slow
def test_axe_finds_no_fault_in_light_and_dark_and_beside_an_attempt(browser, of_few, axe):
    visit = Visit(browser, of_few.address)
    visit.run(axe)
    for _ in range(2):
        visit.click("#theme")
        assert browser.execute_async_script(FAULTS) == []
    visit.open("attempts")
    assert browser.execute_async_script(FAULTS) == []
    visit.click("#sheet .close")
    visit.click("#theme")


@pytest.mark.slow
def test_there_are_landmarks_to_jump_between(visit_by_chromium, chromium):
    tree = chromium.command("Accessibility.getFullAXTree", {})["nodes"]
    roles = {role for role, _ in named(tree, {"banner", "main", "navigation", "search"})}
    assert roles == {"banner", "main", "navigation", "search"}


@pytest.mark.slow
def test_the_first_tab_offers_to_skip_to_the_content(visit):
    from selenium.webdriver import Keys

    visit.keys(Keys.TAB)
    assert visit.run("return document.activeElement.innerText") == "Skip to the content"
    visit.keys(Keys.ENTER)
    visit.until("return document.activeElement.id === 'main'")


@pytest.mark.slow
def test_arrows_walk_the_map_and_enter_opens_a_cell(visit):
    from selenium.webdriver import Keys

    stops = "return document.querySelectorAll('#map button.cell[tabindex=\"0\"]').length"
    assert visit.run(stops) == 1
    visit.run(
        "document.querySelector('#map tr[data-task] button.cell').tabIndex = 0;"
        "document.querySelector('#map tr[data-task] button.cell').focus()"
    )
    where = (
        "const cell = document.activeElement;"
        "return [cell.closest('tr').rowIndex, cell.parentElement.cellIndex]"
    )
    row, column = visit.run(where)
    visit.keys(Keys.ARROW_RIGHT)
    assert visit.run(where) == [row, column + 1]
    visit.keys(Keys.ARROW_DOWN)
    assert visit.run(where) == [row + 1, column + 1]
    visit.keys(Keys.ENTER)
    visit.sheet()


@pytest.mark.slow
def test_escape_closes_an_attempt_and_returns_to_where_it_was_opened(visit):
    from selenium.webdriver import Keys

    visit.run("document.querySelector('[data-listing=findings] .open-row').focus()")
    visit.keys(Keys.ENTER)
    visit.sheet()
    assert visit.run("return document.getElementById('sheet').contains(document.activeElement)")
    visit.keys(Keys.ESCAPE)
    visit.until("return !document.getElementById('sheet').open")
    assert visit.run("return document.activeElement.className") == "open-row"


@pytest.mark.slow
def test_what_has_the_focus_can_be_seen(visit):
    from selenium.webdriver import Keys

    for _ in range(12):
        visit.keys(Keys.TAB)
        style = visit.run(
            "const s = getComputedStyle(document.activeElement);"
            "return [s.outlineStyle, parseFloat(s.outlineWidth), document.activeElement.outerHTML]"
        )
        assert style[0] == "solid", style
        assert style[1] >= 2, style


@pytest.mark.slow
def test_it_is_dark_where_the_system_is_and_where_one_asks_for_it(visit_by_chromium, chromium):
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = visit_by_chromium.run(colour)
    prefer(chromium, color_scheme="dark")
    dark = visit_by_chromium.run(colour)
    assert dark != light
    visit_by_chromium.click("#theme")
    assert visit_by_chromium.run(colour) == light
    visit_by_chromium.click("#theme")
    assert visit_by_chromium.run(colour) == dark
    visit_by_chromium.click("#theme")
    assert visit_by_chromium.text("#theme") == "Theme: system"


@pytest.mark.slow
def test_nothing_moves_by_itself_where_that_is_not_wanted(visit_by_chromium, chromium):
    moves = "return getComputedStyle(document.documentElement).scrollBehavior"
    assert visit_by_chromium.run(moves) == "smooth"
    prefer(chromium, reduced_motion="reduce")
    assert visit_by_chromium.run(moves) == "auto"
    durations = (
        "return [...document.querySelectorAll('*')].map((e) => getComputedStyle(e))"
        ".filter((s) => s.transitionDuration !== '0s' || s.animationName !== 'none').length"
    )
    assert visit_by_chromium.run(durations) == 0


@pytest.mark.slow
def test_without_scripts_tables_and_charts_are_there_and_dead_controls_are_not(chromium, study):
    from selenium.webdriver.common.by import By

    chromium.command("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.get("about:blank")
        chromium.get(study.address)
        # Still disabled: a script that has not begun yet would run as soon as it may.
        shown = chromium.driver.find_element(By.TAG_NAME, "main").text
        assert "Without JavaScript" in shown
        assert "Loads and runs" in shown
        assert "best_of_n" in shown
        for selector in ("#filters", "#theme", "[data-listing=findings]"):
            assert not chromium.driver.find_element(By.CSS_SELECTOR, selector).is_displayed()
    finally:
        chromium.command("Emulation.setScriptExecutionDisabled", {"value": False})


BROKEN_WORDS = """
const broken = [];
for (const head of document.querySelectorAll("main tbody th, main .heat thead th")) {
  const walk = document.createTreeWalker(head, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    for (const word of node.data.matchAll(/[^\\s-]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((r) => r.top)).size > 1) broken.push(word[0]);
    }
  }
}
return broken;
"""


def test_no_heading_breaks_within_a_word(visit):
    assert visit.run(BROKEN_WORDS) == []


@pytest.fixture
def phone(chromium):
    """Chromium as wide as a phone's screen, whatever it was."""

    width, height = chromium.width, chromium.height
    chromium.resize(390, 844)
    yield chromium
    chromium.resize(width, height)


@pytest.mark.slow
def test_on_a_phone_no_table_but_the_map_is_cut(phone, leaderboard):
    visit = Visit(phone, leaderboard.address)
    cut = "(e) => e.scrollWidth > e.clientWidth + 1"
    boxes = f"[...document.querySelectorAll('.scroll:not(.map)')].filter({cut})"
    assert visit.run(f"return {boxes}.map((e) => e.ariaLabel)") == []
    visit.click("#best .kernels a")
    visit.sheet()
    assert "of the limit" in visit.text("#sheet [aria-label=Times]")
    assert visit.run(f"return {boxes}.map((e) => e.ariaLabel)") == []
    assert visit.run(BROKEN_WORDS) == []
