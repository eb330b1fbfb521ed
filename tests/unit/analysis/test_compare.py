"""`compare` over result lines of two devices."""

import pytest

from kerneltruth.analysis.compare import compare_runs
from kerneltruth.analysis.selection import Selection
from kerneltruth.documents.model import plain
from kerneltruth.documents.stored import Manifest
from kerneltruth.errors import UserError
from kerneltruth.runs.store import RunStore

CASE = "M=4096 N=4096 float32 normal"


def shape(ratio, half=0.01, summary=CASE, flags=()):
    eager = {"us": 10.0, "ratio": ratio, "low": ratio - half, "high": ratio + half}
    return {
        "summary": summary,
        "case": {"dtype": "float32"},
        "candidate_us": 10.0 / ratio,
        "baselines": {"eager": eager | {"outcome": "tie"}},
        "flags": list(flags),
    }


def line(verdict="pass", *shapes, sha="a", **more):
    perf = {"outcome": "timed", "shapes": list(shapes)} if shapes else {"outcome": "not_run"}
    return {
        "task": "softmax",
        "sha256": sha,
        "attempt": {
            "task": "softmax",
            "candidate": {"sha256": sha},
            "verdict": {"verdict": verdict},
        },
        "stages": {"call": {"outcome": "pass"}, "exe": {"outcome": verdict}, "perf": perf},
    } | more


@pytest.fixture
def run(tmp_path):
    def make(name, device, lines):
        manifest = Manifest(
            version="0",
            arguments=("run",),
            seed=0,
            suite_hash="",
            started="2026-01-01",
            environment={"device_name": device},
        )
        with RunStore.create(tmp_path / name, manifest, keep=dict) as store:
            for key, content in lines.items():
                store.append(key, {"name": key, **content})
            store.finish()
        return tmp_path / name

    return make


def compared(paths):
    return plain(compare_runs(paths))


def test_speedups_of_two_devices_stand_side_by_side(run):
    a = run("a", "H100", {"k": line("pass", shape(2.0))})
    b = run("b", "H200", {"k": line("pass", shape(1.0))})
    document = compared([a, b])
    assert [r["device"] for r in document["runs"]] == ["H100", "H200"]
    speed = document["speed"]["eager"]
    assert (speed["timed"], speed["shared"], speed["differ"]) == ([1, 1], 1, 1)
    kernel = speed["kernels"][0]
    assert [s["ratio"] for s in kernel["speedups"]] == pytest.approx([2.0, 1.0])
    assert kernel["spread"] == pytest.approx(2)


def test_a_wrong_kernels_speed_is_not_compared(run):
    a = run("a", "H100", {"k": line("fail", shape(2.0))})
    b = run("b", "H200", {"k": line("pass", shape(1.0))})
    document = compared([a, b])
    assert document["differing"] == [{"name": "k", "verdicts": ["fail", "pass"]}]
    assert document["speed"]["eager"]["shared"] == 0


def test_another_source_under_the_same_name_is_said_and_not_compared(run):
    a = run("a", "H100", {"k": line("pass", shape(2.0), sha="a")})
    b = run("b", "H200", {"k": line("pass", shape(1.0), sha="b")})
    document = compared([a, b])
    assert document["other_source"] == ["k"]
    assert document["speed"] == {}


def test_a_suspect_time_is_not_compared(run):
    a = run("a", "H100", {"k": line("pass", shape(2.0, flags=["timing_suspect"]))})
    b = run("b", "H200", {"k": line("pass", shape(1.0))})
    assert compared([a, b])["speed"]["eager"]["timed"] == [0, 1]


def test_an_attempt_that_repeats_another_has_its_verdict(run):
    again = {
        "task": "softmax",
        "sha256": "a",
        "same_as": "k",
        "stages": {"exe": {"outcome": "pass"}},
    }
    a = run("a", "H100", {"k": line("pass"), "k2": again})
    document = compared([a, a])
    assert (document["same"], document["kernels"]) == (2, 2)


def test_runs_without_times_have_no_speed(run):
    a = run("a", "cpu", {"k": line()})
    assert compared([a, a])["speed"] == {}


def test_one_run_is_not_enough(tmp_path):
    with pytest.raises(UserError, match="two or more runs, got 1"):
        compare_runs([tmp_path])


def test_the_same_source_at_another_place_in_its_file_is_the_same_kernel(run):
    one = {"a:1@s": line(sha="s"), "a:2@t": line("fail", sha="t"), "a:3@u": line(sha="u")}
    other = {"a:1@s": line(sha="s"), "a:3@t": line("pass", sha="t"), "a:4@v": line(sha="v")}
    document = compared([run("one", "H100", one), run("other", "H200", other)])
    assert document["same"] == 1
    assert [d["name"] for d in document["differing"]] == ["a:2@t"]
    assert sorted(m["name"] for m in document["missing"]) == ["a:3@u", "a:4@v"]
    assert document["kernels"] == 4


def test_a_source_that_many_gave_is_compared_where_names_agree_and_nowhere_else(run):
    one = {"a:1@s": line(sha="s"), "b:7@s": line(sha="s")}
    other = {"a:1@s": line(sha="s"), "b:8@s": line(sha="s")}
    document = compared([run("one", "H100", one), run("other", "H200", other)])
    assert (document["kernels"], document["same"], document["missing"]) == (1, 1, [])


def test_the_same_source_for_another_task_is_another_kernel(run):
    one = {"a:1@s": line(sha="s")}
    other = {"a:2@s": line(sha="s", task="gelu")}
    document = compared([run("one", "H100", one), run("other", "H200", other)])
    assert (document["same"], len(document["missing"])) == (0, 2)


def test_speedups_of_a_kernel_at_another_place_are_compared(run):
    one = run("one", "H100", {"a:1@s": line("pass", shape(2.0), sha="s")})
    other = run("other", "H200", {"a:9@s": line("pass", shape(1.0), sha="s")})
    assert compared([one, other])["speed"]["eager"]["shared"] == 1


def profiled(contract="core", **statuses):
    parts = {o: {"status": s, "promised": True, "decisive": True} for o, s in statuses.items()}
    made = line()
    made["attempt"] |= {"profile": parts, "contract": contract}
    return made


def test_an_obligation_that_ends_differently_is_listed_with_its_status_in_each_run(run):
    before = run("a", "cpu", {"k": profiled(shapes="broken", values="held")})
    after = run("b", "cpu", {"k": profiled(shapes="held", values="held")})
    (changed,) = compare_runs([before, after]).obligations
    assert (changed.name, changed.obligation) == ("k", "shapes")
    assert changed.statuses == ("broken", "held")


def test_only_kernels_that_fail_the_obligation_in_some_run_are_compared(run):
    lines = {"k": profiled(shapes="broken"), "l": profiled(shapes="held")}
    document = compare_runs(
        [run("a", "cpu", lines), run("b", "cpu", lines)], Selection(obligation="shapes")
    )
    assert (document.kernels, document.same) == (1, 1)


def test_a_kernel_that_is_torch_only_in_some_run_can_be_left_out_of_all(run):
    plain = line()
    plain["attempt"]["torch_only"] = True
    before = run("a", "cpu", {"k": line(), "l": line()})
    after = run("b", "cpu", {"k": line(), "l": plain})
    assert compare_runs([before, after]).torch_only == ("l",)
    document = compare_runs([before, after], Selection(without_torch_only=True))
    assert (document.kernels, document.missing) == (1, ())


def test_kernels_without_a_profile_are_counted_and_not_compared_by_obligation(run):
    old = run("a", "cpu", {"k": line()})
    new = run("b", "cpu", {"k": profiled(shapes="held")})
    document = compare_runs([old, new])
    assert (document.no_profile, document.obligations) == (1, ())


def file(origin, sha, verdict="pass", **more):
    """The line of a file that `run` judged, by its name."""
    return {f"{origin}@{sha}": line(verdict, sha=sha, origin=origin, **more)}


def edited(*runs):
    document = compare_runs(runs)
    return {k.name: (k.became, *k.files) for k in document.edited}, document


def test_an_edit_that_fixed_a_file_and_one_that_broke_a_file_are_told(run):
    before = file("a.py", "s", "fail") | file("b.py", "t") | file("c.py", "u", "fail")
    after = file("a.py", "v") | file("b.py", "w", "fail") | file("c.py", "x", "fail")
    found, document = edited(run("a", "cpu", before), run("b", "cpu", after))
    assert found == {
        "a.py": ("fixed", "a.py", "a.py"),
        "b.py": ("broken", "b.py", "b.py"),
        "c.py": ("still wrong", "c.py", "c.py"),
    }
    assert document.missing == ()
    assert (document.same, document.kernels) == (1, 3)


def test_a_file_of_another_folder_is_matched_by_its_name(run):
    before, after = file("old/a.py", "s", "fail"), file("new/a.py", "t")
    found, _ = edited(run("a", "cpu", before), run("b", "cpu", after))
    assert found == {"new/a.py": ("fixed", "old/a.py", "new/a.py")}


def test_the_same_name_twice_is_told_apart_by_the_path(run):
    before = file("old/x/a.py", "s", "fail") | file("old/y/a.py", "t", "fail")
    after = file("new/x/a.py", "u") | file("new/y/a.py", "v", "fail")
    found, _ = edited(run("a", "cpu", before), run("b", "cpu", after))
    assert sorted(found.values()) == [
        ("fixed", "old/x/a.py", "new/x/a.py"),
        ("still wrong", "old/y/a.py", "new/y/a.py"),
    ]


def test_the_same_name_twice_without_a_path_that_tells_them_apart_is_not_matched(run):
    before = file("x/a.py", "s") | file("y/a.py", "t")
    found, document = edited(run("a", "cpu", before), run("b", "cpu", file("z/a.py", "u")))
    assert (found, len(document.missing)) == ({}, 3)


def test_a_file_of_the_same_name_for_another_task_is_another_kernel(run):
    after = file("a.py", "t", task="gelu")
    found, document = edited(run("a", "cpu", file("a.py", "s")), run("b", "cpu", after))
    assert (found, len(document.missing)) == ({}, 2)


def test_a_copy_that_is_edited_is_told_though_its_first_form_is_still_there(run):
    before = file("a.py", "s") | file("b.py", "s")
    after = file("a.py", "s") | file("b.py", "t", "fail")
    found, document = edited(run("a", "cpu", before), run("b", "cpu", after))
    assert found == {"b.py": ("broken", "b.py", "b.py")}
    assert document.kernels == 2


def test_a_file_with_its_source_under_another_name_is_not_edited(run):
    found, document = edited(
        run("a", "cpu", file("a.py", "s")), run("b", "cpu", file("renamed.py", "s"))
    )
    assert (found, document.same) == ({}, 1)
