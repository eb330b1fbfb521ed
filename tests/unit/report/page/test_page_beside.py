"""Runs side by side: what broke, what was fixed, and which speedups differ."""

import pytest
from page_material import material_of, result, run

from kerneltruth.analysis.results import Obliged
from kerneltruth.errors import UserError
from kerneltruth.report.page.document import page_document

RUNS = (run("runs/before"), run("runs/after"))


def pair(name, before, after, **changes):
    """One kernel in both runs: outcome, or what else is different, of each."""
    sides = []
    for number, side in enumerate((before, after)):
        about = {"outcome": side} if isinstance(side, str) else side
        sides.append(result(f"core/{name}", run=number, key=name, **{**changes, **about}))
    return sides


def part(*pairs, runs=RUNS):
    results = [side for sides in pairs for side in sides]
    return page_document(material_of(*results, runs=runs), compare=True).beside


def tables(found):
    return {table.name: table for table in found.tables}


def cell_text(cell):
    kernels = getattr(cell, "kernels", None)
    return kernels[0].who if kernels else cell.text


def test_each_kernel_is_counted_by_what_it_became():
    found = part(
        pair("a", "pass", "fail"),
        pair("b", "fail", "pass"),
        pair("c", "fail", "crash"),
        pair("d", "pass", "pass"),
        pair("e", "pass", "infra"),
        [result("core/f", run=0, key="f")],
    )
    assert found.said == (
        "Kernels in every run: 5; from first to last, 1 broken, 1 fixed, 1 still wrong, "
        "1 still right; 1 not judged in one of these; not in every run: 1"
    )
    rows = tables(found)["beside-verdicts"].rows
    assert [r.head for r in rows] == ["core/a", "core/b", "core/c", "core/e"]
    assert [cell_text(c) for c in rows[0].cells] == ["core/a.py", "broken", "pass", "fail", ""]


def test_a_verdict_leads_to_its_attempt():
    (row,) = tables(part(pair("a", "pass", "fail"), pair("b", "pass", "pass")))[
        "beside-verdicts"
    ].rows
    assert [c.kernels[0].attempt for c in row.cells if c.form == "kernels"] == [0, 1]


def test_an_obligation_that_changes_is_named_though_the_verdict_stays():
    held = {"profile": {"layouts": Obliged("held")}, "contract": "core"}
    broken = {"profile": {"layouts": Obliged("broken")}, "contract": "core"}
    (row,) = tables(part(pair("a", held, broken)))["beside-verdicts"].rows
    assert [cell_text(c) for c in row.cells][1::3] == ["still right", "layouts"]


def test_only_speedups_beyond_their_intervals_differ():
    found = part(
        pair("same", {"speedup": 2.0}, {"speedup": 2.01}),
        pair("slower", {"speedup": 2.0}, {"speedup": 0.5}),
    )
    table = tables(found)["beside-speeds"]
    assert [row.head for row in table.rows] == ["core/slower"]
    assert [cell_text(c) for c in table.rows[0].cells] == [
        *("core/slower.py", "2.00\u00d7", "0.500\u00d7", "4.00\u00d7", "yes")
    ]
    assert "1, of 2 in all" in table.caption


def test_what_was_not_timed_is_not_compared():
    found = part(pair("a", "pass", "fail"))
    assert "beside-speeds" not in tables(found)
    totals = tables(found)["beside-totals"].rows
    assert [row.head for row in totals] == ["1 runs/before", "2 runs/after"]
    assert [row.cells[2].counts for row in totals] == ["1 of 1", "0 of 1"]
    assert totals[0].cells[4].text == "\u2013"


def test_a_single_run_is_set_beside_nothing():
    with pytest.raises(UserError, match="--compare takes two or more runs, got 1"):
        part(runs=RUNS[:1])


def test_a_page_sets_nothing_side_by_side_unless_asked():
    results = pair("a", "pass", "fail")
    assert page_document(material_of(*results, runs=RUNS)).beside is None
