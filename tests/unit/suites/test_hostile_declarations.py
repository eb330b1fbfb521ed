"""Declarations of benchmarks, and answers of their references, are data that may hold anything."""

import json

import pytest

from kerneltruth.errors import UserError
from kerneltruth.runner.observation import Observation, TensorResult
from kerneltruth.suites.flashinfer.trace import read_traces
from kerneltruth.suites.gpuemu.corpus import read_corpus
from kerneltruth.suites.gpumode.problem import read_problems
from kerneltruth.suites.kernelbench.messages import ExtentsAnswer
from kerneltruth.suites.remote import Rejected, Remote

REFERENCE = """
def generate_input(size, seed):
    return size
def ref_kernel(data):
    a, out = data
    out[...] = a
def check_implementation(data, output):
    return match_reference(data, output, rtol={rtol})
"""


@pytest.fixture
def gpumode(tmp_path):
    folder = tmp_path / "group" / "problem"
    folder.mkdir(parents=True)

    def read(*, tests='{"size": 16}', source="reference.py", reference=REFERENCE, rtol="1e-3"):
        (folder / "reference.py").write_text(reference.replace("{rtol}", rtol))
        (folder / "task.yml").write_text(
            f'files:\n  - {{"name": "reference.py", "source": "{source}"}}\ntests:\n  - {tests}\n'
        )
        (problem,) = read_problems(tmp_path).values()
        return problem

    return read


def test_a_problem_of_gpu_mode_is_read(gpumode):
    assert (gpumode().trouble, gpumode().test) == (None, {"size": 16})


@pytest.mark.parametrize("tests", ["{[]: 1}", '{"a"}', '{"a b": 1}', "{1: 2}", "{" + "(" * 300])
def test_arguments_that_are_no_mapping_of_names_are_left_out(gpumode, tests):
    assert "no tests that are mappings" in gpumode(tests=tests).trouble


@pytest.mark.parametrize(
    "reference",
    [
        f"x = {'-' * 5000}1\n",
        f"x = {'(' * 150}1{')' * 150}\n",
        REFERENCE.replace("a, out = data", "a = b = data"),
        REFERENCE + f"def ref_kernel(data):\n    x = {'-' * 900}1\n",
    ],
    ids=["unparsable", "nested", "two targets", "deep"],
)
def test_a_reference_of_any_form_is_read(gpumode, reference):
    assert gpumode(reference=reference).files


def test_a_tolerance_that_is_no_number_admits_nothing(gpumode):
    assert "accepts any result" in gpumode(rtol="'x'").trouble


def test_a_problem_reads_no_file_outside_of_its_group(gpumode, tmp_path):
    (tmp_path / "secret.py").write_text("x = 1\n")
    with pytest.raises(UserError, match="leads out of its group"):
        gpumode(source="../../secret.py")


def test_a_problem_may_take_a_file_of_a_group_beside_its_own(gpumode, tmp_path):
    beside = tmp_path / "beside"
    (beside / "other").mkdir(parents=True)
    (beside / "other" / "task.yml").write_text("")
    (beside / "utils.py").write_text(REFERENCE.replace("{rtol}", "1e-3"))
    (tmp_path / "group" / "problem" / "task.yml").write_text(
        'files:\n  - {"name": "reference.py", "source": "../../beside/utils.py"}\n'
    )
    problem = read_problems(tmp_path / "group" / "problem")["group/problem"]
    assert problem.files["reference.py"] == (beside / "utils.py").read_text()


def test_a_file_whose_name_has_line_breaks_is_named_in_one_line(gpumode):
    with pytest.raises(UserError, match="as text") as refused:
        gpumode(source="a\nb.py")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "meta", [b'{"name": "\xff"}', b"[" * 10**5, b'{"a\\nb": 1}', b'{"name": 1}', b"[]"]
)
def test_a_kernel_of_gpuemu_that_cannot_be_read_is_named_in_one_line(tmp_path, meta):
    (tmp_path / "relu").mkdir()
    (tmp_path / "relu" / "meta.json").write_bytes(meta)
    with pytest.raises(UserError, match="correct it, or leave its folder out") as refused:
        read_corpus(tmp_path)
    assert "\n" not in str(refused.value)


def test_times_of_a_peer_that_no_float_holds_are_unknown(tmp_path):
    (tmp_path / "traces").mkdir()
    times = {"latency_ms": 10**400, "speedup_factor": float("inf")}
    evaluation = {"status": "PASSED", "performance": times}
    line = {"definition": "d", "solution": "s", "evaluation": evaluation}
    (tmp_path / "traces" / "t.jsonl").write_text(json.dumps(line))
    verdict = read_traces(tmp_path)[0]["d", "s"]

    assert (verdict.correct, verdict.runtime_ms, verdict.speedup) == (True, None, None)


class Answering:
    """A runner whose children answer each call in the same way."""

    def __init__(self, *results):
        self.results = results

    def open(self, candidate):
        del candidate
        return self

    def call(self, arguments, **options):
        del arguments, options
        return Observation(ended="returned", results=self.results)


def answer(data, dtype="uint8", shape=None):
    shape = (len(data),) if shape is None else shape
    return TensorResult(dtype=dtype, shape=shape, strides=shape, device="cpu", data=data)


@pytest.mark.parametrize(
    "results",
    [(), (answer(b"{}"),) * 2, (answer(b"[" * 10**5),), (answer(b"[]"),), (answer(b"\xff"),)],
    ids=["none", "two", "nested", "no object", "no text"],
)
def test_an_answer_of_a_reference_that_is_no_object_is_rejected(results):
    remote = Remote(None, Answering(*results))
    with pytest.raises(Rejected):
        remote.document({}, {}, dict, deadline_s=1)


@pytest.mark.parametrize(
    "said", [b"{}", b'{"extents":[1,"2"]}', b'{"extents":[1.5]}', b'{"extents":[],"more":1}']
)
def test_an_answer_that_says_other_things_than_were_asked_is_rejected(said):
    remote = Remote(None, Answering(answer(said)))
    with pytest.raises(Rejected, match="no valid extentsanswer: "):
        remote.document({}, {}, ExtentsAnswer, deadline_s=1)


def test_an_answer_is_read_as_a_model():
    remote = Remote(None, Answering(answer(b'{"extents":[1,null]}')))
    found = remote.document({}, {}, ExtentsAnswer, deadline_s=1)
    assert found == ExtentsAnswer(extents=(1, None))


def test_elements_of_a_dtype_that_come_without_data_are_not_made_up():
    remote = Remote(None, Answering(answer(b"", "complex32", (2**40,))))
    with pytest.raises(Rejected, match="dtype complex32"):
        remote.outputs({}, {}, deadline_s=1)
