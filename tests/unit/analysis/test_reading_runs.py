"""Runs as they lie on disk: read, resolved, and refused in one line."""

import json

import pytest
from results_for_tests import result, study

from kerneltruth.analysis.groups import grouped
from kerneltruth.analysis.lines import result_of
from kerneltruth.analysis.reading import answer_of, chains, read_study, study_of
from kerneltruth.analysis.results import Rates
from kerneltruth.documents.lines import read_line
from kerneltruth.errors import UserError

MANIFEST = {
    "arguments": ["run", "identity"],
    "seed": 0,
    "suite_hash": "a" * 64,
    "environment": {"device": "cpu", "device_name": "cpu (2 x Some)"},
    "started": "2026-01-01T00:00:00+00:00",
    "ended": "2026-01-01T00:01:00+00:00",
    "version": "0.1.0",
    "schema": 1,
}


def test_plain_pytorch_has_a_language_of_its_own():
    plain = line()
    plain["attempt"]["candidate"]["language"] = "torch"
    plain["attempt"]["torch_only"] = True
    assert result_of(plain, 0).language == "torch-only"


def line(key="a@1", task="kernelbenchx/relu", verdict="pass", **changes):
    passed = {"outcome": "pass", "cases": 3, "failed": 0}
    return {
        "key": key,
        "name": key,
        "attempt": {
            "task": task,
            "candidate": {"sha256": "c" * 64, "path": "a.py", "language": "triton", "entry": "f"},
            "verdict": {"verdict": verdict},
            "cases": 3,
            "failed": 0,
        },
        "finding": None,
        "task": task,
        "category": "Activation",
        "origin": "a.py",
        "sha256": "c" * 64,
        "labels": {"method": "m", "model": "gpt", "sample": 1, "round": 2},
        "stages": {"call": {"outcome": "pass"}, "exe": passed, "perf": {"outcome": "not_run"}},
        "tags": ["t"],
        **changes,
    }


@pytest.fixture
def run(tmp_path):
    """Write a run of these lines."""

    def write(*lines, name="run", torn="", **manifest):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps({**MANIFEST, **manifest}))
        text = "".join(json.dumps(x) + "\n" for x in lines) + torn
        (folder / "results.jsonl").write_text(text)
        return folder

    return write


def only(folder):
    (found,) = read_study([folder]).attempts
    return found


def test_a_result_line_is_read_with_its_labels_and_outcomes(run):
    found = only(run(line()))
    assert (found.task, found.suite, found.category) == (
        "kernelbenchx/relu",
        "kernelbenchx",
        "Activation",
    )
    assert (found.method, found.model, found.sample, found.round) == ("m", "gpt", 1, 2)
    assert (found.call, found.exe, found.perf, found.verdict) == (
        "pass",
        "pass",
        "not_tried",
        "pass",
    )
    assert (found.language, found.tags, found.cases) == ("triton", ("t",), 3)


def test_a_task_of_the_core_has_a_bare_name(run):
    assert only(run(line(task="relu"))).suite == "core"


def test_what_a_run_says_of_itself_is_kept(run):
    (info,) = read_study([run(line())]).runs
    assert (info.command, info.device, info.version, info.attempts) == (
        "run",
        "cpu (2 x Some)",
        "0.1.0",
        1,
    )


TIMED = {
    "outcome": "timed",
    "noise_floor": 0.02,
    "kernel": {"case": "N=4", "own": 0.25, "library": 0.75, "kernels": [], "reason": None},
    "compile_s": 1.5,
    "shapes": [
        {
            "case": {"dtype": "float16"},
            "summary": "N=4 float16",
            "candidate_us": 10.0,
            "candidate_low": 9.9,
            "candidate_high": 10.1,
            "baselines": {
                "eager": {"us": 20.0, "ratio": 2.0, "low": 1.9, "high": 2.1, "outcome": "faster"},
                "compile": None,
            },
            "efficiency": 0.5,
            "bound_by": "memory",
            "flags": ["below_floor"],
            "advice": {
                "bytes_per_s": 2e12,
                "flops_per_s": 1e12,
                "memory_share": 0.5,
                "compute_share": None,
            },
            "kernels": {
                "candidate": [
                    {"kernel": "a", "tensor_cores": True, "uses": ["tma"]},
                    {"kernel": "b", "tensor_cores": False, "uses": None},
                ],
                "eager": [{"kernel": "c", "uses": ["atomics"]}],
            },
        },
        {"case": {}, "summary": "N=8", "candidate_us": 1.0, "flags": ["timing_suspect"]},
        {"case": {}, "summary": "N=9", "candidate_us": 1.0, "graded": {"not_graded": "no"}},
    ],
}


def test_timings_are_read_without_shapes_that_show_nothing_and_absent_baselines(run):
    stages = {**line()["stages"], "perf": TIMED}
    found = only(run(line(stages=stages)))
    (shape,) = found.timing.shapes
    assert (shape.dtype, shape.efficiency, shape.bound_by) == ("float16", 0.5, "memory")
    assert list(shape.baselines) == ["eager"]
    assert (found.timing.noise_floor, found.own_time) == (0.02, 0.25)
    assert found.against().outcome == "faster"
    assert shape.rates == Rates(2e12, 1e12, 0.5, None)
    assert found.timing.rates == Rates(*map(pytest.approx, (2e12, 1e12, 0.5)), None)
    assert found.timing.uses == {"tensor_cores", "tma"}


def test_a_suspect_timing_is_no_timing(run):
    stages = {**line()["stages"], "perf": {**TIMED, "outcome": "timing_suspect"}}
    found = only(run(line(stages=stages)))
    assert (found.timing, found.timed, found.perf) == (None, False, "timing_suspect")


def test_the_one_ratio_of_earlier_runs_is_read_without_an_interval(run):
    perf = {
        "outcome": "timed",
        "case": "M=4 bfloat16 uniform",
        "candidate_us": 10.0,
        "eager_us": 15.0,
        "times_eager": 1.5,
    }
    found = only(run(line(stages={**line()["stages"], "perf": perf})))
    assert found.speedup() == pytest.approx(1.5)
    assert found.against().low is None
    assert found.timing.shapes[0].dtype == "bfloat16"


HUGE = pytest.param(10**400, id="huge")


@pytest.mark.parametrize("bad", ["NaN", "Infinity", None, -1.0, 0, True, "fast", HUGE])
def test_a_ratio_that_was_not_measured_is_none(run, bad):
    shape = {**TIMED["shapes"][0], "baselines": {"eager": {"us": 1.0, "ratio": bad}}}
    perf = {**TIMED, "shapes": [shape]}
    assert only(run(line(stages={**line()["stages"], "perf": perf}))).speedup() is None


@pytest.mark.parametrize("bad", [{"low": 0.0}, {"high": 0}, {"high": None}, {"high": "NaN"}])
def test_an_interval_with_an_end_that_was_not_measured_is_none(run, bad):
    eager = {"us": 1.0, "ratio": 2.0, "low": 1.9, "high": 2.1, "outcome": "faster", **bad}
    shape = {**TIMED["shapes"][0], "baselines": {"eager": eager}}
    found = only(run(line(stages={**line()["stages"], "perf": {**TIMED, "shapes": [shape]}})))
    assert (found.speedup(), found.against().low) == (pytest.approx(2), None)


def test_what_peers_say_is_read_from_both_places(run):
    found = only(
        run(
            line(
                peer={"check": "kernelbench", "compiled": True, "correct": False},
                baselines={"tritonbench": {"verdict": "pass"}, "gpuemu": {"verdict": "error"}},
            )
        )
    )
    assert found.checks == {
        "published:kernelbench": "fail",
        "tritonbench": "pass",
        "gpuemu": "error",
    }


def test_peers_checks_are_read_from_their_key_and_from_that_of_earlier_lines(run):
    said = {"kernelbench": {"name": "kernelbench", "verdict": "pass", "why": "", "by_dtype": {}}}
    for name in ("peer_checks", "baselines"):
        assert only(run(line(**{name: said}), name=name)).checks == {"kernelbench": "pass"}
        assert [*read_line(line(**{name: said})).peer_checks] == ["kernelbench"]


def test_a_score_and_the_share_of_own_launches_are_read_and_shared(run):
    judged = {**line()["attempt"], "score": 0.5, "kernel": {"own": 0.25, "launches": 4}}
    again = {k: v for k, v in line("b@1").items() if k != "attempt"} | {"same_as": line()["key"]}
    for found in read_study([run(line(attempt=judged), again)]).attempts:
        assert (found.score, found.own, found.launches) == (0.5, 0.25, 4)


def test_a_peer_that_does_not_say_is_no_check(run):
    assert only(run(line(peer={"check": "kernelbench", "correct": None}))).checks == {}


def test_an_attempt_with_the_source_of_another_shares_its_outcome(run):
    failing = line("a@1", verdict="fail", finding="findings/f.json", baselines={})
    failing["attempt"]["verdict"] |= {"kind": "value", "detail": "1 of 2\nmore"}
    again = {k: v for k, v in line("b@1").items() if k not in ("attempt", "finding", "tags")}
    stages = {"call": {"outcome": "pass"}, "exe": {"outcome": "fail"}}
    again |= {"same_as": "a@1", "stages": stages}
    _, found = read_study([run(failing, again)]).attempts
    assert (found.verdict, found.kind, found.detail) == ("fail", "value", "1 of 2")
    assert (found.finding, found.language, found.same_as) == ("f.json", "triton", "a@1")


def test_an_attempt_that_repeats_a_lost_one_keeps_its_stages_and_is_noted(run):
    again = {k: v for k, v in line("b@1").items() if k != "attempt"} | {"same_as": "gone"}
    found = read_study([run(again)])
    assert found.attempts[0].verdict == "pass"
    assert any("repeat one that the run does not hold" in note for note in found.notes)


@pytest.mark.parametrize(
    ("verdict", "cases", "failed", "stages"),
    [
        ("pass", 3, 0, ("pass", "pass")),
        ("fail", 3, 1, ("pass", "fail")),
        ("runtime_error", 3, 1, ("pass", "runtime_error")),
        ("runtime_error", 1, 1, ("runtime_error", "not_run")),
        ("compile_error", 0, 0, ("compile_error", "not_run")),
        ("unsupported_here", 0, 0, ("unsupported_here", "not_run")),
        ("infra", 0, 0, ("infra", "not_run")),
        ("unrefereeable", 0, 0, ("pass", "unrefereeable")),
    ],
)
def test_lines_of_check_and_audit_get_stages_from_their_verdict(
    run, verdict, cases, failed, stages
):
    bare = {k: v for k, v in line(verdict=verdict).items() if k not in ("stages", "task")}
    bare["attempt"] |= {"cases": cases, "failed": failed}
    found = only(run(bare))
    assert (found.call, found.exe) == stages


def test_counts_by_dtype_are_read_and_else_the_failing_dtype_alone(run):
    counted = line("a")
    counted["attempt"]["dtypes"] = {"float32": {"cases": 4, "returned": 4, "failed": 0}}
    old = line("b", verdict="fail")
    old["attempt"]["failure"] = {"case": {"dtype": "float16"}, "verdict": {"verdict": "fail"}}
    new, before = read_study([run(counted, old)]).attempts
    assert (new.dtypes["float32"].cases, new.dtypes["float32"].failed) == (4, 0)
    assert before.dtypes["float16"].failed == 1


def test_a_torn_last_line_is_dropped_and_reported(run):
    found = read_study([run(line(), torn='{"key": "b", "na')])
    assert len(found.attempts) == 1
    assert any("line 2 was cut short" in note for note in found.notes)


def test_an_empty_run_is_a_study_of_nothing(run):
    found = read_study([run()])
    assert (found.attempts, found.answers) == ((), ())
    assert "the runs hold no attempt" in found.notes


def test_an_unfinished_run_is_reported(run):
    found = read_study([run(line(), ended=None)])
    assert any("has not ended" in note for note in found.notes)


def test_a_mixture_of_suites_is_reported(run):
    found = read_study([run(line("a"), line("b", task="relu"))])
    assert "the runs mix the suites core, kernelbenchx" in found.notes


def test_a_run_of_a_newer_schema_is_refused(run):
    with pytest.raises(UserError, match="upgrade kerneltruth"):
        read_study([run(line(), schema=99)])


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"it has no run\.json"):
        read_study([tmp_path])
    with pytest.raises(UserError, match="no run is named"):
        read_study([])


def test_a_run_that_is_named_twice_is_refused(run):
    folder = run(line())
    with pytest.raises(UserError, match="named twice"):
        read_study([folder, folder.parent / "run" / ".." / "run"])


@pytest.mark.parametrize(
    "spoilt",
    [
        {"stages": "none"},
        {"attempt": []},
        {"task": None, "attempt": {}},
        {"stages": {"call": 3}},
        {"stages": None, "attempt": {"task": "relu"}},
        {"stages": {"perf": {"outcome": "timed", "shapes": [3]}}},
        {"tags": [["t"]]},
    ],
)
def test_a_line_that_is_no_result_is_refused_by_its_key(run, spoilt):
    with pytest.raises(UserError, match=r"the attempt 'a@1' is not a result .*judge it again"):
        read_study([run(line(**spoilt))])


def test_facts_of_references_come_with_the_run(run):
    folder = run(line())
    tasks = {"relu": {"lines": 3, "dtypes": ["float16"]}}
    (folder / "tasks.json").write_text(json.dumps({"schema": 1, "tasks": tasks}))
    assert read_study([folder]).facts == {"relu": {"lines": 3.0}}
    assert read_study([folder]).dtypes == {"relu": ("float16",)}
    (folder / "tasks.json").write_text("[]")
    with pytest.raises(UserError, match="holds no `tasks`"):
        read_study([folder])


def test_the_rounds_of_an_answer_make_a_chain_in_order():
    second, first, other = result(round=1), result(round=0, number=1), result("b", round=0)
    assert chains([second, first, other]) == [(first, second), (other,)]


def test_attempts_without_rounds_are_answers_of_their_own():
    assert len(chains([result(number=n) for n in range(3)])) == 3


def test_samples_models_and_runs_have_chains_of_their_own():
    results = [
        result(round=0, sample=0),
        result(round=0, sample=1),
        result(round=0, sample=0, model="other"),
        result(round=0, sample=0, run=1),
        result(round=1, sample=0),
    ]
    assert [len(chain) for chain in chains(results)] == [2, 1, 1, 1]


def test_twins_of_one_round_begin_chains_of_their_own():
    results = [result(round=r, number=n) for n in range(2) for r in range(2)]
    assert [len(chain) for chain in chains(results)] == [2, 2]


def test_the_answer_of_a_chain_is_its_best_round_or_its_last():
    chain = (
        result(round=0),
        result(round=1, outcome="fail"),
        result(round=2, outcome="call:crash"),
    )
    assert answer_of(chain, "best").round == 0
    assert answer_of(chain, "last").round == 2
    assert answer_of(chain[1:], "best").round == 1


def test_of_equally_good_rounds_the_later_is_the_answer():
    chain = (result(round=0), result(round=1))
    assert answer_of(chain).round == 1


def test_a_kernel_judged_on_two_devices_counts_once():
    here, there = result(run=0), result(run=1)
    found = study(here, there, devices=("A", "B"))
    assert (len(found.attempts), found.distinct) == (2, (here,))
    assert any("counted once" in note for note in found.notes)


def test_two_runs_on_one_device_are_two_experiments():
    found = study(result(run=0), result(run=1), devices=("A", "A"))
    assert len(found.distinct) == 2


def test_a_study_keeps_the_requested_round():
    results = [result(round=0), result(round=1, outcome="fail")]
    assert study_of(study().runs, results, kept="last").answers[0].round == 1


def test_what_could_not_be_judged_is_no_answer_beside_what_was():
    rounds = [
        result(outcome="call:compile_error", method="refine", round=0, number=0),
        result(outcome="call:infra", method="refine", round=1, number=1),
    ]
    assert answer_of(rounds).verdict == "compile_error"
    assert answer_of(rounds, "last").verdict == "infra"


def test_a_profile_is_read_with_what_is_promised_and_what_decides():
    entry = {"status": "broken", "promised": True, "decisive": False, "cases": 2}
    judged = {**line()["attempt"], "contract": "core", "profile": {"dtypes.float16": entry}}
    found = result_of({**line(), "attempt": judged}, 0)
    part = found.profile["dtypes.float16"]
    assert (part.status, part.promised, part.decisive) == ("broken", True, False)
    assert found.has_profile


def test_a_profile_with_an_unknown_status_is_refused():
    judged = {**line()["attempt"], "profile": {"shapes": {"status": "kept"}}}
    with pytest.raises(UserError, match="Invalid enum value 'kept'"):
        result_of({**line(), "attempt": judged}, 0)


def test_a_line_of_an_earlier_version_has_no_profile():
    assert not result_of(line(), 0).has_profile


def test_the_rule_of_quantization_is_read_shared_and_counted(run):
    failing = line(verdict="fail")
    failing["attempt"]["quantization"] = {"rule": "rounding", "words": "codes are cut", "cases": 3}
    again = {k: v for k, v in line("b@1").items() if k != "attempt"} | {"same_as": "a@1"}
    found = read_study([run(failing, again, line("c@1", verdict="fail"))])
    assert [r.quantization for r in found.attempts] == ["rounding", "rounding", None]
    rows = grouped(found.attempts, ["category", "quantization"])
    assert {group: len(results) for group, results in rows.items()} == {
        ("Activation", "rounding"): 2,
        ("Activation", None): 1,
    }
