"""`time` as users call it, on the CPU; no time is asserted."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from kerneltruth.clock.comparison import HOST_NOISE
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.schedule import timed_cases
from kerneltruth.documents.model import dumps, parse
from kerneltruth.documents.schema import DOCUMENTS
from kerneltruth.engine.benchmark.timed_file import time_file
from kerneltruth.engine.requests import TimeRequest
from kerneltruth.errors import EnvironmentFault, UserError

SOFTMAX = "import torch\ndef softmax(input, dim=-1):\n    return torch.softmax(input, dim)\n"
NUMPY = "import numpy as np\ndef relu(input, inplace=False):\n    return np.maximum(input, 0)\n"
TRITON = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, at < n)
    tl.store(out + at, tl.maximum(v, 0), at < n)

def relu(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), 64)
    return out
"""
TASK = ("--task", "softmax", "--suite", "kernelbenchx", "--device", "cpu")
QUICK = (*TASK, "--against", "eager", "--budget", "0", "--seed", "5")


@pytest.fixture(autouse=True)
def _small_shapes(monkeypatch):
    """Shapes and batches for a test: published ones take seconds on a CPU."""
    monkeypatch.setattr(timed_cases, "MOST_ELEMENTS", 10_000)
    monkeypatch.setattr(
        "kerneltruth.engine.benchmark.timed_file.Effort",
        lambda **given: Effort(
            batch_s=1e-4,
            graph_batch_s=3e-4,
            blocks=(6, 6),
            memory_bytes=2**18,
            **given | {"deadline_s": 120.0},
        ),
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def softmax(candidate):
    return candidate(SOFTMAX, "softmax.py")


def mistake(ran, code=2):
    """The one line that refuses."""
    assert (ran.code, ran.out) == (code, ""), ran
    lines = [line for line in ran.err.splitlines() if line]
    assert len(lines) == 1, ran.err
    assert "Traceback" not in ran.err
    return lines[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--task", "softmaxx"), "nearest: kernelbenchx/softmax"),
        (("--task", "softmax", "--suite", "odd"), "must be"),
        (("--against", "eagre"), "--against 'eagre': must be one of eager, compile"),
        (("--against", "control"), "--against control: the corpus's kernels are Triton"),
        (("--dtype", "fp13"), "--dtype 'fp13': softmax has"),
        (("--dtype", "int8"), "--dtype 'int8': softmax has"),
        (("--budget", "-1"), "--budget"),
        (("--budget", "soon"), "--budget"),
        (("--seed", "-1"), "--seed"),
        (("--timeout", "0"), "--timeout"),
        (("--timeout", "inf"), "--timeout"),
        (("--timeout", "1e10"), "--timeout"),
        (("--device", "tpu"), "must be auto, cpu, cuda or cuda:N"),
        (("--device", "cuda:all"), "name one device here, such as cuda:0"),
        (("another.py",), "another.py"),
    ],
)
def test_a_wrong_option_is_the_users_mistake(kt, softmax, options, says):
    assert says in mistake(kt("time", softmax, *TASK, *options))


def test_a_file_that_is_not_there_is_named(kt, tmp_path):
    said = mistake(kt("time", tmp_path / "nowhere.py", *TASK))
    assert "nowhere.py" in said
    assert "there is no such file" in said


def test_a_directory_is_no_file(kt, tmp_path):
    assert "is a directory" in mistake(kt("time", tmp_path, *TASK))


def test_a_missing_device_is_the_machines_fault(kt, softmax):
    ran = kt("time", softmax, "--task", "softmax", "--device", "cuda")
    assert "see `kerneltruth doctor`" in mistake(ran, code=3)


def test_a_triton_kernel_is_not_timed_without_a_gpu(kt, candidate):
    ran = kt("time", candidate(TRITON, "relu.py"), "--device", "cpu")
    said = mistake(ran, code=3)
    assert "is a triton kernel, and without a GPU none is timed" in said


def test_out_that_cannot_be_written_is_the_machines_fault(kt, softmax):
    ran = kt("time", softmax, *QUICK, "--out", "/proc/nowhere")
    assert ran.code == 3
    assert "--out /proc/nowhere: cannot be written" in ran.err
    assert "Traceback" not in ran.err


@pytest.fixture(scope="module")
def first_run():
    return {}


@pytest.fixture
def document(kt, softmax, first_run, tmp_path):
    """The document of a right candidate, made once."""
    if not first_run:
        ran = kt("time", softmax, *QUICK, "--json", "--out", tmp_path / "out")
        assert ran.code in (0, 1), ran
        first_run["printed"] = json.loads(ran.out)
        first_run["written"] = json.loads((tmp_path / "out" / "time.json").read_text())
        first_run["code"] = ran.code
    return first_run["printed"]


def test_json_is_one_document_with_the_contracts_keys(document):
    assert document["schema"] == 1
    assert document["task"] == "kernelbenchx/softmax"
    assert isinstance(document["device"], str)
    assert document["noise_floor"] == HOST_NOISE
    assert document["compile_s"] >= 0
    assert isinstance(document["peak_bytes"], int)
    assert document["shapes"]
    for shape in document["shapes"]:
        assert shape["case"]["task"] == "kernelbenchx/softmax"
        assert shape["candidate_us"] > 0
        assert set(shape["baselines"]) == {"eager"}
        assert {"us", "ratio", "low", "high", "outcome"} <= set(shape["baselines"]["eager"])
        assert shape["baselines"]["eager"]["outcome"] in ("faster", "tie", "slower")
        assert (shape["efficiency"], shape["bound_by"]) == (None, None)
        assert isinstance(shape["flags"], list)


def test_the_document_names_candidate_and_environment(document):
    assert document["candidate"]["entry"] == "softmax"
    assert len(document["candidate"]["sha256"]) == 64
    assert document["environment"]["torch"]


def test_the_document_says_when_it_was_timed(document):
    age = datetime.now(UTC) - datetime.fromisoformat(document["started"])
    assert timedelta() <= age < timedelta(hours=1)


def test_what_is_written_is_what_is_printed(document, first_run):
    assert first_run["written"] == document


def test_what_time_has_written_is_a_dated_record_of_its_baselines(
    kt, document, first_run, tmp_path
):
    # Whatever a busy machine made of the times.
    shapes = [{**shape, "flags": []} for shape in document["shapes"]]
    written = {**first_run["written"], "outcome": "timed", "shapes": shapes}
    (tmp_path / "time.json").write_text(json.dumps(written))
    ran = kt("baselines", tmp_path, "--csv", tmp_path / "b.csv", "--json")
    got = json.loads(ran.out)
    assert dumps(parse(DOCUMENTS["baselines"], got)) + "\n" == ran.out
    assert len(got["baselines"]) == len(shapes)
    assert {row["date"] for row in got["baselines"]} == {document["started"]}
    assert {row["torch"] for row in got["baselines"]} == {document["environment"]["torch"]}
    assert (tmp_path / "b.csv").read_text().startswith("task,shape,dtype,baseline,us,")


def test_the_exit_code_says_whether_the_times_hold(document, first_run):
    assert first_run["code"] == (0 if document["outcome"] == "timed" else 1)


def test_the_view_names_task_shape_and_baseline(kt, softmax):
    ran = kt("time", softmax, *QUICK)
    assert ran.code in (0, 1)
    assert ran.out.splitlines()[0].startswith("kernelbenchx/softmax on ")
    row = r"eager +[\d.e+]+ [um]?s +[\d.]+x +[\d.]+ to [\d.]+ +(faster|tie|slower)"
    assert re.search(row, ran.out)


def test_a_numpy_kernel_is_timed_on_the_cpu(kt, candidate):
    file = candidate(NUMPY, "relu.py")
    options = ("--task", "relu", "--suite", "kernelbenchx", *QUICK[4:])
    ran = kt("time", file, *options, "--json")
    shape = json.loads(ran.out)["shapes"][0]
    assert shape["graded"]["wrong"] == []


def test_a_wrong_kernel_is_bad_and_says_so(kt, candidate):
    file = candidate(SOFTMAX.replace("torch.softmax(input, dim)", "input * 0"), "softmax.py")
    ran = kt("time", file, *QUICK)
    assert ran.code == 1
    assert re.match(r"wrong: M=\d+ .*: fail: ", ran.out.splitlines()[-1])


def test_a_kernel_that_raises_is_bad_and_says_why(kt, candidate):
    file = candidate(
        "import torch\ndef softmax(input, dim=-1):\n    raise OSError('no')", "softmax.py"
    )
    ran = kt("time", file, *QUICK, "--json")
    document = json.loads(ran.out)
    assert (ran.code, document["outcome"]) == (1, "failed")
    assert document["detail"].endswith("OSError no")


def timing(file, **more):
    """The steps of `time` where nothing is measured before a benchmarker is made."""
    request = TimeRequest(file=file, task="softmax", suite="kernelbenchx", **more)

    def make(runner, *, cold, **how):
        raise UserError(f"it would be timed, {cold=}")

    measure = {"measure": lambda runner, *, anew: None, "make": make}
    return time_file(request, SimpleNamespace(device="cpu"), 0.0, **measure)


def test_a_kernel_compiles_anew_each_time_it_is_timed(softmax):
    with pytest.raises(UserError, match="it would be timed, cold=True"):
        list(timing(softmax))


def test_a_name_that_is_too_long_is_the_users_mistake(kt):
    said = mistake(kt("time", f"{'long' * 100}.py", *QUICK))
    assert "cannot use 'longlong" in said
    assert "File name too long" in said


def test_a_result_that_is_there_is_not_replaced(softmax, tmp_path):
    for name in ("time.json", "run.json"):
        out = tmp_path / name.partition(".")[0]
        out.mkdir()
        (out / name).write_text("{}")
        with pytest.raises(UserError, match=f"it holds a {name} already; name a new directory"):
            next(timing(softmax, out=out))
        assert (out / name).read_text() == "{}"


def test_a_file_is_no_directory_for_the_result(softmax):
    for out in (softmax, softmax / "below"):
        with pytest.raises(UserError, match="is a file; name a directory"):
            next(timing(softmax, out=out))


def test_where_nothing_can_be_written_nothing_is_measured(softmax):
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        next(timing(softmax, out=Path("/proc/nothing")))


def test_without_a_card_energy_is_not_read_and_the_document_says_why(kt, softmax):
    document = json.loads(kt("time", softmax, *QUICK, "--energy", "--json").out)
    found = {"idle_watts": None, "sides": {}, "reason": "not a CUDA device"}
    assert [shape["energy"] for shape in document["shapes"]] == [found] * len(document["shapes"])


def test_what_cannot_run_here_is_no_judgement(kt, candidate):
    file = candidate(NUMPY.replace("relu", "softmax"), "softmax.py")
    ran = kt("time", file, *QUICK, "--dtype", "bfloat16")
    assert ran.code == 3
    assert "unsupported_here: " in ran.out


def test_each_shape_has_a_line_in_a_pipe(kt, softmax):
    ran = kt("time", softmax, *QUICK)
    assert re.match(r"0/\d timing M=", ran.err)
