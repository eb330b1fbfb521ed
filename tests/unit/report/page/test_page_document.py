"""The page's document."""

import json

from msgspec.structs import replace
from page_material import material_of, result, run, timed

from kerneltruth.analysis.results import Obliged
from kerneltruth.report.page.attempts import ANSWER, DISTINCT, ILLUSION, OWN, PLAIN, page_data
from kerneltruth.report.page.document import page_document
from kerneltruth.report.page.embed import as_json


def table(*results, **more):
    material = material_of(*results, **more)
    return page_data(material.study, [""] * len(results), numbers={})


def test_rounds_are_linked_to_the_round_before():
    rounds = [result(method="refine", round=i, sample=s) for s in (0, 1) for i in (0, 1, 2)]
    assert table(*rounds).columns["before"] == [-1, 0, 1, -1, 3, 4]


def test_the_best_round_is_the_answer():
    outcomes = ("fail", "pass", "fail")
    rounds = [result(outcome=o, method="refine", round=i) for i, o in enumerate(outcomes)]
    flags = table(*rounds).columns["flags"]
    assert [bool(f & ANSWER) for f in flags] == [False, True, False]


def test_a_kernel_judged_on_a_second_device_counts_once_and_is_its_own_runs_answer():
    runs = [run("runs/a", "H100"), run("runs/b", "A100")]
    flags = table(result(), result(run=1), runs=runs).columns["flags"]
    assert [bool(f & DISTINCT) for f in flags] == [True, False]
    assert [bool(f & OWN) for f in flags] == [True, True]


def test_an_illusion_is_flagged_with_the_checks_that_pass_it():
    fooled = result(outcome="fail", checks={"kernelbench": "pass", "tritonbench": "fail"})
    found = table(fooled, result(checks={"tritonbench": "pass"}, sample=1))
    assert [bool(f & ILLUSION) for f in found.columns["flags"]] == [True, False]
    assert found.checks == ["kernelbench", "tritonbench"]
    assert found.columns["fooled"] == [1, 2]


def test_methods_and_categories_are_numbered_as_tables_number_their_rows():
    results = [
        result(method="b", category="Math"),
        result(method="a", category="Activation"),
        result(method="a", category=None, sample=1),
    ]
    document = page_document(material_of(*results))
    data = document.data
    by_method = [(row.head, row.group) for row in document.funnel.rows]
    assert by_method == [(name, i) for i, name in enumerate(data.methods)]
    by_category = [(row.head, row.group) for row in document.by_category.rows]
    assert by_category == [(name, i) for i, name in enumerate(data.categories)]
    assert document.heat.methods == data.methods


def test_a_run_without_attempts_makes_a_page():
    document = page_document(material_of(), ranks=True)
    assert document.counts.attempts == 0
    assert "the runs hold no attempt" in document.notes
    assert document.leaderboard == []


def test_what_the_script_reads_is_plain_json():
    document = page_document(material_of(result(speedup=1.5), result(outcome="fail", sample=1)))
    assert json.loads(as_json(document.data))["count"] == 2


def test_every_rate_of_the_summary_has_its_counts():
    document = page_document(material_of(result(speedup=0.5), result(outcome="fail", sample=1)))
    said = {tile.label: tile.cell.counts for tile in document.tiles}
    assert said == {
        "Loads and runs": "2 of 2",
        "Is right": "1 of 2",
        "Is timed": "1 of 2",
        "Slower than eager": "1 of 1",
        "Speedup over eager": "1 of 1 right ones timed",
        "Tasks no method solves": "0 of 1",
        "Not judged": "0 of 2",
    }


def test_a_stage_that_no_run_had_has_no_column():
    def columns(**changes):
        document = page_document(material_of(result(**changes)))
        return [[c.label for c in t.columns] for t in (document.by_category, document.funnel)] + [
            [c.label for c in document.by_dtype.columns if "timed" in c.label]
        ]

    assert columns(perf="not_tried") == [
        ["category", "tasks", "answers", "loads and runs", "is right"],
        ["method", "answers", "loads and runs", "is right"],
        [],
    ]
    timed = [names[-1] for names in columns(speedup=2.0)]
    assert timed == ["is timed", "faster than eager", "is timed"]


def test_sources_that_do_not_fit_are_said_to_be_left_out():
    material = material_of(result(), sources={"0" * 64: "def relu(x): ..."})
    document = page_document(material, most_source_bytes=10)
    assert document.data.columns["source"] == [-1]
    assert any("1 of 1 sources are left out" in note for note in document.notes)


def test_details_that_do_not_fit_are_said_to_be_left_out():
    document = page_document(material_of(result(), result(sample=1)), most_detail_bytes=10)
    assert document.details.parts == ()
    assert any("details of 2 attempts are left out" in note for note in document.notes)


def test_a_name_without_end_is_cut():
    document = page_document(material_of(result(origin="x" * 10_000, method="m" * 10_000)))
    assert len(document.data.columns["origin"][0]) == 160
    assert len(document.data.methods[0]) == 160


def test_the_leaderboard_shows_the_best_kernels_with_ties():
    results = [
        result(method="a", speedup=2.0, sha256="a" * 64),
        result(method="b", speedup=1.995, sha256="b" * 64),
        result(method="c", speedup=1.0, sha256="c" * 64),
    ]
    document = page_document(material_of(*results), ranks=True)
    assert document.kind == "leaderboard"
    ((row,),) = [part.rows for part in document.best]
    kernels = row.cells[0].kernels
    assert [(k.who, k.tied) for k in kernels] == [
        ("a \u00b7 m", True),
        ("b \u00b7 m", True),
        ("c \u00b7 m", False),
    ]


def test_the_five_fastest_kernels_of_a_task_are_listed():
    results = [result(speedup=7.0 - i, sample=i, sha256=str(i) * 64) for i in range(6)]
    (best,) = page_document(material_of(*results), ranks=True).best
    assert [k.attempt for k in best.rows[0].cells[0].kernels] == [0, 1, 2, 3, 4]


def test_every_torch_only_answer_is_marked_and_no_other():
    found = table(*(result(language=w, sample=i) for i, w in enumerate(("torch-only", "triton"))))
    assert [bool(f & PLAIN) for f in found.columns["flags"]] == [True, False]


def test_a_torch_only_kernel_is_marked_among_the_best():
    plain = result(language="torch-only", speedup=2.0)
    (best,) = page_document(material_of(plain), ranks=True).best
    (kernel,) = best.rows[0].cells[0].kernels
    assert kernel.who.endswith("(torch-only)")


def test_the_share_of_the_devices_time_is_listed_where_it_is_known():
    shared = replace(timed(2.0), own_time=0.25)
    known, other = result(speedup=2.0, timing=shared), result(sample=1)
    assert table(known, other).columns["own_time"] == [0.25, None]
    (best,) = page_document(material_of(known), ranks=True).best
    (kernel,) = best.rows[0].cells[0].kernels
    assert kernel.speed == "2.00\u00d7, own 25.0% of the device's time"


def test_each_attempt_says_which_obligations_it_breaks_or_refuses():
    profile = {"published": Obliged("held"), "layouts.beyond": Obliged("broken", False, False)}
    found = table(result(profile=profile, contract="core"))
    assert found.columns["failed_obligations"] == [1 << found.obligations.index("layouts")]
