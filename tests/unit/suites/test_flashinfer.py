"""FlashInfer-Bench: definitions become tasks, and what cannot is refused with its reason."""

import pytest
import torch

from flashinfer_data import (
    const,
    gemm,
    number,
    put,
    rms,
    solution,
    store_starts,
    sums,
    tensor,
    trace,
    var,
    workload,
)
from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.strategies import generate
from kerneltruth.clock.roofline.work import work_of
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.lines import Labels
from kerneltruth.documents.model import plain
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.errors import UserError
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache, expect
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.reference import reference
from kerneltruth.suites.catalog import SuiteTasks
from kerneltruth.suites.flashinfer.forms import FORM
from kerneltruth.suites.flashinfer.suite import DataSet
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.reference_facts import facts_of
from kerneltruth.suites.submission import Broken, Submission
from kerneltruth.suites.suite import Opening

pytestmark = pytest.mark.processes


def at(runner):
    return Opening(option="flashinfer:here", runner=runner)


@pytest.fixture
def opened(tmp_path, runner):
    """Open a data set of some definitions, with lines of workloads."""

    def make(*definitions, workloads=()):
        for i, definition in enumerate(definitions):
            put(tmp_path, f"definitions/some/{i}.json", definition)
        put(tmp_path, "workloads/some/w.jsonl", *workloads)
        return SuiteTasks(DataSet.open(tmp_path, at(runner)), "flashinfer:here")

    return make


def why(opened, definition, **more):
    return opened(definition, **more)[f"flashinfer/{definition['name']}"].unrefereeable


def test_const_axes_have_one_size_and_var_axes_many(opened):
    task = opened(gemm())["flashinfer/gemm_n48_k80"]
    assert task.unrefereeable is None
    cases = list(generate(task, seed=0, count=8))
    assert {(c.sizes["N"], c.sizes["K"]) for c in cases} == {(48, 80)}
    assert len({c.sizes["M"] for c in cases}) >= 3
    assert task.dim("K").role == "contracted"
    assert task.dtypes == ("float16",)


def test_the_reference_is_evaluated_in_float64_in_a_child(opened):
    task = opened(gemm())["flashinfer/gemm_n48_k80"]
    case = next(generate(task, seed=0, count=1))
    inputs = materialize(task, case)
    (truth,) = reference(task, inputs.tensors, inputs.scalars)
    assert truth.dtype == torch.float64
    expected = inputs.tensors["a"].double() @ inputs.tensors["b"].double().T
    assert torch.allclose(truth, expected, rtol=1e-13)


@pytest.mark.parametrize(
    "definition",
    [
        gemm(),
        rms(),
        gemm(reference="def run(a, b):\n    return {'c': a @ b.T}\n"),
        gemm(reference="def run(a, b):\n    return (a @ b.T,)\n"),
    ],
    ids=["gemm", "rms", "by name", "a tuple"],
)
def test_a_definitions_own_reference_is_a_candidate_that_passes(opened, runner, definition):
    data_set = opened(definition)
    task = data_set[f"flashinfer/{definition['name']}"]
    own = data_set.own_function(task)
    with CandidateSession(task, own, runner, ExpectationCache(Policy()), deadline_s=20) as session:
        *_, last = judge_cases(session, Plan(cases=4, compile=False))
    assert isinstance(last, AttemptEnded)
    assert isinstance(last.attempt.verdict, Passed), last.attempt.failure or last.attempt.verdict


def test_a_reference_that_runs_elsewhere_has_no_lines_here_to_count(opened):
    task = opened(gemm())["flashinfer/gemm_n48_k80"]
    assert task.foreign
    assert (facts_of(task).lines, facts_of(task).operators) == (None, None)


def test_what_overflows_in_half_precision_alone_is_wrong(opened, runner):
    """Unlike KernelBench's, a definition's reference does not say what is due in a narrow dtype."""
    half = {"dtype": "float16"}
    squares = {
        **rms(name="squares", reference="def run(x):\n    return x * x / 256 / 256\n"),
        "inputs": {"x": tensor("rows", "width", **half)},
        "outputs": {"y": tensor("rows", "width", **half)},
    }
    data_set = opened(squares)
    task = data_set["flashinfer/squares"]
    own = data_set.own_function(task)
    plan = Plan(cases=32, compile=False, deadline_s=20.0)
    with CandidateSession(task, own, runner, ExpectationCache(Policy()), deadline_s=20) as session:
        *_, last = judge_cases(session, plan)
    assert isinstance(last.attempt.verdict, Failed)
    assert last.attempt.verdict.kind in ("inf", "nan")


@pytest.mark.parametrize("definition", [gemm(), rms()], ids=["gemm", "rms"])
def test_a_call_moves_its_inputs_and_outputs_once(opened, definition):
    task = opened(definition)[f"flashinfer/{definition['name']}"]
    case = next(generate(task, seed=0, count=1))
    inputs = materialize(task, case)
    moved = [t for t in inputs.tensors.values() if t is not None]
    results = reference(task, inputs.tensors, inputs.scalars)
    sizes = [getattr(torch, o.dtype_at(case.dtype)).itemsize for o in task.outputs]
    output_bytes = sum(r.numel() * size for r, size in zip(results, sizes, strict=True))
    expected = sum(t.numel() * t.element_size() for t in moved) + output_bytes
    assert work_of(task, case).bytes == expected


@pytest.mark.parametrize(
    ("body", "precision"),
    [
        ("return x * 3 / 7", "float64"),
        ("return (x.float() * 3 / 7).to(x.dtype)", "float32"),
        ("return torch.exp(x.to(torch.bfloat16)) * 0.7", "bfloat16"),
    ],
)
def test_the_precision_of_a_reference_is_reported(opened, body, precision):
    definition = {
        **rms(name="one", reference=f"import torch\ndef run(x):\n    {body}\n"),
        "inputs": {"x": tensor("rows", "width")},
        "outputs": {"y": tensor("rows", "width")},
    }
    task = opened(definition)["flashinfer/one"]
    assert f"yields {precision} precision" in task.description


def test_an_axis_that_a_constraint_gives_is_not_searched(opened):
    definition = {
        "name": "grouped",
        "op_type": "gqa",
        "axes": {"H": var(), "G": var(), "R": const(4)},
        "constraints": ["H == G * R"],
        "inputs": {"q": tensor("H"), "k": tensor("G")},
        "outputs": {"o": tensor("H")},
        "reference": "def run(q, k):\n    return q * k.repeat_interleave(4)\n",
    }
    task = opened(definition)["flashinfer/grouped"]
    assert [d.symbol for d in task.dims] == ["G", "R"]
    cases = [c for c in generate(task, seed=0, count=6)]
    assert len({c.sizes["G"] for c in cases}) >= 3
    assert all(expect(task, c, Policy()).invalid is None for c in cases)


def test_numbers_take_what_workloads_say_else_usual_values(opened):
    definition = rms(
        name="eps",
        reference="def run(x, scale, eps, k):\n    return x * scale + eps * k\n",
    )
    definition["inputs"] = {**definition["inputs"], "eps": number(), "k": number("int32")}
    line = {"axes": {"rows": 3}, "inputs": {"k": {"type": "scalar", "value": 5}}}
    lines = [{"definition": "eps", "workload": line}]
    task = opened(definition, workloads=lines)["flashinfer/eps"]
    values = {a.name: a.values for a in task.attributes}
    assert values == {"eps": (1e-6, 1e-5), "k": (5,)}
    assert why(opened, definition | {"name": "other"}).startswith("no workload says which integer")


def test_integer_tensors_come_from_workloads(opened, tmp_path):
    store_starts(tmp_path, [0, 3, 5], "blob/0.safetensors")
    store_starts(tmp_path, [0, 0, 2, 9], "blob/1.safetensors")
    lines = [
        {"definition": "sums_d16", "workload": workload([0, 3, 5])},
        {"definition": "sums_d16", "workload": workload([0, 0, 2, 9], "./blob/1.safetensors")},
    ]
    task = opened(sums(), workloads=lines)["flashinfer/sums_d16"]
    assert task.unrefereeable is None
    seen = set()
    for case in generate(task, seed=0, count=8):
        made = materialize(task, case).tensors
        seen.add(tuple(made["starts"].tolist()))
        assert made["x"].shape == (int(made["starts"][-1]), 16)
        assert expect(task, case, Policy()).invalid is None
    assert seen == {(0, 3, 5), (0, 0, 2, 9)}
    # The larger one is timed; starts are of 4 bytes, sums of as many as there are parts.
    (timed,) = timed_cases(task)
    assert "total=9" in timed.settings[FORM]
    assert work_of(task, timed).bytes == 4 * (9 * 16 + 4 + 3 * 16)


def test_random_integers_are_refused_with_the_reason(opened):
    assert "no workload defines the contents of starts" in why(opened, sums())
    line = workload([0, 2])
    line["inputs"]["starts"] = {"type": "random"}
    lines = [{"definition": "sums_d16", "workload": line}]
    assert "leave the integers of starts open" in why(opened, sums(), workloads=lines)


def test_a_stored_tensor_of_another_form_is_refused(opened, tmp_path):
    store_starts(tmp_path, [0, 1, 2, 3])
    lines = [{"definition": "sums_d16", "workload": workload([0, 3, 5])}]
    said = why(opened, sums(), workloads=lines)
    assert said == "starts: 0.safetensors holds int32[4], not int32[3]"


RANDOM = "import torch\ndef run(x, scale):\n    return torch.rand_like(x)\n"
BY_OTHER_MEANS = (
    "import torch\ndef run(x, scale):\n    return getattr(torch, 'rand_' + 'like')(x)\n"
)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"reference": RANDOM}, "the reference is random: it calls rand_like"),
        ({"reference": BY_OTHER_MEANS}, "the reference is random: two runs of it differ"),
        (
            {"reference": "def run(x, scale):\n    raise ValueError('mine')\n"},
            "the reference fails: ValueError: mine",
        ),
        ({"reference": "def run(x, scale):\n    return x, x\n"}, "returns 2 outputs; expected 1"),
        ({"reference": "def run(x, scale):\n    return x > 0\n"}, "returns y as bool"),
        ({"reference": "import os\ndef run(x, scale):\n    os._exit(3)\n"}, "the reference fails"),
        ({"axes": {"rows": var(), "width": const(2**23)}}, "its smallest case has"),
        ({"outputs": {"y": number()}}, "the output y is a plain number"),
        ({"inputs": {"x": tensor("rows", "width", dtype="float4_e2m1")}}, "torch cannot compute"),
        (
            {
                "inputs": {
                    "x": tensor("rows", "width", dtype="float16"),
                    "scale": tensor("width", dtype="bfloat16"),
                }
            },
            "several dtypes: float16, bfloat16",
        ),
    ],
)
def test_a_definition_that_cannot_be_judged_on_says_why(opened, changes, says):
    assert says in why(opened, rms(**changes))


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ("{broken", "not JSON"),
        ([1], "not an object but list"),
        ({k: v for k, v in rms().items() if k != "axes"}, "`axes` is missing"),
        ({k: v for k, v in rms().items() if k != "reference"}, "`reference` is missing"),
        (rms(reference="def run(:"), "`reference` is not Python"),
        (rms(reference="def walk(x): pass"), "does not define a function `run`"),
        (rms(axes={"rows": {"type": "any"}, "width": const(4)}), "must be const or var"),
        (rms(axes={"rows": var(), "width": const(0)}), "has the size 0"),
        (rms(axes={"rows": var()}), "the axis 'width', which is not in `axes`"),
        (rms(outputs={"y": tensor("rows", dtype="float31")}), "the dtype 'float31'"),
        (rms(outputs={}), "`outputs` is empty"),
        (rms(inputs={"x y": tensor("rows")}), "is not a name"),
        (rms(constraints=["rows >"]), "is not an expression"),
        (rms(constraints=[1]), "`constraints` must be texts"),
        (rms(inputs={"x": 1}), "must be an object"),
        (rms(inputs={"x": {"dtype": "float32"}}), "has no `shape`"),
        (rms(inputs={"x": {"dtype": "float32", "shape": "rows"}}), "must be an array of axes"),
    ],
)
def test_a_broken_definition_is_reported_and_costs_no_other(opened, definition, says):
    data_set = opened(gemm(), definition)
    assert list(data_set) == ["flashinfer/gemm_n48_k80"]
    (broken,) = data_set.suite.broken
    assert broken.origin == "definitions/some/1.json"
    assert says in broken.reason


def test_a_constraint_that_is_no_arithmetic_is_never_evaluated(opened):
    rule = "().__class__.__base__.__subclasses__()"
    data_set = opened(rms(constraints=[rule]))
    assert data_set.suite.definitions["rms_w96"].constraints == ()
    assert "no workload defines" in data_set["flashinfer/rms_w96"].unrefereeable


SUMS = ("parts", "ends", "total")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{broken", "not JSON"),
        ({"definition": "nobody", "workload": {}}, "unknown definition 'nobody'"),
        ({"definition": "sums_d16", "workload": {"axes": {}}}, "`parts` is missing"),
        (
            {"definition": "sums_d16", "workload": {"axes": dict.fromkeys(SUMS, -1)}},
            "a negative size in",
        ),
        (
            {"definition": "sums_d16", "workload": workload([0, 1], "../../etc/passwd")},
            "lies outside of the data set",
        ),
    ],
)
def test_a_broken_workload_is_reported_with_its_line(opened, line, says):
    (broken,) = opened(sums(), workloads=[line]).suite.broken
    assert broken.origin == "workloads/some/w.jsonl:1"
    assert says in broken.reason


def test_a_folder_without_definitions_is_no_data_set(tmp_path, runner):
    with pytest.raises(UserError, match="no folder 'definitions' there"):
        DataSet.open(tmp_path, at(runner))
    put(tmp_path, "definitions/rms.json", {})
    with pytest.raises(UserError, match=r"no definition in 'definitions'; definitions/rms.json: "):
        DataSet.open(tmp_path, at(runner))


def test_solutions_are_submissions_with_author_and_the_peers_verdict(tmp_path):
    put(tmp_path, "definitions/rms.json", rms())
    put(tmp_path, "solutions/ann/good.json", solution("good", "rms_w96"))
    put(tmp_path, "solutions/bob/new.json", solution("new", "rms_w96", author="bob"))
    passed = [trace("rms_w96", "good", "PASSED", latency) for latency in (0.5, 0.7)]
    put(tmp_path, "traces/ann/rms.jsonl", *passed, trace("rms_w96", "good", "TIMEOUT"), "{x", "[]")
    read = list(read_submissions(tmp_path / "solutions"))
    good, new = (r for r in read if isinstance(r, Submission))
    assert (good.origin, good.name, good.labels) == (
        "ann/good.json",
        "rms_w96",
        Labels(model="ann"),
    )
    assert plain(good.peer) == {
        "check": "flashinfer-bench",
        "compiled": True,
        "correct": False,
        "runtime_ms": 0.6,
        "speedup": 2.0,
        "statuses": {"PASSED": 2, "TIMEOUT": 1},
    }
    assert new.peer is None
    broken = [r.origin for r in read if isinstance(r, Broken)]
    assert broken == ["traces/ann/rms.jsonl:4", "traces/ann/rms.jsonl:5"]


def test_the_root_of_a_data_set_gives_its_solutions_alone(tmp_path):
    put(tmp_path, "definitions/rms.json", rms())
    put(tmp_path, "solutions/ann/good.json", solution("good", "rms_w96"))
    (only,) = read_submissions(tmp_path)
    assert only.origin == "solutions/ann/good.json"


def source_of(tmp_path, made):
    put(tmp_path, "definitions/rms.json", rms())
    put(tmp_path, "solutions/one.json", made)
    (read,) = read_submissions(tmp_path / "solutions" / "one.json")
    return read.source if isinstance(read, Submission) else read.reason


def call_solution(source, *arguments):
    space = {}
    exec(source, space)
    return space["solution_of_rms_w96"](*arguments)


def test_outputs_that_a_solution_writes_are_allocated_for_it(tmp_path):
    body = "def run(x, scale, y):\n    y.copy_(x * scale)\n"
    made = solution("w", "rms_w96", writes=True, sources={"main.py": body})
    x = torch.ones(3, 96, dtype=torch.bfloat16)
    result = call_solution(source_of(tmp_path, made), x, 2 * torch.ones(96, dtype=torch.bfloat16))
    assert result.dtype == torch.bfloat16
    assert result.tolist() == [[2.0] * 96] * 3


def test_several_files_are_joined(tmp_path):
    sources = {
        "main.py": (
            "from .parts.scaling import scaled as s, TWICE\n"
            "import helpers\n\ndef run(x, scale):\n    return helpers.plus(s(x, scale)) * TWICE\n"
        ),
        "parts/scaling.py": "TWICE = 2\n\ndef scaled(x, scale):\n    return x * scale\n",
        "helpers.py": "from __future__ import annotations\n\ndef plus(x):\n    return x + 1\n",
    }
    source = source_of(tmp_path, solution("j", "rms_w96", sources=sources))
    assert call_solution(source, torch.tensor(3.0), torch.tensor(2.0)) == 14.0


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            solution(
                "d",
                "rms_w96",
                sources={
                    "main.py": "from other import f\nN = 1\ndef run(x): return f(x)\n",
                    "other.py": "N = 2\ndef f(x): return x * N\n",
                },
            ),
            "define 'N' differently",
        ),
        (
            solution(
                "c",
                "rms_w96",
                sources={"main.py": "import other\n", "other.py": "import main\n"},
            ),
            "import each other",
        ),
        (
            solution(
                "i",
                "rms_w96",
                sources={
                    "main.py": "def run(x):\n    from other import f\n    return f(x)\n",
                    "other.py": "def f(x): return x\n",
                },
            ),
            "inside a block",
        ),
        (solution("e", "rms_w96", entry="other.py::run"), "not among the sources"),
        (solution("n", "rms_w96", entry="main.py"), "must be `file::function`"),
        (solution("l", "rms_w96", language="tilelang"), "the language 'tilelang'"),
        (
            solution("f", "rms_w96", language="cuda", sources={"main.py": ""}),
            "the binding 'tvm-ffi'",
        ),
        (solution("u", "nobody", writes=True), "unknown definition 'nobody'"),
        (solution("s", "rms_w96", sources={}), "`sources` is empty"),
        (solution("o", "rms_w96", sources={"../main.py": ""}), "leads out of the solution"),
        ({"definition": "rms_w96", "name": "x", "spec": {}}, "`language` is missing"),
    ],
)
def test_a_solution_that_cannot_be_one_module_is_refused_with_the_reason(tmp_path, made, says):
    assert says in source_of(tmp_path, made)


@pytest.mark.parametrize(
    ("line", "other", "says"),
    [
        ("import other, math", "other.py", "main.py: line 1 imports several modules at once"),
        ("import other; n = 1", "other.py", "main.py: line 1 holds an import and more"),
        ("import lib.other", "lib/other.py", "line 1 imports lib.other by its dotted name"),
    ],
)
def test_an_import_that_cannot_be_joined_is_named_with_its_line(tmp_path, line, other, says):
    sources = {"main.py": f"{line}\ndef run(x): return x\n", other: "N = 2\n"}
    assert says in source_of(tmp_path, solution("j", "rms_w96", sources=sources))
