"""Submissions of every form, and files that are none."""

import json
import os

import pytest

from kerneltruth.documents.lines import Labels
from kerneltruth.errors import UserError
from kerneltruth.suites.lines import json_lines
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.recognize import for_own
from kerneltruth.suites.submission import Broken, Submission

CODE = "def relu(x): return x\n"


def write_lines(path, *lines):
    path.write_bytes(
        b"".join((x if isinstance(x, bytes) else json.dumps(x).encode()) + b"\n" for x in lines)
    )
    return path


def test_a_kernelbenchx_line_names_its_task_by_its_file(tmp_path):
    path = write_lines(
        tmp_path / "a.jsonl",
        {
            "predict": f"```python\n{CODE}```",
            "file": "Activation/relu.py",
            "model": "m",
            "sample": 2,
        },
    )
    (got,) = read_submissions(path)
    assert got == Submission(
        origin="a.jsonl:1", name="relu", source=CODE, labels=Labels(model="m", sample=2)
    )


@pytest.mark.parametrize("entry", ["relu(", "def relu(", "`def relu("])
def test_a_tritonbench_line_names_its_task_in_its_instruction(tmp_path, entry):
    line = {
        "instruction": f"Write Triton.\nWrapper Entry Information: {entry}input, inplace=False)",
        "predict": CODE,
        "label": "import torch",
    }
    (got,) = read_submissions(write_lines(tmp_path / "a.jsonl", line))
    assert (got.name, got.source) == ("relu", CODE)


def test_a_broken_line_is_reported_by_number_and_the_rest_is_read(tmp_path):
    good = {"predict": CODE, "file": "relu.py"}
    path = write_lines(
        tmp_path / "a.jsonl",
        good,
        b"{not json",
        b"",
        b'{"predict": "\xff\xfe"}',
        [1],
        {"file": "relu.py"},
        {"predict": CODE},
        {"predict": 5, "file": "relu.py"},
        good,
    )
    got = list(read_submissions(path))
    assert [type(g) for g in got] == [Submission, *[Broken] * 6, Submission]
    assert [g.origin for g in got] == [f"a.jsonl:{n}" for n in (1, 2, 4, 5, 6, 7, 8, 9)]
    reasons = [g.reason for g in got if isinstance(g, Broken)]
    for reason, word in zip(
        reasons, ("not JSON", "not UTF-8", "list", "no answer", "no task", "no answer"), strict=True
    ):
        assert word in reason


@pytest.mark.slow
def test_a_source_of_a_hundred_megabytes_is_refused_without_being_parsed(tmp_path):
    (tmp_path / "relu.py").write_bytes(b"#" * (100 * 2**20))
    write_lines(
        tmp_path / "b.jsonl",
        b'{"predict": "' + b"#" * (100 * 2**20) + b'"}',
        {"predict": CODE, "file": "x.py"},
    )
    big_line, good, big_file = read_submissions(tmp_path)
    assert "more than 4194304 bytes" in big_file.reason
    assert "longer than" in big_line.reason
    assert good.name == "x"


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "relu.py").write_text("def relu(x): return x")
    assert [s.name for s in read_submissions(tmp_path)] == ["relu"]


def test_a_folder_is_read_in_the_order_of_names_below_categories_too(tmp_path):
    for name in ("Fusion/attention.py", "Activation/relu.py", "gelu.py", "__init__.py", ".x.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(CODE)
    names = [s.name for s in read_submissions(tmp_path)]
    assert names == ["relu", "attention", "gelu"]


def test_a_kernelbench_run_brings_the_peers_own_verdict(tmp_path):
    run = tmp_path / "my-run"
    run.mkdir()
    for sample in (0, 1):
        (run / f"level_1_problem_12_sample_{sample}_kernel.py").write_text(CODE)
    (run / "level_1_problem_3_sample_0_kernel.py").write_text(CODE)
    (run / "eval_results.json").write_text(
        json.dumps(
            {
                "12": [
                    {"sample_id": 1, "compiled": True, "correctness": False, "runtime": -1},
                    {"sample_id": 0, "compiled": True, "correctness": True, "runtime": 1.5},
                ],
                "3": {"compiled": False, "correctness": False},
            }
        )
    )
    got = list(read_submissions(tmp_path))
    assert [(s.name, s.labels.sample) for s in got] == [
        ("level1/3", 0),
        ("level1/12", 0),
        ("level1/12", 1),
    ]
    assert {s.labels.model for s in got} == {"my-run"}
    assert [s.peer.correct for s in got] == [False, True, False]
    assert [s.peer.runtime_ms for s in got] == [None, 1.5, None]


def test_a_kernelbench_submission_file_holds_sources_by_name(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(
        json.dumps(
            {
                "metadata": {"model": "m"},
                "kernels": {"level_2_problem_7_sample_0": CODE, "level_x": CODE},
            }
        )
    )
    good, bad = read_submissions(path)
    assert (good.name, good.labels.model) == ("level2/7", "m")
    assert bad.origin == "s.json:level_x"


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"kernels": []}'])
def test_another_json_file_is_reported_and_costs_nothing_else(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "relu.py").write_text(CODE)
    broken, good = read_submissions(tmp_path)
    assert isinstance(broken, Broken)
    assert good.name == "relu"


def test_a_file_in_another_encoding_is_reported(tmp_path):
    (tmp_path / "relu.py").write_bytes("# Größe\n".encode("utf-16"))
    (broken,) = read_submissions(tmp_path)
    assert "UTF-8" in broken.reason


def test_a_path_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        list(read_submissions(tmp_path / "nothing"))


def test_a_list_that_cannot_be_read_is_one_line(tmp_path):
    # It opens for nobody: a link that leads to itself.
    (tmp_path / "answers.jsonl").symlink_to("answers.jsonl")
    with pytest.raises(UserError, match=r"^cannot read .*answers.jsonl: Too many .*; name a read"):
        list(json_lines(tmp_path / "answers.jsonl", "answers.jsonl"))


def test_an_entry_that_a_file_of_ones_own_lacks_is_named():
    with pytest.raises(UserError, match=r"^a.py defines no 'gelu'; define it, or .* by --entry$"):
        for_own("def relu(x): return x\ndef run(x): return x\n", "a.py", "relu", "gelu")


def test_links_back_to_a_folder_are_not_followed(tmp_path):
    (tmp_path / "relu.py").write_text(CODE)
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(".")
    assert [got.origin for got in read_submissions(tmp_path)] == ["relu.py"]
