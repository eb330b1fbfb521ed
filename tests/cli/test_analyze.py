"""`analyze` as users call it."""

import csv
import hashlib
import io
import json

import pytest
from rich.console import Console
from test_lightness import imported

from kerneltruth.documents.analysis import AnalyzeDocument
from kerneltruth.documents.model import parse
from kerneltruth.report.analysis_view import analysis_view

MANIFEST = {
    "arguments": ["run", "identity"],
    "seed": 0,
    "suite_hash": "a" * 64,
    "environment": {"device": "cuda:0", "device_name": "GPU A"},
    "started": "2026-01-01T00:00:00+00:00",
    "ended": "2026-01-01T00:01:00+00:00",
    "version": "0.1.0",
    "schema": 1,
}
DTYPES = ("float32", "float16")


def perf(ratio):
    eager = {"us": 10 * ratio, "ratio": ratio, "low": 0.98 * ratio, "high": 1.02 * ratio}
    shape = {
        "case": {"dtype": "float32"},
        "summary": "N=4 float32",
        "candidate_us": 10.0,
        "baselines": {"eager": eager},
        "efficiency": 0.4,
        "bound_by": "memory",
        "flags": [],
    }
    return {"outcome": "timed", "shapes": [shape], "noise_floor": 0.01}


def line(task, category, method, right, *, sample=None, turn=None, ratio=1.5):
    key = f"{method}/{task}.{sample}.{turn}.py@1"
    verdict = {"verdict": "pass"} if right else {"verdict": "fail", "kind": "value"}
    counts = {"cases": 2, "returned": 2, "failed": int(not right)}
    exe = {"outcome": "pass" if right else "fail"}
    return {
        "key": key,
        "name": key,
        "attempt": {
            "task": f"kernelbenchx/{task}",
            "candidate": {"sha256": "c" * 64, "language": "triton"},
            "verdict": verdict,
            "cases": 4,
            "failed": int(not right),
            "dtypes": dict.fromkeys(DTYPES, counts),
        },
        "finding": None if right else f"{task}.json",
        "task": f"kernelbenchx/{task}",
        "category": category,
        "origin": key,
        "sha256": hashlib.sha256(key.encode()).hexdigest(),
        "labels": {"method": method, "model": "gpt", "sample": sample, "round": turn},
        "peer": {"check": "kernelbench", "compiled": True, "correct": True},
        "stages": {
            "call": {"outcome": "pass"},
            "exe": exe,
            "perf": perf(ratio) if right else {"outcome": "not_run"},
        },
        "tags": [],
    }


def write(folder, lines, **manifest):
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({**MANIFEST, **manifest}))
    (folder / "results.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    facts = {f"kernelbenchx/t{n}": {"lines": n, "operators": n} for n in range(12)}
    (folder / "tasks.json").write_text(json.dumps({"schema": 1, "tasks": facts}))
    return folder


@pytest.fixture
def run(tmp_path):
    """Three methods on twelve tasks of three categories, one of them in rounds."""
    lines = []
    for number in range(12):
        task, category = f"t{number}", ("Math", "Loss", "Fusion")[number % 3]
        easy = category != "Fusion"
        lines.append(line(task, category, "one_shot", easy and number % 4 > 0))
        lines += [line(task, category, "best_of_n", easy and s > 0, sample=s) for s in range(3)]
        lines += [
            line(task, category, "refine", easy and t > 0, sample=0, turn=t, ratio=1.2 + t)
            for t in range(3)
        ]
    return write(tmp_path / "run", lines)


def test_json_holds_every_statistic_with_its_counts(kt, run):
    ran = kt("analyze", run, "--json", "--p", "1,2.5", "--k", "1,3")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    overall = document["rates"]["overall"]
    assert (document["attempts"], document["answers"]) == (84, 60)
    assert document["torch_only"] == {"answers": 0, "pass": 0}
    assert overall["exe"]["numerator"] == 6 + 16 + 8
    assert overall["exe"]["denominator"] == 60
    assert [b["by"] for b in document["rates"]["by"]][:3] == [["category"], ["method"], ["dtype"]]
    assert {r["k"] for r in document["pass_at_k"]} == {1, 3}
    rows = [r for r in document["fast_p"] if "category" not in r]
    fast = {(r.get("method"), r["p"]): r["share"]["numerator"] for r in rows}
    assert (fast[None, 1.0], fast[None, 2.5], fast["refine", 2.5]) == (30, 8, 8)
    unsolved = document["unsolved"]["overall"]["unsolved"]
    assert (unsolved["numerator"], unsolved["denominator"]) == (4, 12)
    (illusions,) = document["illusions"]["overall"]
    assert illusions["check"] == "published:kernelbench"
    assert illusions["illusions"]["denominator"] == 84
    findings = document["illusions"]["findings"]
    assert len(findings) == illusions["illusions"]["numerator"]
    assert findings[0]["finding"] == f"{run}/findings/t0.json"
    assert [t["model"] for t in document["deviance"]["terms"]][:2] == ["category", "method"]
    assert {level["level"] for level in document["deviance"]["separated"]} == {"Fusion"}
    assert document["deviance"]["complexity"][0]["proxy"] == "lines"
    assert [r["round"] for r in document["trajectories"]["rounds"]] == [0, 1, 2]
    (changes,) = document["trajectories"]["changes"]
    assert (changes["repaired"]["numerator"], changes["improved"]) == (8, 8)
    assert document["portability"] is None


def test_answers_are_counted_with_and_without_those_that_have_no_kernel(kt, tmp_path):
    plain, own = line("t0", "Math", "x", right=True), line("t1", "Math", "x", right=True)
    plain["attempt"]["torch_only"] = True
    runs = [write(tmp_path / name, [plain, own]) for name in ("one", "two")]
    out = ("-o", tmp_path / "page.html")

    def counts(*more):
        commands = (("analyze", runs[0]), ("report", runs[0], *out), ("compare", *runs))
        found = [json.loads(kt(*command, *more, "--json").out) for command in commands]
        return [d.get("attempts", d.get("kernels")) for d in found]

    assert counts() == [2, 2, 2]
    assert counts("--without-torch-only") == [1, 1, 1]
    analyzed = json.loads(kt("analyze", runs[0], "--without-torch-only", "--json").out)
    assert analyzed["torch_only"] == {"answers": 0, "pass": 0}
    assert "1 of 2 attempts have no kernel of their own" in analyzed["notes"][0]


def test_models_are_not_pooled(kt, tmp_path):
    lines = [line(f"t{n}", "Math", "one_shot", n > 2) for n in range(8)]
    other = [line(f"t{n}", "Math", "one_shot", n < 3, ratio=0.5) for n in range(8)]
    for record in other:
        record["labels"]["model"] = "llama"
        record["key"] = record["name"] = "llama/" + record["key"]
    document = json.loads(kt("analyze", write(tmp_path / "run", lines + other), "--json").out)
    faster = {
        (row["method"], row["model"]): row["share"]["numerator"]
        for row in document["fast_p"]
        if "model" in row and row["p"] == 1.0
    }
    assert faster == {("one_shot", "gpt"): 5, ("one_shot", "llama"): 0}
    for table in ("speedups", "efficiency"):
        rows = [row for row in document[table] if "method" in row]
        assert [row["model"] for row in rows] == ["gpt", "llama"]
    (by_method,) = (b for b in document["illusions"]["by"] if "method" in b["by"])
    assert by_method["by"] == ["method", "model"]


def wrong_when_timed(record):
    """The line of a kernel that the judge found right, and the clock wrong."""
    shape = {"case": {"dtype": "float32"}, "graded": {"wrong": ["3 of 9 elements differ"]}}
    said = {"outcome": "wrong", "detail": "N=4 float32: 3 of 9 elements differ"}
    record["stages"]["perf"] = {**said, "shapes": [shape]}
    return record


def test_a_kernel_that_was_wrong_while_it_was_timed_is_wrong_everywhere(kt, tmp_path):
    lines = [line(f"t{n}", "Math", "one_shot", True) for n in range(4)]
    run = write(tmp_path / "run", [wrong_when_timed(lines[0]), *lines[1:]])
    document = json.loads(kt("analyze", run, "--json", "--k", "1").out)
    counted = {"numerator": 3, "denominator": 4}
    overall = document["rates"]["overall"]
    assert {name: overall["exe"][name] for name in counted} == counted
    assert document["pass_at_k"][0]["value"]["value"] == 0.75
    (fast,) = (r for r in document["fast_p"] if not {"method", "category"} & set(r) and r["p"] == 0)
    assert {name: fast["share"][name] for name in counted} == counted
    by_dtype = next(b["rows"] for b in document["rates"]["by"] if b["by"] == ["dtype"])
    failed = {row["dtype"]: row["failed"]["numerator"] for row in by_dtype}
    assert failed == {"float16": 0, "float32": 1}
    (illusion,) = document["illusions"]["findings"]
    assert (illusion["verdict"], illusion["kind"]) == ("fail", "when_timed")
    assert illusion["detail"] == "N=4 float32: 3 of 9 elements differ"
    assert document["unsolved"]["overall"]["tasks"] == ["kernelbenchx/t0"]


def test_a_stage_that_was_never_tried_has_no_rate(kt, tmp_path):
    """On a CPU nothing is timed: that says nothing of the kernels."""
    lines = [line(f"t{n}", "Math", "one_shot", n > 1) for n in range(6)]
    for record in lines:
        record["stages"]["perf"] = {"outcome": "not_run", "detail": "no GPU"}
    run = write(tmp_path / "run", lines)
    document = json.loads(kt("analyze", run, "--json").out)
    overall = document["rates"]["overall"]
    assert overall["perf"] == {
        "numerator": 0,
        "denominator": 6,
        "rate": None,
        "low": None,
        "high": None,
    }
    assert overall["not_tried"] == {"call": 0, "exe": 0, "perf": 6}
    row = next(r for r in kt("analyze", run).out.splitlines() if r.startswith(" all  "))
    assert row.split()[-2:] == ["not", "tried"]


def audit_line(name, role, verdict):
    record = line(name, None, None, verdict == "pass")
    del record["stages"], record["labels"], record["peer"], record["category"]
    return {**record, "role": role, "peer_checks": {"kernelbench": {"verdict": "pass", "why": ""}}}


AUDITED = [
    *(audit_line(f"a{n}", "control", "pass") for n in range(3)),
    *(audit_line(f"b{n}", "bug", "fail" if n else "pass") for n in range(4)),
]


def test_an_audit_is_analysed_by_its_kernels_and_not_by_models(kt, tmp_path):
    run = write(tmp_path / "run", AUDITED, arguments=["audit", "identity"])
    said = kt("analyze", run).out
    assert "7 kernels of the built-in corpus" in said
    assert "3 of 3 controls are clean; 3 of 4 bugs are caught" in said
    assert not any(word in said for word in ("pass@", "method", "model", "answers of"))
    document = json.loads(kt("analyze", run, "--json").out)
    assert document["audit"]["bugs_caught"] == 3
    assert document["pass_at_k"] == []
    assert "audit judges the built-in corpus" in document["deviance"]["unavailable"]
    (check,) = document["illusions"]["overall"]
    assert (check["check"], check["illusions"]["numerator"]) == ("kernelbench", 3)


def test_an_audit_of_an_earlier_version_is_no_study_of_models_either(kt, tmp_path):
    lines = [{k: v for k, v in record.items() if k != "role"} for record in AUDITED]
    run = write(tmp_path / "run", lines, arguments=["audit", "identity"])
    assert "7 kernels of the built-in corpus" in kt("analyze", run).out


def test_an_audit_beside_a_run_counts_in_none_of_its_tables(kt, run, tmp_path):
    audit = write(tmp_path / "audit", AUDITED, arguments=["audit", "identity"])
    alone = json.loads(kt("analyze", run, "--json").out)
    both = json.loads(kt("analyze", run, audit, "--json").out)
    assert both["attempts"] == alone["attempts"] + 7
    for table in ("rates", "pass_at_k", "fast_p", "illusions", "deviance", "audit"):
        assert both[table] == alone[table]
    assert any("7 attempts are of the built-in corpus" in note for note in both["notes"])


def test_every_line_fits_eighty_columns(kt, run):
    document = parse(AnalyzeDocument, json.loads(kt("analyze", run, "--json", "--k", "1,3").out))
    sink = io.StringIO()
    Console(width=80, file=sink).print(analysis_view(document))
    text = sink.getvalue()
    assert max(len(row.rstrip()) for row in text.splitlines()) <= 80
    for title in (
        "Answers that pass each stage",
        "By category",
        "Tasks that no method solves",
        "pass@k",
        "fast_p against eager",
        "Speedup over eager",
        "Share of the device's limit",
        "Illusions",
        "Deviance of correctness",
        "Complexity of the reference",
        "Rounds of refine gpt",
        "Speedup over eager by round of refine gpt",
    ):
        assert title in text
    # There are 12 tasks: five answers to each are no five times as many trials.
    assert "30/60 50% (30-70)" in text


def test_a_name_of_a_candidate_does_nothing_to_the_terminal(kt, tmp_path):
    hostile = "m\x1b]0;owned\x07[bold]x[/bold]"
    lines = [line(f"t{n}", hostile, hostile, n > 1) for n in range(4)]
    ran = kt("analyze", write(tmp_path / "run", lines))
    assert ran.code == 0, ran.err
    assert "\x1b" not in ran.out
    assert "m\\x1b]0;owned\\x07[bold]x[/bold]" in ran.out


def test_the_requested_rates_are_shown(kt, run):
    ran = kt("analyze", run, "--by", "category,method", "--by", "dtype")
    assert "By category and method" in ran.out
    assert "By dtype" in ran.out
    assert "By method\n" not in ran.out


def test_answers_that_were_only_partly_tried_in_a_dtype_are_counted(kt, tmp_path):
    lines = [line("t0", "Math", "one_shot", True, sample=n) for n in range(3)]
    for some in lines[:2]:
        some["attempt"]["dtypes"] = {"float32": {"cases": 2, "returned": 2, "failed": 0}}
    ran = kt("analyze", write(tmp_path / "run", lines), "--by", "dtype")
    said = "2 answers only partly tried in a dtype, whose share therefore has a lower and an upper"
    assert said in " ".join(ran.out.split())


def test_the_last_round_counts_on_request(kt, run):
    lines = [line("t1", "Math", "refine", t == 0, sample=0, turn=t) for t in range(2)]
    other = write(run.parent / "other", lines)
    for keep, right in (("best", 1), ("last", 0)):
        document = json.loads(kt("analyze", other, "--json", "--keep", keep).out)
        assert document["rates"]["overall"]["exe"]["numerator"] == right
        assert document["kept"] == keep


def test_runs_on_two_devices_are_compared_and_counted_once(kt, run):
    lines = [json.loads(x) for x in (run / "results.jsonl").read_text().splitlines()]
    for record in lines:
        if record["stages"]["perf"]["outcome"] == "timed":
            record["stages"]["perf"] = perf(0.5)
    environment = {"device": "cuda:0", "device_name": "GPU B"}
    other = write(run.parent / "other", lines, environment=environment)
    document = json.loads(kt("analyze", run, other, "--json").out)
    assert (document["attempts"], document["distinct"]) == (168, 84)
    found = document["portability"]
    assert found["devices"] == ["GPU A", "GPU B"]
    assert found["flips"]["numerator"] == found["timed"] == 38
    assert "faster on one and slower on another: 38/38 100%" in kt("analyze", run, other).out


def test_exports_hold_every_attempt(kt, run, tmp_path):
    ran = kt(
        *("analyze", run, "--csv", tmp_path / "a.csv", "--parquet", tmp_path / "a.parquet"),
        "--bibtex",
    )
    assert f"written: {tmp_path / 'a.csv'}" in ran.out
    with (tmp_path / "a.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 84
    assert (tmp_path / "a.parquet").stat().st_size > 1000
    assert "@misc{kerneltruth-kernelbenchx-0.1.0-aaaaaaaa," in ran.out


def test_an_empty_run_is_reported_and_is_no_mistake(kt, tmp_path):
    folder = write(tmp_path / "empty", [])
    ran = kt("analyze", folder)
    assert ran.code == 0
    assert "note: the runs hold no attempt" in ran.out
    document = json.loads(kt("analyze", folder, "--json").out)
    assert document["rates"]["overall"]["exe"]["denominator"] == 0
    assert "unavailable" in document["deviance"]


def test_a_run_without_methods_has_rates_all_the_same(kt, tmp_path):
    record = line("t1", "Math", None, True)
    ran = kt("analyze", write(tmp_path / "run", [record]))
    assert ran.code == 0, ran.err
    assert "By method and model" in ran.out
    assert "\n gpt " in ran.out


def test_a_torn_last_line_is_reported(kt, run):
    with (run / "results.jsonl").open("a") as file:
        file.write('{"key": "x", "na')
    ran = kt("analyze", run)
    assert ran.code == 0
    assert "was cut short" in ran.out


@pytest.mark.slow
def test_a_run_of_check_can_be_analysed(kt, failed_run):
    document = json.loads(kt("analyze", failed_run, "--json").out)
    assert document["rates"]["overall"]["exe"]["denominator"] == 1
    assert document["runs"][0]["command"] == "check"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--by", "colour"), "--by colour: must be one of category, method,"),
        (("--p", "fast"), "--p fast: must be numbers from 0, joined by commas"),
        (("--p", "nan"), "--p nan: must be numbers from 0"),
        (("--k", "1.5"), "--k 1.5: must be whole numbers from 1"),
        (("--k", "0"), "--k 0: must be whole numbers from 1"),
        (("--keep", "first"), "--keep first: must be best or last"),
    ],
)
def test_a_wrong_option_is_one_line(kt, run, arguments, says):
    ran = kt("analyze", run, *arguments)
    assert ran.code == 2
    assert ran.err.startswith(f"kerneltruth: {says}")
    assert ran.err.count("\n") == 1


def test_what_is_no_run_is_one_line(kt, tmp_path):
    ran = kt("analyze", tmp_path)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "it has no run.json" in ran.err


def test_a_run_of_a_newer_schema_is_one_line(kt, tmp_path):
    ran = kt("analyze", write(tmp_path / "new", [], schema=9))
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "upgrade kerneltruth" in ran.err


@pytest.mark.slow
def test_analyze_imports_no_torch(environment, run):
    assert not imported(environment, "analyze", run, "--json") & {"torch", "triton"}


@pytest.mark.slow
def test_a_check_hands_its_outcome_to_other_tools(kt, tmp_path, candidate):
    wrong = candidate("import torch\ndef relu(x):\n    return x + 1\n", "relu.py")
    ran = kt(
        *("check", wrong, "--task", "relu", "--device", "cpu", "--cases", "4"),
        *("--junit", tmp_path / "out.xml", "--annotations", "--out", tmp_path / "checked"),
    )
    assert ran.code == 1
    (command,) = [row for row in ran.out.splitlines() if row.startswith("::")]
    assert command.startswith(f"::error file={wrong},title=relu%3A fail value::published: ")
    assert "(smallest case " in command
    xml = (tmp_path / "out.xml").read_text()
    assert '<failure message="published: ' in xml
    assert '<property name="published" value="broken: value on ' in xml


@pytest.mark.slow
def test_annotations_leave_the_json_document_alone(kt, tmp_path, candidate):
    wrong = candidate("import torch\ndef relu(x):\n    return x + 1\n", "relu.py")
    ran = kt(
        *("check", wrong, "--task", "relu", "--device", "cpu", "--cases", "4", "--json"),
        *("--annotations", "--out", tmp_path / "checked"),
    )
    assert json.loads(ran.out)["verdict"] == "fail"
    assert ran.err.startswith("::error file=")


@pytest.mark.slow
def test_a_run_hands_each_outcome_to_other_tools_and_compares_with_peers(kt, tmp_path):
    lines = [
        {"file": "relu.py", "predict": "import torch\ndef relu(x):\n    return torch.relu(x)\n"},
        {"file": "relu.py", "predict": "import torch\ndef relu(x):\n    return x\n"},
        {"file": "relu.py", "predict": "def ("},
    ]
    source = tmp_path / "answers.jsonl"
    source.write_text("".join(json.dumps(x) + "\n" for x in lines))
    out, xml = tmp_path / "run", tmp_path / "out.xml"
    ran = kt(
        *("run", "--suite", "core", "--candidates", source, "--out", out, "--device", "cpu"),
        *("--cases", "4", "--no-explain", "--peer-checks", "--junit", xml, "--annotations"),
    )
    assert ran.code == 0, ran.err
    commands = [row for row in ran.out.splitlines() if row.startswith("::")]
    assert {c.partition(",title=")[0] for c in commands} == {
        f"::error file={source},line={n}" for n in (2, 3)
    }
    assert '<testsuites name="kerneltruth" tests="3" failures="2"' in xml.read_text()
    assert '<property name="shapes" value="held in ' in xml.read_text()
    assert any("::published, memory: the output shares" in c for c in commands), commands
    document = json.loads(kt("analyze", out, "--json").out)
    checks = {row["check"]: row["illusions"] for row in document["illusions"]["overall"]}
    # Uniform values of one sign: the identity passes for ReLU.
    assert checks["kernelbench"]["numerator"] == 1
    assert checks["kernelbench"]["denominator"] == 2
    assert json.loads((out / "tasks.json").read_text())["tasks"]["relu"]["operators"] == 1


def test_an_illusion_without_a_kernel_is_marked(kt, tmp_path):
    plain, own = (line(name, "Math", "x", right=False) for name in ("t0", "t1"))
    plain["attempt"]["torch_only"] = True
    run = write(tmp_path / "run", [plain, own])
    found = json.loads(kt("analyze", run, "--json").out)["illusions"]["findings"]
    marked = {illusion["task"]: illusion["torch_only"] for illusion in found}
    assert marked == {"kernelbenchx/t0": True, "kernelbenchx/t1": False}
    lines = [said for said in kt("analyze", run).out.splitlines() if "certified by" in said]
    assert [said for said in lines if "torch-only" in said] == [
        said for said in lines if said.startswith("kernelbenchx/t0")
    ]
