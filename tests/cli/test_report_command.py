"""`report`: a page of real runs, and what it says of mistakes."""

import json
import shutil
import subprocess
import sys

import pytest


@pytest.fixture
def page(kt, failed_run, tmp_path):
    """The page of a run with one finding."""
    out = tmp_path / "page.html"
    ran = kt("report", failed_run, "-o", out)
    assert ran.code == 0, ran.err
    return out.read_text()


def test_a_page_is_written_and_named(kt, failed_run, tmp_path):
    out = tmp_path / "page.html"
    ran = kt("report", failed_run, "-o", out)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1].startswith(f"report: {out} (")
    assert out.read_text().startswith("<!doctype html>")


def test_json_is_one_document(kt, failed_run, tmp_path):
    out = tmp_path / "page.html"
    ran = kt("report", failed_run, "--out", out, "--json", "--title", "a title")
    document = json.loads(ran.out)
    assert document["schema"] == 1
    assert document["out"] == str(out)
    assert document["bytes"] == out.stat().st_size
    assert document["title"] == "a title"
    assert (document["attempts"], document["findings"], document["kind"]) == (1, 1, "report")


def test_the_leaderboard_is_a_page_too(kt, failed_run, tmp_path):
    out = tmp_path / "page.html"
    ran = kt("report", "--leaderboard", failed_run, "-o", out, "--json")
    assert json.loads(ran.out)["kind"] == "leaderboard"
    assert 'id="leaderboard"' in out.read_text()


def test_an_old_page_is_replaced(kt, failed_run, tmp_path):
    out = tmp_path / "page.html"
    out.write_text("old")
    assert kt("report", failed_run, "-o", out).code == 0
    assert "old" not in out.read_text()[:100]
    assert [p.name for p in tmp_path.glob(".page*")] == []


def test_the_page_names_the_run_and_the_kernel(page, failed_run):
    assert str(failed_run) in page.replace("<wbr>", "")
    assert "relu" in page


def test_a_damaged_finding_is_noted_and_the_rest_is_shown(kt, failed_run, finding, tmp_path):
    finding.write_text("{")
    ran = kt("report", failed_run, "-o", tmp_path / "page.html")
    assert ran.code == 0
    assert f"note: {finding} is damaged" in ran.out


def test_a_missing_source_is_noted(kt, failed_run, tmp_path):
    for source in (failed_run / "candidates").iterdir():
        source.unlink()
    ran = kt("report", failed_run, "-o", tmp_path / "page.html")
    assert ran.code == 0
    assert "note: 1 sources are not in their runs' folders `candidates`" in ran.out


def test_a_finding_that_is_named_outside_its_run_is_not_read(kt, failed_run, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text('{"key": "a-secret"}')
    results = failed_run / "results.jsonl"
    line = json.loads(results.read_text())
    line["finding"] = "findings/../../../secret.json"
    line["attempt"]["candidate"]["sha256"] = "../../secret"
    results.write_text(json.dumps(line) + "\n")
    out = tmp_path / "page.html"
    assert kt("report", failed_run, "-o", out).code == 0
    assert "a-secret" not in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("{run}/nowhere",), "is not a run"),
        (("{run}", "{run}"), "is named twice"),
        (("{run}", "-o", "{run}"), "it is a folder; name a file"),
        (("{run}", "-o", "{run}/no/page.html"), "there is no folder"),
        (("{run}", "--keep", "first"), "--keep first: must be best or last"),
    ],
)
def test_a_mistake_is_answered_in_one_line(kt, failed_run, arguments, said):
    ran = kt("report", *(a.format(run=failed_run) for a in arguments))
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_a_page_that_cannot_be_written_is_the_machines_fault(kt, failed_run):
    ran = kt("report", failed_run, "-o", "/proc/page.html")
    assert ran.code == 3
    assert "cannot write /proc/page.html" in ran.err


def test_neither_torch_nor_triton_is_imported(environment, failed_run, tmp_path):
    code = (
        "import sys\n"
        "from kerneltruth import cli\n"
        "code = cli.invoke(sys.argv[1:])\n"
        "print({'torch', 'triton'} & set(sys.modules), file=sys.stderr)\n"
        "sys.exit(code)"
    )
    out = tmp_path / "page.html"
    ran = subprocess.run(
        [sys.executable, "-c", code, "report", str(failed_run), "-o", str(out)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stderr.strip() == "set()"
    assert out.exists()


def test_runs_set_side_by_side_need_two(kt, failed_run, tmp_path):
    ran = kt("report", "--compare", failed_run, "-o", tmp_path / "page.html")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "kerneltruth: --compare takes two or more runs, got 1; name another run\n"
    assert not (tmp_path / "page.html").exists()
    again = shutil.copytree(failed_run, tmp_path / "again")
    ran = kt("report", "--compare", failed_run, again, "-o", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    assert "Kernels in every run: 1; " in (tmp_path / "page.html").read_text()
