"""A corpus in gpuemu's form judged on the command line: `--suite gpuemu:PATH`."""

import json

import pytest
from small_corpus import TRITON, make_corpus, meta

ON_CPU = ("--device", "cpu")


@pytest.fixture
def corpus(tmp_path):
    return make_corpus(tmp_path / "corpus")


@pytest.mark.slow
def test_published_kernels_are_judged_from_their_own_files(kt, corpus, tmp_path):
    given = ("--candidates", corpus, "--suite", f"gpuemu:{corpus}", "--stage", "exe", "--cases", 8)
    ran = kt("run", *given, "--out", tmp_path / "run", "--json", "--workers", 1, *ON_CPU)
    document = json.loads(ran.out)
    found = {c["name"].partition("/")[0]: (c["task"], c["verdict"]) for c in document["candidates"]}
    assert found == {
        "center": ("gpuemu/center", "pass"),
        "center_triton": ("gpuemu/center_triton", "pass"),
        "center_triton_buggy": ("gpuemu/center_triton", "fail"),
        # No control has the name: its reference says whose bug it is.
        "center_llm_buggy": ("gpuemu/center", "fail"),
    }


@pytest.mark.slow
def test_a_kernel_of_triton_that_asks_for_a_gpu_runs_without_one(kt, corpus, tmp_path):
    file = corpus / "gpuemu_corpus" / "data" / "center_triton_buggy" / "kernel.py"
    given = ("--suite", f"gpuemu:{corpus}", "--out", tmp_path / "run", "--json", *ON_CPU)
    document = json.loads(kt("check", file, *given).out)
    assert (document["verdict"], document["candidate"]["language"]) == ("fail", "triton")


@pytest.mark.slow
def test_a_finding_of_a_published_kernel_replays(kt, corpus, tmp_path):
    file = corpus / "gpuemu_corpus" / "data" / "center_llm_buggy" / "kernel.py"
    given = ("--suite", f"gpuemu:{corpus}", "--out", tmp_path / "run", *ON_CPU)
    assert kt("check", file, *given).code == 1
    assert kt("replay", tmp_path / "run", *ON_CPU).code == 0


@pytest.mark.slow
def test_tasks_have_the_sizes_and_dtypes_of_their_schemas(kt, corpus):
    shown = kt("tasks", "center_triton", "--suite", f"gpuemu:{corpus}", "--json")
    (task,) = json.loads(shown.out)["tasks"]
    assert task["dims"] == {
        "B": {"role": "batch", "low": 1, "high": 4},
        "H": {"role": "reduced", "low": 1, "high": 65},
    }
    assert task["dtypes"] == ["float32", "float16"]
    assert task["description"] == "Rows without their mean."
    assert not task["contract"]["obligations"]["values"]["decisive"]


def test_references_are_never_called_wrong(kt, corpus):
    ran = kt("audit", "--suite", f"gpuemu:{corpus}", "--cases", 12, "--json", *ON_CPU)
    assert json.loads(ran.out)["summary"]["good"]


def test_an_ordinary_kernel_for_a_task_of_the_corpus_is_judged(kt, corpus, candidate, tmp_path):
    source = "def center(input):\n    return input - input.mean(-1, keepdim=True)\n"
    given = ("--suite", f"gpuemu:{corpus}", "--task", "center", "--json", *ON_CPU)
    ran = kt("check", candidate(source), *given, "--out", tmp_path / "run", "--cases", 8)
    assert json.loads(ran.out)["verdict"] == "pass"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kernel": "../kernel.py"}, "leads out of the corpus"),
        ({"reference": "nowhere/ref_fp64.py"}, "cannot read 'nowhere/ref_fp64.py'"),
        ({"dtypes": 3}, "Expected `array`, got `int` - at `$.dtypes`"),
        ({"name": "center_triton"}, "names a task twice: 'center_triton'"),
    ],
)
def test_a_wrong_file_of_the_corpus_gets_one_line(kt, corpus, changed, said):
    file = corpus / "gpuemu_corpus" / "data" / "center" / "meta.json"
    file.write_text(json.dumps(meta("center", "center") | changed))
    ran = kt("tasks", "--suite", f"gpuemu:{corpus}")
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_a_folder_without_kernels_gets_one_line(kt, tmp_path):
    ran = kt("tasks", "--suite", f"gpuemu:{tmp_path}")
    assert ran.code == 2
    assert "name a checkout of gpuemu-corpus" in ran.err


@pytest.mark.slow
def test_a_reference_that_fails_is_said(kt, corpus, tmp_path):
    (corpus / "gpuemu_corpus" / "data" / "center" / "ref_fp64.py").write_text("raise KeyError(1)")
    ran = kt("tasks", "center", "--suite", f"gpuemu:{corpus}", "--json")
    (task,) = json.loads(ran.out)["tasks"]
    assert task["unrefereeable"] == "the reference fails: KeyError: 1"


def test_the_corpus_kernels_of_the_test_differ_in_one_place():
    assert TRITON.count("/ n\n") == 1
