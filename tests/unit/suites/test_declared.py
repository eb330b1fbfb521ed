"""Files of declarations: what they give, and the one line that each mistake in one gets."""

import re
import sys

import pytest
import torch
from msgspec.structs import replace

from kerneltruth.cases.materialize import benchmark_case, materialize
from kerneltruth.cases.strategies import generate
from kerneltruth.errors import UserError
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import expect
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import open_suite
from kerneltruth.suites.declared import DeclaredTasks, eager
from kerneltruth.suites.suite import Opening

TASK = """
import torch

from kerneltruth.tasks.spec import Dim, Output, task

ONE = task(
    "shifted(x[M, N], by=1.0)",
    dims={"M": "batch", "N": "spatial"},
    reference=lambda x, by: x + by,
)
"""


def tasks_of(path):
    return open_suite(Opening(option=f"tasks:{path}", runner=Runner(device="cpu")))


@pytest.fixture
def file(tmp_path):
    def write(text, name="my_tasks.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def refused(path):
    """The message for a file, without its folder."""
    with pytest.raises(UserError) as refusal:
        tasks_of(path)
    return str(refusal.value).replace(f"{path.parent}/", "")


def test_a_file_is_a_suite_of_its_name(file):
    found = tasks_of(file(TASK))
    assert [*found] == ["my_tasks/shifted"]
    assert found["my_tasks/shifted"].suite == "my_tasks"


def test_a_task_may_be_an_element_of_a_list(file):
    found = tasks_of(file(TASK.replace("ONE = task(", "TASKS = [task(").rstrip()[:-1] + ")]"))
    assert [*found] == ["my_tasks/shifted"]


def test_a_file_imports_what_lies_beside_it_and_leaves_the_path_as_it_was(file):
    file("STEP = 2.0\n", "beside_my_tasks.py")
    before = list(sys.path)
    tasks_of(file("from beside_my_tasks import STEP\n" + TASK.replace("x + by", "x + STEP * by")))
    assert sys.path == before


def test_what_a_declaration_need_not_say_has_a_default(file):
    task = tasks_of(file(TASK))["my_tasks/shifted"]
    assert (task.category, task.flops) == ("Own", "0")
    assert task.benchmark.dims == {"M": 64, "N": 64}


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ('"spatial"', '"spacial"', r"my_tasks.py:6: dim 'N': 'spacial' is not a role; use one of"),
        ("M, N]", "M, K]", r":6: x 'K': 'K' is neither a dim \(M, N\) nor an attribu"),
        ("M, N]", "M, NN]", r":6: x 'NN': .*did you mean 'N'\?"),
        ("M, N]", "M, N", r":6: .* does not close the bracket"),
        ("M, N]", "M N]", r":6: 'M N' is no expression"),
        ("by=1.0)", "by=1.0", r":6: signature .* write it as `name\(arguments\)`"),
        ("by=1.0", "by", r":6: .* is neither a tensor nor an attribute; write `name\[dims\]`"),
        ("by=1.0", "by=one", r":6: the default 'one' of 'by' is no literal"),
        ("M, N]", "M, N]: spdd", r":6: x: 'spdd' is not a kind; use one of ascending, bfloat16"),
        (
            "M, N]",
            "M, N, 0]",
            r":9: no case of shifted has elements; loosen constraints, or limits",
        ),
        ("x, by: x + by", "x: x", r":6: the reference of shifted has no parameter 'by'"),
        ("x, by: x", "x, by, c: x", r":6: the reference of shifted needs 'c', which the signature"),
        ("x + by", "x + y", r":9: NameError: name 'y' is not defined; correct the file"),
        ("x + by", "torch.cat([x])[9:3, 5, 5]", r":9: IndexError: too many indices .*; correct"),
        ("x + by", "None", r":9: the reference of shifted returns NoneType; return a tensor"),
        ("x + by", "()", r":9: the reference of shifted returns nothing; return a tensor"),
        ("x + by", "(x, x)", r":9: .* returns 2 results, and 1 are declared; give outputs="),
        ("x + by", "x.add_(by)", r":9: the reference of shifted changes its arguments; compute on"),
        ("x + by", "torch.rand_like(x)", r":9: .* differs from call to call; draw nothing at rand"),
        ("x + by,", "x + by,\n    outputs=(),", r":6: no output: give outputs="),
        (
            "x + by,",
            "x + by,\n    mutates=('z',),",
            r":6: mutates 'z': it is no tensor .* one of x$",
        ),
        (
            "x + by,",
            "x + by,\n    mutates=('x',), outputs=(Output(),),",
            r":6: mutates 'x': no output has that name; add Output\(name='x'\) to outputs",
        ),
        (
            "x + by,",
            "x + by,\n    mutates={'x': 'by > 0'},",
            r":6: mutates 'x': .* add Output\(name='x', when='by > 0'\)",
        ),
        (
            "x + by,",
            "x + by,\n    out=True, outputs=(Output(name='y'),),",
            r":6: out=True: no output has that name; add Output\(name='out'\)",
        ),
        ("x + by,", "x + by,\n    dtype=1,", r":6: task\(\) got an unexpected keyword .*'dtype'"),
        ("x + by,", "x + by,\n    dtypes=('fp16',),", r":6: dtype 'fp16': must be one of float32"),
        ("x + by,", "x + by,\n    tolerance={'int8': -1},", r":6: tolerance int8: -1: give an abs"),
        (
            "x + by,",
            "x + by,\n    benchmark={'M': 1},",
            r":6: benchmark {'M': 1}: give a size for N",
        ),
        (
            "x + by,",
            "x + by,\n    benchmark={'M': 'a'},",
            r":6: benchmark {'M': 'a'}: give M a whole number, 0 or more",
        ),
        (
            "x + by,",
            "x + by,\n    perf=({'M': 1, 'Z': 2},),",
            r":6: perf .*: 'Z' is neither a dim \(M, N\) nor an attribute",
        ),
        ('"shifted(x[M, N], by=1.0)"', "3", r":6: signature 3: write it as `name\(arguments\)`"),
        (
            "x + by,",
            "x + by,\n    constraints=('M < 0',),",
            r":9: no case .* its constraints \(M < 0",
        ),
        (
            "ONE = task(",
            "ONE = dict(",
            r"my_tasks.py:6: ValueError: dictionary .*; correct the file",
        ),
        (
            "import torch\n",
            "import torchh\n",
            r":2: No module named 'torchh'; install it, or import",
        ),
        ("ONE = task(", "ONE == task((", r"my_tasks.py:6: '\(' was never closed; correct the file"),
        (
            "ONE = task(",
            "(lambda **given: given)(\n    text=",
            r":1: the file declares no task; give .* as --reference",
        ),
    ],
)
def test_a_mistake_in_a_declaration_is_told_in_one_line(file, was, becomes, says):
    assert was in TASK
    said = refused(file(TASK.replace(was, becomes, 1)))
    assert re.search(says, said), said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("outputs=Output(dtype='int64')", "outputs=Output(.*): give a tuple of Output"),
        ("dtypes='float32'", "dtypes='float32': give a tuple of texts"),
        ("constraints='M > 1'", "constraints='M > 1': give a tuple of texts"),
        ("mutates='x'", "mutates='x': give a tuple of names"),
        ("attributes={'by': 2.0}", "attributes={'by': 2.0}: give a tuple of values by name, such"),
        ("attributes=['by']", r"attributes=\['by'\]: give a tuple of values by name"),
        ("extended={'by': 2.0}", "extended={'by': 2.0}: give a tuple of values by name"),
        ("tolerance=1e-3", "tolerance=0.001: give an error by dtype, such as {'float16': 1e-2}"),
        ("tolerance={'float32': 'a'}", "tolerance={'float32': 'a'}: give an error by dtype"),
        ("perf={'M': 1}", r"perf={'M': 1}: give a tuple of sizes by dim, such as \({'M': 1024},\)"),
        ("benchmark=(1, 2)", r"benchmark=\(1, 2\): give a size by dim"),
        ("values=(1,)", r"values=\(1,\): give two numbers"),
        ("inputs=3", "inputs=3: give a function"),
        ("admissible=[3]", r"admissible=\[3\]: give a tuple of functions"),
        ("where={'q': 3}", "where={'q': 3}: give a function or Variants by name"),
        ("flops=3", "flops=3: give a text"),
        ("backward='yes'", "backward='yes': give True or False"),
        ("may_overwrite={'x': True}", "may_overwrite={'x': True}: give a condition by name"),
        ("promises={}", "promises={}: give a Promises"),
    ],
)
def test_a_part_of_another_type_is_told_with_what_to_give(file, given, says):
    said = refused(file(TASK.replace("x + by,", f"x + by,\n    {given},")))
    assert re.fullmatch(rf"my_tasks.py:6: {says}.*", said), said


def test_two_tasks_of_one_name_are_refused_with_both_lines(file):
    twice = TASK + TASK.replace("ONE", "TWO")
    assert refused(file(twice)) == (
        "my_tasks.py:19: a task named 'shifted' is declared at line 9; rename one of them"
    )


def test_a_file_named_like_a_suite_is_refused(file):
    said = refused(file(TASK, "core.py"))
    assert "'core' is a suite's name; give the file another one, or pass a function with" in said


def test_what_is_no_readable_text_is_refused(file, tmp_path):
    path = file("")
    path.write_bytes(b"\xff\xfe")
    assert "not UTF-8" in refused(path)
    assert "No such file" in refused(tmp_path / "none.py")


def call_eager(path, **given):
    (task,) = tasks_of(path).values()
    return eager(str(path), path.read_text(), task.name)(**given)


def test_the_eager_baseline_takes_what_a_candidate_takes(file):
    path = file(TASK.replace("x + by,", "x + by,\n    out=True,"))
    x, out = torch.ones(2, 3), torch.zeros(2, 3)
    assert call_eager(path, x=x, by=2.0, out=out) is out
    assert out.unique().tolist() == [3.0]


@pytest.mark.parametrize(
    ("outputs", "returned"), [("Output(name='x')", None), ("Output(), Output(name='x')", 3.0)]
)
def test_the_eager_baseline_writes_what_the_contract_says(file, outputs, returned):
    result = "x + by" if returned is None else "(x + by, x - by)"
    more = f"{result},\n    mutates=('x',),\n    outputs=({outputs},),"
    x = torch.ones(2, 3)
    made = call_eager(file(TASK.replace("x + by,", more)), x=x, by=2.0)
    assert x.unique().tolist() == [3.0 if returned is None else -1.0]
    assert (made if made is None else made.unique().item()) == returned


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ("lambda K: {}", r":6: inputs: 'K' is neither a dim \(M, N\) nor an attribute"),
        ("lambda: torch.ones(2)", r":9: inputs of shifted returns Tensor; return a dict of"),
        ("lambda: {'x': 1}", r":9: inputs of shifted gives 'x': int; give tensors of x by name"),
        (
            "lambda: {'x': torch.ones(2, 3)}",
            r":9: .* gives x in the shape \[2, 3\], and the signat",
        ),
        (
            "lambda M, N: {'x': torch.rand(M, N)}",
            r":9: inputs of shifted differ for one seed; draw",
        ),
    ],
)
def test_a_function_that_draws_inputs_wrongly_is_told_in_one_line(file, inputs, says):
    said = refused(file(TASK.replace("x + by,", f"x + by,\n    inputs={inputs},")))
    assert re.search(says, said), said


def test_a_function_of_dims_attributes_and_a_seed_draws_inputs(file):
    inputs = "lambda M, N, by, seed: {'x': torch.full((M, N), by + seed % 2)}"
    task = tasks_of(file(TASK.replace("x + by,", f"x + by,\n    inputs={inputs},")))
    task = task["my_tasks/shifted"]
    case = benchmark_case(task, 0, "float16")
    drawn = materialize(task, case).tensors["x"]
    assert (drawn.dtype, drawn.unique().tolist()) == (torch.float16, [1.0 + case.seed % 2])
    recipes = {c.recipe for c in generate(task, strategies=("default",), seed=0, count=4)}
    assert "own" in recipes


def test_drawn_inputs_are_equal_along_a_dim_that_is_expanded(file):
    inputs = "lambda M, N: {'x': torch.arange(M * N).reshape(M, N)}"
    file_of = file(TASK.replace("x + by,", f"x + by,\n    inputs={inputs},"))
    task = tasks_of(file_of)["my_tasks/shifted"]
    case = replace(benchmark_case(task, 0, "float32"), layout="expanded")
    drawn = materialize(task, case).tensors["x"]
    assert drawn.unique(dim=0).tolist() == [list(range(64))]


@pytest.mark.parametrize("call", ["plain", "backward"])
def test_what_is_off_by_a_factor_within_a_tolerance_spoils_no_case(file, call):
    more = "x + by,\n    tolerance={'float32': 0.02}, backward=True,"
    task = tasks_of(file(TASK.replace("x + by,", more)))["my_tasks/shifted"]
    case = benchmark_case(task, 0, "float32")
    with_call = replace(case, attributes=(("by", 1.0), ("_call", call)))
    found = expect(task, with_call, Policy())
    assert (found.unrefereeable, found.invalid) == (None, None)


@pytest.mark.parametrize("result", ["x.detach() + by", "(x > by).float()"])
def test_a_reference_without_the_gradients_that_are_declared_is_told_in_one_line(file, result):
    said = refused(file(TASK.replace("x + by,", f"{result},\n    backward=True,")))
    assert said == (
        "my_tasks.py:9: autograd of the reference of shifted gives no gradients: the result does "
        "not require grad, though the inputs do; compute the first result from real inputs "
        "without detach, or leave out backward=True"
    )


def test_a_tolerance_is_admitted_whatever_the_bound(file):
    path = file(TASK.replace("x + by,", "x + by,\n    tolerance={'float32': 0.5},"))
    task = tasks_of(path)["my_tasks/shifted"]
    case = benchmark_case(task, 0, "float32")
    (expected,) = expect(task, case, Policy()).outputs
    assert float(expected.bound.min()) == 0.5
    (narrow,) = expect(task, benchmark_case(task, 0, "float16"), Policy()).outputs
    assert float(narrow.bound.max()) < 0.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TASK + "while True: pass\n", r"my_tasks\.py:11: running the file takes longer than "),
        (
            TASK.replace("lambda x, by: x + by", "lambda x, by: [None for _ in iter(int, 1)]"),
            r"my_tasks\.py:9: trying shifted on a small case takes longer than ",
        ),
    ],
)
def test_a_file_that_never_ends_is_refused(tmp_path, text, said):
    with pytest.raises(UserError, match=said):
        DeclaredTasks(tmp_path / "my_tasks.py", text, run_s=2.0)
