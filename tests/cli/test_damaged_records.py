"""Findings and runs that are damaged, edited, moved or from a newer version."""

import hashlib
import json

import pytest


def refused(ran):
    assert (ran.code, ran.out) == (2, ""), ran
    assert len(ran.err.splitlines()) == 1, ran.err
    return ran.err


def edit(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["replay", "minimize"])
def test_a_finding_that_was_cut_short_is_damaged(kt, finding, command):
    finding.write_text(finding.read_text()[:200])
    assert "is damaged" in refused(kt(command, finding))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["case", "candidate", "verdict", "digests", "schema", "task"])
def test_a_finding_without_a_key_says_which(kt, finding, key):
    edit(finding, lambda data: data.pop(key))
    assert key in refused(kt("replay", finding))


def test_a_digest_of_another_form_is_damage(kt, finding):
    edit(finding, lambda data: data["digests"].update(output="sha1:1234"))
    assert "64 hex digits" in refused(kt("replay", finding))


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("dims", [["M", 3]], "dims M;"),
        ("dims", [["M", 3], ["Q", 111]], "dims M, Q;"),
        ("dims", [["M", -3], ["N", 111]], "negative dim"),
        ("dims", [["M", 10**9], ["N", 10**9]], "1000000000000000000 elements"),
        ("dims", [["M", 1], ["N", 2**27]], "134217728 elements; at most 67108864 are replayed"),
        ("dtype", "float13", "dtype 'float13'"),
        ("layout", "sideways", "layout 'sideways'"),
        ("recipe", "grandmother's", 'recipe "grandmother\'s"'),
        ("absent", ["input"], "'input' cannot be left out"),
        ("literals", [["input", [1.0]]], "1 values of input; expected 4096"),
        ("literals", [["output", [1.0]]], "values of 'output'"),
        ("attributes", [["alpha", 2]], "attribute alpha=2"),
        ("seed", 2**64, "seed 18446744073709551616 is not in"),
        ("domain", "none", "'none' - at `$.case.domain`"),
        ("task", "gelu", "the case is of task 'gelu', the finding of 'relu'"),
    ],
)
def test_a_case_that_the_task_cannot_have_is_damage_and_says_why(kt, finding, key, value, why):
    edit(finding, lambda data: data["case"].update({key: value}))
    assert why in refused(kt("replay", finding))


def test_a_finding_of_an_unknown_task_names_the_nearest(kt, finding):
    def rename(data):
        data["task"] = data["case"]["task"] = "reluu"

    edit(finding, rename)
    assert "nearest: relu" in refused(kt("replay", finding))


def test_a_finding_of_a_newer_version_asks_for_an_upgrade(kt, finding):
    edit(finding, lambda data: data.update(schema=99))
    assert "upgrade kerneltruth" in refused(kt("replay", finding))


def test_a_run_of_a_newer_version_is_not_read(kt, good, failed_run):
    edit(failed_run / "run.json", lambda data: data.update(schema=3, version="9.0"))
    assert "by kerneltruth 9.0" in refused(kt("compare", failed_run, failed_run))
    refused(kt("check", good, "--device", "cpu", "--out", failed_run))


def test_a_run_whose_manifest_is_no_json_is_damaged(kt, failed_run):
    (failed_run / "run.json").write_text("{")
    assert "is damaged" in refused(kt("compare", failed_run, failed_run))


def test_a_torn_last_line_of_results_is_left_out(kt, failed_run):
    with (failed_run / "results.jsonl").open("a") as log:
        log.write('{"key": "half')
    assert kt("compare", failed_run, failed_run).code == 0


def test_a_damaged_line_amid_the_results_is_reported(kt, failed_run):
    log = failed_run / "results.jsonl"
    log.write_text("nonsense\n" + log.read_text())
    assert "line 1 is damaged" in refused(kt("compare", failed_run, failed_run))


def test_a_finding_without_its_run_has_no_source(kt, finding, tmp_path):
    alone = tmp_path / "finding.json"
    alone.write_text(finding.read_text())
    assert "inside their run directory" in refused(kt("replay", alone))


def test_a_source_that_was_edited_is_not_judged_as_the_old_one(kt, finding, failed_run):
    source = next((failed_run / "candidates").iterdir())
    source.write_text(source.read_text() + "\n# better now\n")
    assert "was changed after it was judged" in refused(kt("replay", finding))


def test_inputs_that_differ_stop_the_replay_and_name_the_way_on(kt, finding):
    edit(finding, lambda data: data["digests"]["inputs"].update(input="0" * 64))
    ran = kt("replay", finding, "--device", "cpu", "--json")
    result = json.loads(ran.out)["results"][0]
    assert (ran.code, result["inputs"], result["verdict"]) == (1, "differ", None)
    assert "--from-snapshot" in result["reason"]


def test_a_replay_from_the_stored_inputs_needs_no_seed(kt, finding):
    edit(finding, lambda data: data["digests"]["inputs"].update(input="0" * 64))
    ran = kt("replay", finding, "--device", "cpu", "--from-snapshot", "--json")
    assert (ran.code, json.loads(ran.out)["reproduced"]) == (0, 1)


def test_damaged_stored_inputs_are_reported(kt, finding, failed_run):
    next((failed_run / "inputs").iterdir()).write_bytes(b"junk")
    ran = kt("replay", finding, "--device", "cpu", "--from-snapshot")
    assert "replay without --from-snapshot" in refused(ran)


def test_inputs_that_were_not_stored_are_reported(kt, finding, failed_run):
    next((failed_run / "inputs").iterdir()).unlink()
    ran = kt("replay", finding, "--device", "cpu", "--from-snapshot")
    assert "its inputs were too large to store; replay from the seed" in refused(ran)


def test_other_output_bytes_are_not_reproduced(kt, finding):
    edit(finding, lambda data: data["digests"].update(output="0" * 64))
    ran = kt("replay", finding, "--device", "cpu", "--json")
    result = json.loads(ran.out)["results"][0]
    assert (ran.code, result["output"], result["reproduced"]) == (1, "differ", False)


def test_a_finding_that_does_not_fail_any_more_is_not_minimized(kt, finding):
    ordinary = {"recipe": "uniform", "strategy": "default"}
    edit(finding, lambda data: data["case"].update(ordinary))
    assert "does not fail here" in refused(kt("minimize", finding, "--device", "cpu"))


def test_a_finding_of_a_kernel_that_needs_a_gpu_is_not_minimized_on_a_cpu(kt, finding, failed_run):
    text = "from torch.utils.cpp_extension import load_inline\ndef relu(x): return load_inline(x)\n"
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    (failed_run / "candidates" / f"{sha256}.py").write_text(text)
    edit(finding, lambda data: data["candidate"].update(sha256=sha256))
    ran = kt("minimize", finding, "--device", "cpu")
    assert ran.code == 3
    assert f"{finding} cannot run here: a CUDA source needs a CUDA device" in ran.err


def test_a_script_that_cannot_be_written_is_the_machines_fault(kt, finding):
    ran = kt("minimize", finding, "--device", "cpu", "--script", "/proc/nowhere/x.py")
    assert ran.code == 3
    assert "--script" in ran.err
