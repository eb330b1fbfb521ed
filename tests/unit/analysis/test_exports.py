"""Tables for other programs, and how to cite a suite."""

import csv
import sys

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from results_for_tests import result, run_info, study, timed

from kerneltruth.analysis.exports import bibtex, columns, write_csv, write_parquet
from kerneltruth.analysis.logistic import MissingPackage
from kerneltruth.analysis.reading import study_of
from kerneltruth.analysis.results import TORCH_ONLY, Obliged, Rates, TimedShape, timing
from kerneltruth.errors import EnvironmentFault

HOSTILE = 'a,"b"\n<script>\x1b[31m;=1+1 \ud800'


@pytest.fixture
def small_study():
    return study(
        result("a", timing=timed(2.0, width=0.1, compile=(0.5,)), checks={"kb": "pass"}),
        result("b", "fail", origin=HOSTILE, kind="nan", number=1),
        result("c", method="refine", round=0, number=2),
        result("c", method="refine", round=1, number=3),
    )


def test_every_attempt_is_a_row_and_what_was_not_measured_is_none(small_study):
    table = columns(small_study)
    assert {len(column) for column in table.values()} == {4}
    assert table["speedup_eager"] == [pytest.approx(2.0), None, None, None]
    assert table["speedup_compile"][0] == pytest.approx(0.5)
    assert table["check_kb"] == ["pass", None, None, None]
    assert table["answer"] == [True, True, False, True]
    assert table["kind"] == [None, "nan", None, None]


def test_each_obligation_has_a_column_of_outcomes_and_one_of_cases(tmp_path):
    profile = {
        "specials": Obliged("broken", promised=False, decisive=False, cases=2),
        "dtypes.float16": Obliged("not_tried"),
        "published": Obliged("held", cases=3),
    }
    table = columns(study(result("a", profile=profile, contract="core"), result("b", "fail")))
    assert [name for name in table if name.startswith(("obligation_", "held_"))] == [
        *("obligation_published", "held_published"),
        *("obligation_dtypes.float16", "held_dtypes.float16"),
        *("obligation_specials", "held_specials"),
    ]
    assert table["obligation_specials"] == ["broken", None]
    assert table["held_published"] == [3, None]
    assert table["contract"] == ["core", None]
    write_parquet(table, tmp_path / "all.parquet")
    read = pq.read_table(tmp_path / "all.parquet")
    assert str(read.schema.field("held_specials").type) == "int64"


def test_scores_and_own_shares_have_columns_of_numbers(tmp_path):
    looked_at = replace(timed(2.0), own_time=0.25)
    known = result("a", contract="core", score=0.75, own=0.5, launches=4, timing=looked_at)
    table = columns(study(known, result("b", "fail")))
    assert [table[name] for name in ("score", "own", "launches", "own_time")] == [
        [0.75, None],
        [0.5, None],
        [4, None],
        [0.25, None],
    ]
    write_parquet(table, tmp_path / "all.parquet")
    read = pq.read_table(tmp_path / "all.parquet").schema
    assert [str(read.field(n).type) for n in ("score", "launches", "own_time")] == [
        *("double", "int64", "double"),
    ]


def test_rates_have_columns_of_numbers_where_they_are_known(tmp_path):
    rates = [Rates(n * 1e12, 0.0, n / 4, None) for n in (1, 4)]
    shapes = [TimedShape("", None, 1.0, None, None, {}, rates=own) for own in rates]
    known, wrong = result("a", timing=timing(shapes)), result("b", "fail", timing=timing(shapes))
    table = columns(study(known, wrong, result("c", timing=timed(2.0))))
    assert table["bytes_per_s"] == [pytest.approx(2e12), None, None]
    assert table["memory_share"] == [pytest.approx(0.5), None, None]
    assert table["flops_per_s"] == table["compute_share"] == [None, None, None]
    write_parquet(table, tmp_path / "all.parquet")
    read = pq.read_table(tmp_path / "all.parquet").schema
    assert str(read.field("compute_share").type) == str(read.field("bytes_per_s").type) == "double"


def test_a_torch_only_answer_is_marked_in_its_row():
    table = columns(study(result("a", language=TORCH_ONLY), result("b")))
    assert table["language"] == ["torch-only", "triton"]


def test_csv_is_read_back_as_it_was(small_study, tmp_path):
    path = tmp_path / "all.csv"
    write_csv(columns(small_study), path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["task"] for row in rows] == ["a", "b", "c", "c"]
    assert rows[1]["origin"] == HOSTILE.replace("\ud800", "\\ud800")
    assert (rows[0]["answer"], rows[2]["answer"]) == ("true", "false")
    assert float(rows[0]["speedup_eager"]) == pytest.approx(2.0)
    assert rows[1]["speedup_eager"] == ""


def test_parquet_has_the_same_columns_with_types(small_study, tmp_path):
    path = tmp_path / "all.parquet"
    write_parquet(columns(small_study), path)
    table = pq.read_table(path)
    expected = columns(small_study)
    assert table.column_names == list(expected)
    types = {name: str(table.schema.field(name).type) for name in table.column_names}
    assert (types["answer"], types["round"], types["speedup_eager"], types["task"]) == (
        "bool",
        "int64",
        "double",
        "string",
    )
    assert table["speedup_eager"].to_pylist() == expected["speedup_eager"]
    assert table["round"].to_pylist() == [None, None, 0, 1]


def test_a_study_of_nothing_is_a_head_line(tmp_path):
    write_csv(columns(study()), tmp_path / "none.csv")
    assert (tmp_path / "none.csv").read_text().startswith("run,device,distinct,answer,suite,task")
    write_parquet(columns(study()), tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_without_pyarrow_it_says_how_to_install_it(small_study, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pyarrow")] + ["pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackage, match=r"pip install 'kerneltruth\[study\]'"):
        write_parquet(columns(small_study), tmp_path / "all.parquet")
    assert not (tmp_path / "all.parquet").exists()


def test_a_file_that_cannot_be_written_is_the_machines_fault(small_study, tmp_path):
    with pytest.raises(EnvironmentFault, match="cannot write"):
        write_csv(columns(small_study), tmp_path / "no" / "such.csv")


def test_a_suite_is_cited_by_version_and_hash():
    about = run_info(suite_hash="ab12" * 16, started="2026-03-04T00:00:00+00:00")
    text = bibtex(study_of([about], [result("kernelbenchx/relu")]))
    assert text.startswith("@misc{kerneltruth-kernelbenchx-0.1.0-ab12ab12,\n")
    assert "  year = {2026},\n  month = {03},\n" in text
    assert "ab12" * 16 in text
    assert text.count("{") == text.count("}")


def test_each_version_of_a_suite_has_an_entry():
    runs = [run_info(), run_info(version="0.2.0"), run_info()]
    results = [result("a", run=n) for n in range(3)] + [result("kernelbenchx/a", run=0)]
    assert bibtex(study_of(runs, results)).count("@misc{") == 3


def test_a_name_does_nothing_to_latex():
    text = bibtex(study_of([run_info()], [result("50%_$\\{x}/relu")]))
    assert r"50\%\_\$\textbackslash{}\{x\}" in text
    assert "@misc{kerneltruth-50-x--0.1.0-00000000,\n" in text
