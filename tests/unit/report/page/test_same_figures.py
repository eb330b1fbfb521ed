"""The page and `analyze` say the same of the same run: numbers, denominators and words."""

import json
import random

import pytest
from msgspec import UNSET

from kerneltruth.analysis.study import AnalyzeOptions, analyze
from kerneltruth.report.page.document import page_document
from kerneltruth.report.page.material import collect
from kerneltruth.report.page.wording import method_label, percent, share_interval, share_said

OUTCOMES = ("pass", "pass", "fail", "compile_error", "infra", "wrong")


def line(rng, task, category, method, model, sample, turn):
    outcome = rng.choice(OUTCOMES)
    dtype = rng.choice(("float32", "float16"))
    right = outcome in ("pass", "wrong")
    counts = {"cases": 1, "returned": int(outcome != "compile_error"), "failed": int(not right)}
    ratio = rng.uniform(0.5, 3)
    eager = {"us": 10, "ratio": ratio, "low": ratio / 1.1, "high": ratio * 1.1}
    shape = {
        "case": {"dtype": "float32"},
        "summary": "N=4",
        "candidate_us": 10.0,
        "baselines": {"eager": eager},
        "efficiency": rng.uniform(0.1, 0.9),
        "bound_by": "memory",
        "flags": [],
    }
    perf = {"outcome": "not_run"}
    if outcome == "wrong":
        perf = {"outcome": "wrong", "detail": "differs", "shapes": []}
    elif right:
        perf = {"outcome": "timed", "shapes": [shape], "noise_floor": 0.01}
    word = "pass" if right else outcome
    called = outcome not in ("compile_error", "infra")
    key = f"{method}/{model}/{task}/{sample}/{turn}"
    return {
        "key": key,
        "name": key,
        "attempt": {
            "candidate": {"sha256": "c" * 64, "language": "triton"},
            "verdict": {"verdict": word, **({"kind": "value"} if word == "fail" else {})},
            "cases": 2,
            "failed": int(not right),
            "dtypes": {} if outcome == "infra" else {dtype: counts},
        },
        "task": f"core/{task}",
        "category": category,
        "origin": key,
        "sha256": f"{abs(hash(key)):064x}"[:64],
        "labels": {"method": method, "model": model, "sample": sample, "round": turn},
        "peer_checks": {
            check: {"verdict": rng.choice(("pass", "pass", "fail", "error")), "why": ""}
            for check in ("kernelbench", "tritonbench")
        },
        "stages": {
            "call": {"outcome": "pass" if called else word},
            "exe": {"outcome": word if called else "not_run"},
            "perf": perf,
        },
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    rng = random.Random(3)
    lines = [
        line(rng, f"t{task}", ("Math", "Loss")[task % 2], method, model, sample, turn)
        for task in range(10)
        for model in ("gpt", "llama")
        for method, turns in (("one_shot", (None,)), ("refine", (0, 1, 2)))
        for sample in range(2)
        for turn in turns
    ]
    folder = tmp_path_factory.mktemp("same") / "run"
    folder.mkdir()
    manifest = {
        "arguments": ["run", "identity"],
        "seed": 0,
        "suite_hash": "a" * 64,
        "environment": {"device": "cuda:0", "device_name": "GPU A"},
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:01:00+00:00",
        "version": "0.1.0",
        "schema": 1,
    }
    (folder / "run.json").write_text(json.dumps(manifest))
    (folder / "results.jsonl").write_text("".join(json.dumps(record) + "\n" for record in lines))
    return folder


@pytest.fixture(scope="module")
def page(run):
    return page_document(collect([run]), ranks=True)


@pytest.fixture(scope="module")
def analysis(run):
    return analyze(AnalyzeOptions(runs=(run,), ks=("1,2",)))


def cell_parts(cell):
    return cell.text, cell.counts, cell.interval


def rate_said(rate):
    return percent(rate.rate), share_said(rate), share_interval(rate)


def rows_of(table):
    return {row.head: row.cells for row in table.rows}


def name_of(row):
    return method_label(row.method, row.model)


def test_the_rates_are_the_same(page, analysis):
    tiles = {tile.label: tile.cell for tile in page.tiles}
    overall = analysis.rates.overall
    for label, stage in (("Loads and runs", "call"), ("Is right", "exe"), ("Is timed", "perf")):
        assert cell_parts(tiles[label]) == rate_said(getattr(overall, stage))
    assert tiles["Not judged"].counts == f"{overall.not_judged} of {overall.attempts}"
    unsolved = analysis.unsolved.overall.unsolved
    assert cell_parts(tiles["Tasks no method solves"]) == rate_said(unsolved)


def test_the_rates_of_methods_and_dtypes_are_the_same(page, analysis):
    by = {b.by: b.rows for b in analysis.rates.by}
    funnel = rows_of(page.funnel)
    for row in by["method", "model"]:
        cells = funnel[name_of(row)][1:4]
        assert [cell_parts(c) for c in cells] == [
            rate_said(getattr(row, s)) for s in ("call", "exe", "perf")
        ]
    dtypes = rows_of(page.by_dtype)
    for row in by["dtype",]:
        cells = dtypes[row.dtype][1:4]
        expected = [rate_said(getattr(row, name)) for name in ("failed", "exe", "exe_most")]
        assert [cell_parts(c) for c in cells] == expected
        assert dtypes[row.dtype][-1].value == row.stopped_before


def test_the_illusions_are_the_same(page, analysis):
    tiles = {tile.label: tile.cell for tile in page.tiles}
    found = analysis.illusions
    assert cell_parts(tiles["Illusions"]) == rate_said(found.any_check)
    _, by_check, by_method, by_category = page.illusions
    for row in found.overall:
        cells = rows_of(by_check)[row.check]
        expected = [rate_said(getattr(row, n)) for n in ("illusions", "of_wrong", "false_alarms")]
        assert [cell_parts(c) for c in cells[:3]] == expected
    assert f"of {found.attempts} distinct kernels" in by_check.caption
    crossed = {b.by: b.rows for b in found.by}
    checks = [row.check for row in found.overall]
    for row in crossed["method", "model"]:
        cell = rows_of(by_method)[name_of(row)][checks.index(row.check)]
        assert cell_parts(cell) == rate_said(row.illusions)
    for row in crossed["category",]:
        cell = rows_of(by_category)[row.category][checks.index(row.check)]
        assert cell_parts(cell) == rate_said(row.illusions)
    # Each illusion of the list is one that the page marks, and of the share of any check.
    marked = sum(flags >> 3 & 1 for flags in page.data.columns["flags"])
    assert marked == len(found.findings) == found.any_check.numerator


def test_the_speeds_are_the_same(page, analysis):
    (against,) = page.speeds
    fast = rows_of(against.fast[0])
    strips = rows_of(against.methods)
    rows = [row for row in analysis.fast_p if row.method is not UNSET]
    for name in fast:
        own = [rate_said(row.share) for row in rows if name_of(row) == name]
        assert [cell_parts(cell) for cell in fast[name]] == own
    for row in analysis.speedups:
        if row.method is not UNSET:
            _, mean, _, timed, *_ = strips[name_of(row)]
            assert mean.value == row.mean.value
            assert timed.text == f"{row.timed} of {row.correct}"


def test_pass_at_k_and_the_leaderboard_are_the_same(page, analysis):
    shown = rows_of(page.pass_at)
    right = next(t for t in page.leaderboard if t.name == "leaderboard-right")
    places = rows_of(right)
    exe = {
        name_of(row): row.exe
        for b in analysis.rates.by
        if b.by == ("method", "model")
        for row in b.rows
    }
    for row in analysis.pass_at_k:
        cell = shown[name_of(row)][row.k - 1]
        assert (cell.text, cell.interval) == (
            percent(row.value.value),
            share_interval(row.value),
        )
    for name, cells in places.items():
        assert cells[2].value == exe[name].rate
        assert cells[2].interval == share_interval(exe[name])
        assert cells[2].counts == f"{exe[name].numerator:,} of {exe[name].denominator:,}"


def test_the_deviance_and_the_fates_are_the_same(page, analysis):
    deviance, steps = page.deviance.tables
    for row, term in zip(deviance.rows, analysis.deviance.terms, strict=True):
        assert row.cells[1].value == term.explained
        assert row.cells[4].value == term.mcfadden_adjusted
        assert row.cells[7].value == term.p_permutation
    for row, step in zip(steps.rows, analysis.deviance.steps, strict=True):
        assert row.cells[3].value == step.p_permutation
    fates = rows_of(page.rounds.fates)
    for row in analysis.trajectories.fates:
        cells = fates[name_of(row)][1:7]
        names = ("persistent", "rescued", "regained", "lost", "never", "not_judged")
        assert [cell_parts(c) for c in cells] == [rate_said(getattr(row, name)) for name in names]
