"""`--json`: one document, with every key that scripts rely on."""

import json
from pathlib import Path

import pytest

from kerneltruth.documents.model import dumps, parse
from kerneltruth.documents.schema import DOCUMENTS

CASE = {
    *("task", "dims", "attributes", "dtype", "layout", "recipe", "seed", "absent", "literals"),
    *("strategy", "domain"),
}
STATS = {
    *("count", "num_exceeding", "max_abs", "mean_abs", "p50_abs", "p90_abs", "p99_abs"),
    *("max_rel", "mean_rel", "max_ulp", "mean_ulp", "worst_index", "max_bound_ratio"),
}
CHECKS = {
    *("kernelbench", "kernelbench-v0", "kernelbench-verified", "kernelbenchx", "tritonbench"),
    *("backendbench", "flashinfer-bench", "robust-kbench", "gpuemu", "one-shape"),
}


def document(ran, name=None):
    """The one JSON document on standard output; it is what the model of that name allows."""
    assert ran.out.count("\n") == 1, ran.out
    found = json.loads(ran.out, parse_constant=pytest.fail)
    if name is not None:
        assert dumps(parse(DOCUMENTS[name], found)) + "\n" == ran.out
    return found


@pytest.fixture(scope="module")
def audit_run(kt, tmp_path_factory):
    """An audit of two kernels."""
    folder = tmp_path_factory.mktemp("audit") / "run"
    only = ("--only", "relu", "--only", "relu_nan_swallowed", "--only", "relu")
    ran = kt("audit", *only, "--device", "cpu", "--out", folder, "--json")
    assert ran.code == 0, ran.err
    return ran


@pytest.mark.slow
def test_an_audit_of_exploits_prints_what_the_contract_lists(kt):
    ran = kt("audit", "--exploits", "--only", "lazy_tuple", "--device", "cpu", "--json")
    assert ran.code == 0, ran.err
    got = document(ran, "audit-exploits")
    assert {"exploits", "as_stated", "honest", "convicted", "skipped"} <= set(got["summary"])
    (lazy,) = got["exploits"]
    assert (lazy["exploit"]["verdict"], lazy["honest"]["verdict"]) == ("fail: type", "pass")


def test_an_audit_of_exploits_keeps_no_run(kt, tmp_path):
    ran = kt("audit", "--exploits", "--out", tmp_path / "run")
    assert ran.code == 2
    assert "--out: does not go with --exploits; leave one of them out" in ran.err


@pytest.mark.slow
def test_audit_prints_what_the_contract_lists(audit_run):
    got = document(audit_run, "audit")
    assert got["schema"] == 2
    assert {"kernels", "summary", "run"} <= set(got)
    assert {
        *("controls", "controls_clean", "bugs", "bugs_caught", "illusions", "cases", "seconds"),
        *("cases_per_second", "device"),
    } <= set(got["summary"])
    assert set(got["summary"]["illusions"]) == CHECKS
    assert [k["name"] for k in got["kernels"]] == ["relu", "relu_nan_swallowed"]
    for kernel in got["kernels"]:
        assert {
            *("name", "task", "role", "fault", "verdict", "kind", "cases", "failed", "minimal"),
            *("obligation", "contract", "passed", "profile", "hazards", "score"),
            *("peer_checks", "illusion_for"),
        } <= set(kernel)
        assert set(kernel["peer_checks"]) == CHECKS
        assert set(kernel["peer_checks"].values()) <= {"pass", "fail", "error"}


@pytest.mark.slow
def test_audit_says_nothing_else_with_json(audit_run):
    assert audit_run.err == ""


@pytest.mark.slow
def test_audit_judges_each_kernel_as_what_it_is(audit_run):
    control, bug = document(audit_run)["kernels"]
    assert (control["role"], control["verdict"], control["minimal"]) == ("control", "pass", None)
    # NaN is beyond what the prompt promises: the contract lets it pass, with a hazard.
    assert (bug["role"], bug["verdict"], bug["caught"]) == ("bug", "pass", True)
    assert bug["profile"]["specials"]["status"] == "broken"
    (hazard,) = bug["hazards"]
    assert hazard.endswith(f"(finding {bug['profile']['specials']['finding']})")
    assert set(bug["minimal"]) == CASE
    assert "kernelbench" in bug["illusion_for"]


_IN_LINE = ("status", "decisive", "cases", "reason", "finding")


def test_a_result_line_says_what_passed_and_which_finding_shows_a_broken_obligation(audit_run):
    run = Path(document(audit_run)["run"])
    lines = map(json.loads, (run / "results.jsonl").read_text(encoding="utf-8").splitlines())
    control, bug = sorted(lines, key=lambda line: line["name"])
    # The bug breaks what does not decide.
    assert (control["passed"], bug["passed"]) == (True, True)
    named = bug["attempt"]["profile"]["specials"]["finding"]
    assert json.loads((run / "findings" / f"{named}.json").read_text())["id"] == named
    assert bug["attempt"]["hazards"]["specials"].endswith(f"(finding {named})")
    in_audit = document(audit_run)["kernels"][1]
    for key in ("verdict", "kind", "contract", "hazards", "score"):
        assert bug[key] == in_audit[key], key
    assert bug["profile"] == {
        obligation: {key: entry[key] for key in _IN_LINE}
        for obligation, entry in in_audit["profile"].items()
    }
    assert {"own", "library", "launches"} == set(bug["kernel"])


def test_a_run_of_audit_replays(audit_run, kt):
    ran = kt("replay", document(audit_run)["run"], "--device", "cpu", "--json")
    got = document(ran, "replay")
    assert (ran.code, got["findings"], got["reproduced"]) == (0, 1, 1)
    assert got["results"][0]["output"].startswith("same")
    assert got["results"][0]["obligations"] == ["specials"]


def test_replay_runs_the_findings_of_one_obligation(audit_run, kt):
    run = document(audit_run)["run"]
    chosen = document(kt("replay", run, "--obligation", "specials", "--json"), "replay")
    assert chosen["findings"] == 1
    none = kt("replay", run, "--obligation", "shapes")
    assert (none.code, none.err.count("\n")) == (2, 1)
    assert "no finding breaks it; they break specials" in none.err


@pytest.mark.slow
def test_check_prints_what_the_contract_lists(kt, finding, failed_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = next((failed_run / "candidates").iterdir())
    arguments = (source, "--task", "relu", "--contract", "torch", "--device", "cpu", "--json")
    ran = kt("check", *arguments, "--cases", "40")
    got = document(ran, "check")
    assert (ran.code, got["contract"], got["passed"]) == (1, "torch", False)
    assert {
        *("schema", "task", "candidate", "verdict", "declined", "kind", "explanation", "cases"),
        *("failed", "finding", "minimal", "stats", "seconds"),
    } <= set(got)
    assert set(got["candidate"]) == {"sha256", "path", "language", "entry"}
    assert set(got["stats"]) == STATS
    assert set(got["minimal"]) == CASE
    assert got["finding"].endswith(finding.name)
    assert ran.err == ""


def test_check_of_a_correct_kernel_has_the_same_keys(kt, good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = kt("check", good, "--device", "cpu", "--cases", "2", "--json")
    got = document(ran, "check")
    assert ran.code == 0
    assert (got["verdict"], got["cases"], got["failed"]) == ("pass", 4, 0)
    assert got["finding"] is got["minimal"] is got["stats"] is got["kind"] is None


def test_declined_cases_are_listed_with_their_reason(kt, candidate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kernel = candidate(
        "import torch\n"
        "def relu(x):\n"
        "    if not x.is_contiguous():\n"
        "        raise ValueError('contiguous inputs only')\n"
        "    return torch.relu(x)\n"
    )
    ran = kt("check", kernel, "--strategy", "layouts", "--cases", "4", "--device", "cpu", "--json")
    got = document(ran, "check")
    assert got["declined"]
    assert set(got["declined"][0]) == {"case", "reason"}
    assert "contiguous inputs only" in got["declined"][0]["reason"]


def test_replay_prints_what_was_compared(kt, finding):
    ran = kt("replay", finding, "--device", "cpu", "--json")
    got = document(ran, "replay")
    assert ran.code == 0
    assert {"schema", "findings", "reproduced", "device", "results"} <= set(got)
    result = got["results"][0]
    assert {"finding", "id", "inputs", "reference", "output", "verdict", "kind"} <= set(result)
    assert (result["inputs"], result["output"], result["reproduced"]) == ("same", "same", True)


def test_minimize_prints_the_smallest_case_and_its_script(kt, finding, tmp_path):
    script = tmp_path / "shows it.py"
    ran = kt("minimize", finding, "--device", "cpu", "--script", script, "--json")
    got = document(ran, "minimize")
    assert ran.code == 0
    assert {"schema", "finding", "verdict", "kind", "case", "minimal", "evaluations"} <= set(got)
    assert set(got["minimal"]) == CASE
    assert got["script"] == str(script)
    compile(script.read_text(), str(script), "exec")


def test_tasks_prints_what_the_contract_lists(kt):
    got = document(kt("tasks", "--json"), "tasks")
    assert len(got["tasks"]) >= 25
    for task in got["tasks"]:
        assert {"name", "category", "suite", "signature", "dtypes", "dims", "description"} <= set(
            task
        )


def test_one_task_is_a_list_of_one(kt):
    got = document(kt("tasks", "softmax", "--json"), "tasks")
    assert [t["name"] for t in got["tasks"]] == ["softmax"]
    assert got["tasks"][0]["dims"]["N"]["role"] == "reduced"
    assert got["tasks"][0]["contract"]["name"] == "core"


def test_a_tasks_contract_is_chosen_by_name(kt):
    got = document(kt("tasks", "softmax", "--contract", "torch", "--json"), "tasks")
    assert got["tasks"][0]["contract"]["obligations"]["layouts"]["decisive"]
    unknown = kt("tasks", "softmax", "--contract", "strict")
    assert unknown.code == 2
    assert "'strict': must be one of published, core, torch" in unknown.err
    unnamed = kt("tasks", "--contract", "core")
    assert unnamed.code == 2
    assert "name one: `kerneltruth tasks NAME`" in unnamed.err


def test_doctor_prints_devices_libraries_targets_and_isolation(kt):
    ran = kt("doctor", "--json")
    got = document(ran, "doctor")
    assert ran.code == 0
    assert {"schema", "devices", "libraries", "compile_targets", "isolation", "missing"} <= set(got)
    assert got["devices"][0]["device"] == "cpu"
    assert all(got["libraries"].values())
    assert {"level", "limited_by"} <= set(got["isolation"])


def test_compare_prints_what_differs(kt, failed_run, good, tmp_path):
    assert kt("check", good, "--device", "cpu", "--cases", "2", "--out", tmp_path / "b").code == 0
    ran = kt("compare", failed_run, tmp_path / "b", "--json")
    got = document(ran, "compare")
    assert ran.code == 1
    assert {"schema", "runs", "kernels", "same", "differing", "missing"} <= set(got)
    assert {m["name"] for m in got["missing"]} == {"good.py", "relu_nan_swallowed.py"}


def test_compare_of_a_run_with_itself_finds_no_difference(kt, failed_run):
    ran = kt("compare", failed_run, failed_run, "--json")
    got = document(ran, "compare")
    assert (ran.code, got["same"], got["kernels"]) == (0, 1, 1)
    assert got["differing"] == got["missing"] == []


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    """A folder with a right candidate, a wrong one, and one that is no Python."""
    folder = tmp_path_factory.mktemp("handed_in")
    (folder / "relu.py").write_text("import torch\ndef relu(x):\n    return torch.relu(x)\n")
    (folder / "silu.py").write_text("def silu(x):\n    return x\n")
    (folder / "gelu.py").write_text("def gelu(")
    return folder


def test_run_prints_each_candidate_and_counts_by_stage(kt, handed_in, tmp_path):
    run = ("run", "--suite", "core", "--candidates", handed_in, "--cases", "4", "--device", "cpu")
    got = document(kt(*run, "--out", tmp_path / "run", "--json"), "run")
    assert {c["name"].partition("@")[0]: c["verdict"] for c in got["candidates"]} == {
        "relu.py": "pass",
        "silu.py": "fail",
        "gelu.py": "compile_error",
    }
    assert got["stages"]["exe"] == {"pass": 1, "fail": 1, "not_run": 1}


def test_analyze_prints_every_table_with_its_counts(kt, failed_run):
    got = document(kt("analyze", failed_run, "--bibtex", "--json"), "analyze")
    assert got["rates"]["overall"]["exe"]["numerator"] == 0
    assert got["bibtex"].startswith("@")


def test_report_prints_where_the_page_is(kt, failed_run, tmp_path):
    got = document(kt("report", failed_run, "-o", tmp_path / "p.html", "--json"), "report")
    assert (got["attempts"], got["findings"], got["out"]) == (1, 1, str(tmp_path / "p.html"))


def test_generate_prints_what_it_read(kt, handed_in, tmp_path):
    command = ("generate", "--method", "import", "--suite", "core", "--from", handed_in)
    got = document(kt(*command, "--out", tmp_path / "made", "--json"), "generate")
    assert (got["answers"], got["account"]["calls"], got["refine"]) == (3, 0, None)


def test_the_audit_of_a_suite_prints_what_each_task_has_shown(kt):
    audit = ("audit", "--suite", "core", "--only", "relu", "--cases", "1", "--device", "cpu")
    got = document(kt(*audit, "--json"), "audit-suite")
    assert [task["task"] for task in got["tasks"]] == ["relu"]
    assert got["summary"]["good"]
