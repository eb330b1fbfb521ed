"""Candidates named, and printing, what a browser might run: it stays text."""

import pytest
from visit import Visit


@pytest.fixture
def visit(browser, hostile):
    return Visit(browser, hostile.address)


@pytest.mark.slow
def test_nothing_of_a_candidate_runs_or_becomes_an_element(visit, hostile):
    visit.filter(counted="every attempt")
    total = len(hostile.material.study.attempts)
    visit.open("attempts")
    for _ in range(min(total, 36) - 1):
        visit.click("#sheet [data-step='1']")
        visit.sheet()
    assert visit.run("return window.pwned === undefined")
    assert visit.run("return document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert visit.run("return document.querySelectorAll('body script:not([type])').length") == 1
    assert visit.console() == []
    assert {*visit.requests()} <= {hostile.address}


@pytest.mark.slow
@pytest.mark.sampled(by=lambda shown, **width: [shown, *width.values()])
@pytest.mark.parametrize(
    "shown",
    [
        "<script>window.pwned = 1</script>",
        "</script><script>window.pwned = 2</script>",
        '<img src=x onerror="window.pwned = 3">',
        "]]>{{ 7*7 }}{% raw %}${7*7}",
        "<U+202E>gnp.exe<U+202C><U+200B><U+E0041><U+0000><U+001B>[31mred<U+0007>",
        "<U+2028><U+2029>line<U+2028>separators",
    ],
)
def test_it_is_shown_as_it_is(visit, shown):
    visit.filter(counted="every attempt", text=shown.split()[0])
    visit.open("attempts")
    assert shown in visit.text("#sheet-about")
    source = "return document.querySelector('#sheet .code').textContent"
    assert shown in visit.run(source)


@pytest.mark.slow
def test_a_script_that_did_get_in_would_not_run(visit):
    """The policy is a second wall: even our own mistake would not run a candidate's script."""
    visit.run(
        """
        const script = document.createElement("script");
        try { script.textContent = "window.pwned = 8"; } catch { return; }
        document.body.append(script);
        """
    )
    visit.run(
        """
        const image = "<img src=x onerror='window.pwned=9'>";
        try { document.body.insertAdjacentHTML("beforeend", image); } catch { /* refused */ }
        """
    )
    assert visit.run("return window.pwned === undefined")
    assert visit.run("return document.querySelectorAll('img').length") == 0
    visit.console()


@pytest.mark.slow
def test_the_network_cannot_be_reached_from_the_page(visit):
    refused, policy = visit.browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1];
        const said = new Promise((resolve) => document.addEventListener(
          "securitypolicyviolation", (event) => resolve(event.effectiveDirective)));
        fetch("http://127.0.0.1:9/").then(
          () => done(["asked", ""]),
          async (error) => done([error.name, await said]));
        """
    )
    assert (refused, policy) == ("TypeError", "connect-src")
