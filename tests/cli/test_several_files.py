"""`check` of several files, of folders, and of what is piped into it."""

import io
import json
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from kerneltruth.runs.store import RunStore

CHECK = ("check", "--device", "cpu", "--cases", "3", "--timeout", "5")
RIGHT = "import torch\ndef relu(x):\n    return torch.relu(x)\n"
WRONG = "import torch\ndef relu(x):\n    return x.clamp(min=0.5)\n"
CUDA = (
    "from torch.utils.cpp_extension import load_inline\n"
    "def relu(x):\n"
    "    return load_inline('m', '', cuda_sources='__global__ void k() {}').f(x)\n"
)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pipe(monkeypatch):
    """Put bytes on the standard input."""

    def put(data):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))

    return put


def one_line(ran):
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    return line


def test_each_file_has_its_verdict_and_the_last_line_counts_them(kt, candidate):
    candidate(RIGHT, "right.py")
    candidate(WRONG, "wrong.py")
    candidate(CUDA, "cuda.py")
    candidate("x = 1\n", "none.py")
    ran = kt(*CHECK, "wrong.py", "none.py", "cuda.py", "right.py")

    assert ran.code == 2
    blocks = ran.out.split("\n\n")
    assert [block.split("\n")[0].partition(":")[0] for block in blocks[:-1]] == [
        *("wrong.py", "none.py", "cuda.py", "right.py"),
    ]
    assert "verdict    fail (value)" in blocks[0]
    assert blocks[1].startswith("none.py: refused: none.py has no entry")
    assert blocks[-1].startswith("1 passed, 1 failed, 1 not judged, 1 refused in ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "code"),
    [
        (("right", "right2"), 0),
        (("right", "cuda"), 3),
        (("cuda", "wrong"), 1),
        (("wrong", "none", "cuda"), 2),
    ],
)
def test_the_exit_code_is_that_of_the_worst(kt, candidate, names, code):
    texts = {"right": RIGHT, "right2": RIGHT, "wrong": WRONG, "cuda": CUDA, "none": "x = 1\n"}
    files = [candidate(texts[name], f"{name}.py") for name in names]

    assert kt(*CHECK, *files).code == code


def test_json_is_one_document_with_the_document_of_each_file(kt, candidate):
    candidate(RIGHT, "right.py")
    candidate(WRONG, "wrong.py")
    ran = kt(*CHECK, "right.py", "missing.py", "wrong.py", "--json")

    found = json.loads(ran.out)
    assert [each["candidate"]["path"] for each in found["checks"]] == ["right.py", "wrong.py"]
    assert [each["verdict"] for each in found["checks"]] == ["pass", "fail"]
    assert found["refused"] == [
        {
            "path": "missing.py",
            "reason": "cannot read 'missing.py': there is no such file; name a Python file",
        }
    ]
    assert found["counts"] == {"passed": 1, "failed": 1, "not_judged": 0, "refused": 1}
    alone = json.loads(kt(*CHECK, "right.py", "--json").out)
    differing = {key for key, value in alone.items() if found["checks"][0][key] != value}
    assert differing <= {"seconds", "run"}


def test_a_folder_stands_for_the_kernels_below_it(kt, tmp_path):
    for name in (
        "a/one.py",
        "a/__init__.py",
        "a/.hidden/two.py",
        "b/one.py",
        "run/candidates/c.py",
        "b/test_one.py",
    ):
        (tmp_path / "k" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "k" / name).write_text(RIGHT)
    (tmp_path / "k" / "run" / "run.json").touch()
    found = json.loads(kt(*CHECK, "k", "--json").out)

    assert [each["candidate"]["path"] for each in found["checks"]] == ["k/a/one.py", "k/b/one.py"]
    assert found["refused"] == []


def test_a_reference_in_the_folder_is_no_candidate_and_is_learned_once(kt, tmp_path):
    (tmp_path / "k").mkdir()
    for name in ("one", "two"):
        (tmp_path / "k" / f"{name}.py").write_text(RIGHT)
    (tmp_path / "k" / "ref.py").write_text(
        RIGHT + "def inputs():\n    return (torch.randn(4, 8),)\n"
    )
    ran = kt(*CHECK, "k", "--reference", "k/ref.py")

    assert ran.out.split("\n\n")[-1].startswith("2 passed in ")
    assert ran.err.count("learned relu(") == 1


def test_one_run_holds_them_all_and_goes_on_where_it_stopped(kt, candidate, tmp_path):
    for name in ("a.py", "b.py"):
        candidate(WRONG, name)
    first = kt(*CHECK, "a.py", "b.py", "--out", "run", "--json")
    with RunStore.open(tmp_path / "run", keep=dict) as store:
        assert [line["key"] for line in store.results()] == ["a.py", "b.py"]
    again = kt(*CHECK, "a.py", "b.py", "--out", "run", "--json")

    said, repeated = json.loads(first.out), json.loads(again.out)
    assert (first.code, again.code) == (1, 1)
    assert [c["finding"] for c in said["checks"]] == [c["finding"] for c in repeated["checks"]]
    assert len(kt("replay", "run", "--device", "cpu").out.splitlines()) >= 2


def test_standard_input_is_a_file_among_others_or_alone(kt, candidate, pipe):
    candidate(RIGHT, "right.py")
    pipe(WRONG.encode())
    both = json.loads(kt(*CHECK, "right.py", "-", "--json").out)
    pipe(b"\xef\xbb\xbf" + WRONG.encode())
    alone = json.loads(kt(*CHECK, "-", "--json").out)

    assert [each["candidate"]["path"] for each in both["checks"]] == ["right.py", "<stdin>"]
    assert (alone["verdict"], alone["candidate"]["path"]) == ("fail", "<stdin>")


@pytest.mark.parametrize(
    ("data", "said"), [(b" \n", "standard input is empty"), (b"\xff\xfe", "byte 0 is not UTF-8")]
)
def test_a_bad_standard_input_is_one_line(kt, pipe, data, said):
    pipe(data)

    assert said in one_line(kt(*CHECK, "-"))


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing.py", "missing.py: refused: cannot read 'missing.py': there is no such file"),
        ("empty", "empty: refused: the folder has no Python files; name one that has"),
        ("binary.py", "binary.py: refused: 'binary.py' is not text: byte 0 is not UTF-8"),
        ("right.py", "right.py: refused: it is named twice; name it once"),
        ("./right.py", "right.py: refused: it is named twice; name it once"),
    ],
)
def test_a_bad_path_is_one_line_and_the_others_are_judged(kt, candidate, tmp_path, path, said):
    candidate(RIGHT, "right.py")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").mkdir()
    ran = kt(*CHECK, "right.py", path)

    assert ran.code == 2
    passed, refused, counts = ran.out.split("\n\n")
    assert "verdict    pass" in passed
    assert refused.startswith(said)
    assert "\n" not in refused
    assert counts.startswith("1 passed, 1 refused in ")


def test_what_is_wrong_with_every_file_is_said_once(kt, candidate):
    candidate(RIGHT, "right.py")
    candidate(WRONG, "wrong.py")

    assert "unknown task 'rleu'" in one_line(kt(*CHECK, "right.py", "wrong.py", "--task", "rleu"))


def test_junit_has_every_file(kt, candidate, tmp_path):
    candidate(RIGHT, "right.py")
    candidate(WRONG, "wrong.py")
    kt(*CHECK, "right.py", "missing.py", "wrong.py", "--junit", "found.xml")

    suite = ET.parse(tmp_path / "found.xml").getroot()[0]
    assert {case.get("name"): case[-1].tag for case in suite} == {
        "right.py": "system-out",
        "wrong.py": "system-out",
        "missing.py": "error",
    }
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
