"""A data set of FlashInfer-Bench judged on the command line: definitions, solutions, traces."""

import json

import pytest

from flashinfer_data import TRITON_WRITES

REFERENCE = """
import torch

def run(x, scale):
    wide = x.to(torch.float32)
    power = wide.square().mean(-1, keepdim=True)
    return (wide / torch.sqrt(power + 1e-5) * scale.to(torch.float32)).to(x.dtype)
"""
ARGUMENTS = ("--device", "cpu", "--cases", "3", "--stage", "exe", "--workers", 1)


def definition(name, reference=REFERENCE):
    half = {"dtype": "bfloat16"}
    return {
        "name": name,
        "op_type": "rmsnorm",
        "axes": {"rows": {"type": "var"}, "width": {"type": "const", "value": 96}},
        "inputs": {
            "x": {"shape": ["rows", "width"], **half},
            "scale": {"shape": ["width"], **half},
        },
        "outputs": {"y": {"shape": ["rows", "width"], **half}},
        "reference": reference,
    }


def solution(name, source, of="rms_w96"):
    return {
        "name": name,
        "definition": of,
        "author": "ann",
        "spec": {"language": "triton", "target_hardware": ["any"], "entry_point": "main.py::run"},
        "sources": [{"path": "main.py", "content": source}],
    }


@pytest.fixture
def data_set(tmp_path):
    """A right and a wrong kernel that write their outputs, and a definition that cannot be judged
    on.
    """
    root = tmp_path / "data"
    random = "import torch\ndef run(x, scale):\n    return torch.rand_like(x)\n"
    objects = {
        "definitions/rms.json": definition("rms_w96"),
        "definitions/random.json": definition("random", random),
        "definitions/torn.json": {"name": "torn"},
        "solutions/right.json": solution("right", TRITON_WRITES),
        "solutions/short.json": solution("short", TRITON_WRITES.replace("(x.shape[0],)", "(1,)")),
        "solutions/chance.json": solution("chance", TRITON_WRITES, of="random"),
        "traces/rms.jsonl": {
            "definition": "rms_w96",
            "solution": "short",
            "workload": {},
            "evaluation": {"status": "PASSED", "performance": None},
        },
    }
    for place, content in objects.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return root


@pytest.mark.slow
def test_solutions_are_judged_on_their_definitions(kt, data_set, tmp_path):
    run = tmp_path / "run"
    suite = ("--suite", f"flashinfer:{data_set}")
    given = ("--candidates", data_set / "solutions", "--out", run)
    ran = kt("run", *suite, *given, "--peer-checks", "--json", *ARGUMENTS)
    assert ran.code in (0, 1), ran.err
    document = json.loads(ran.out)
    lines = [json.loads(raw) for raw in (run / "results.jsonl").read_text().splitlines()]
    outcomes = {line["origin"]: line["stages"]["exe"]["outcome"] for line in lines}
    assert outcomes == {
        "right.json": "pass",
        "short.json": "fail",
        "chance.json": "unrefereeable",
    }
    checked = {line["origin"]: line["peer_checks"] for line in lines if "peer_checks" in line}
    # At the sizes of the data set's workloads.
    assert checked["right.json"]["flashinfer-bench"]["verdict"] == "pass"
    assert checked["short.json"]["flashinfer-bench"]["verdict"] == "fail"
    short = next(line for line in lines if line["origin"] == "short.json")
    assert short["stages"]["exe"]["kind"] == "uninitialized"
    assert short["labels"]["model"] == "ann"
    assert (short["peer"]["check"], short["peer"]["correct"]) == ("flashinfer-bench", True)
    assert [b["where"] for b in document["broken"]] == ["definitions/torn.json"]

    replayed = kt("replay", run, "--device", "cpu", "--json")
    assert replayed.code == 0, replayed.err
    assert [r["reproduced"] for r in json.loads(replayed.out)["results"]] == [True]


def test_a_data_set_that_is_not_there_is_one_line(kt, tmp_path):
    ran = kt("run", "--suite", f"flashinfer:{tmp_path}", "--candidates", tmp_path, *ARGUMENTS)
    assert ran.code == 2
    assert "no folder 'definitions' there" in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_solution_is_timed_against_the_definitions_own_reference(kt, data_set, tmp_path):
    source = tmp_path / "own.py"
    source.write_text(f"{REFERENCE}\n\nsolution_of_rms_w96 = run\n")
    about = ("--suite", f"flashinfer:{data_set}", "--task", "flashinfer/rms_w96")
    how = ("--against", "eager", "--budget", "0", "--device", "cpu", "--json")
    ran = kt("time", source, *about, *how)
    assert ran.code == 0, ran.err
    (shape,) = json.loads(ran.out)["shapes"]
    assert shape["graded"]["wrong"] == []
    # The last ones of some batches, and others among them.
    assert shape["graded"]["calls"] > 8
    assert shape["baselines"]["eager"]["ratio"] > 0


def test_a_definition_that_nothing_can_be_judged_on_is_not_timed(kt, data_set, tmp_path):
    source = tmp_path / "own.py"
    source.write_text("def run(x):\n    return x\n")
    ran = kt("time", source, "--suite", f"flashinfer:{data_set}", "--task", "flashinfer/random")
    assert ran.code == 3
    assert "no candidate of flashinfer/random can be judged, so none is timed: " in ran.err
    assert len(ran.err.strip().splitlines()) == 1
