"""Own tasks through the library: a reference, a file of declarations, and their mistakes."""

import runpy

import pytest

import kerneltruth as kt

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("warm_servers")]

REFERENCE = """
import torch

def doubled(x):
    return x * {factor}

def inputs():
    return (torch.randn(8, 16),)
"""
KERNEL = "def mine(x):\n    return x + x\n"
FEW = {"cases": 8, "seed": 3}


@pytest.fixture(scope="module")
def judge(warm_servers):
    with kt.Judge(device="cpu", workers=1) as made:
        yield made


@pytest.fixture
def reference(tmp_path):
    path = tmp_path / "reference.py"
    path.write_text(REFERENCE.format(factor=2))
    return path


@pytest.mark.slow
def test_a_reference_is_the_task(judge, reference):
    report = judge.check(KERNEL, reference=reference, **FEW)

    assert (report.passed, report.task) == (True, "reference/doubled")


@pytest.mark.slow
def test_a_reference_that_was_edited_is_read_again(judge, reference):
    assert judge.check(KERNEL, reference=reference, **FEW).passed
    reference.write_text(REFERENCE.format(factor=3.5))

    assert judge.check(KERNEL, reference=reference, **FEW).kind == "value"
    assert judge.check("def relu(x): return x.clamp(min=0)", task="relu", **FEW).passed


@pytest.mark.slow
def test_a_relative_reference_is_found_after_the_caller_has_moved(judge, reference, monkeypatch):
    monkeypatch.chdir(reference.parent)

    assert judge.check(KERNEL, reference="reference.py", **FEW).passed


@pytest.mark.slow
def test_a_text_without_a_function_has_a_verdict(judge, reference):
    report = judge.check("x = 1\n", reference=reference, **FEW)

    assert (report.verdict, report.task) == ("compile_error", "reference/doubled")


@pytest.mark.slow
def test_a_text_whose_task_nobody_says_is_the_users_mistake_alone_and_a_verdict_among_many(judge):
    with pytest.raises(kt.UserError, match="no function is named after a task"):
        judge.check("x = 1\n")
    (report,) = judge.check_many(["x = 1\n"])
    assert (report.verdict, report.task) == ("compile_error", "")


def test_two_suites_are_the_users_mistake(judge, reference):
    with pytest.raises(kt.UserError, match="suite and reference: each is a suite"):
        judge.check(KERNEL, suite="core", reference=reference)


def test_a_reference_that_is_not_there_is_the_users_mistake(judge):
    with pytest.raises(kt.UserError, match=r"nope\.py: No such file or directory"):
        judge.check(KERNEL, reference="nope.py")


DECLARED = """
import kerneltruth as kt

DOUBLED = kt.task(
    "doubled(x[M, N])",
    dims={"M": "batch", "N": "spatial"},
    reference=lambda x: 2 * x,
)
"""


def declared_in(path, text=DECLARED):
    path.write_text(text)
    return runpy.run_path(str(path))["DOUBLED"]


def test_a_declared_task_is_the_task(judge, tmp_path):
    task = declared_in(tmp_path / "my_tasks.py")

    assert judge.check(KERNEL, entry="mine", task=task, **FEW).task == "my_tasks/doubled"
    wrong = judge.check(KERNEL.replace("x + x", "x + 1"), entry="mine", task=task, **FEW)
    assert wrong.kind == "value"


@pytest.mark.slow
def test_a_declared_task_is_timed(judge, tmp_path):
    path = tmp_path / "my_tasks.py"
    for task in ({"task": declared_in(path)}, {"task": "doubled", "tasks": path}):
        timing = judge.time(KERNEL, entry="mine", against=("eager",), budget=0.05, **task)
        assert (timing.task, len(timing.shapes)) == ("my_tasks/doubled", 1)
    timing = judge.time(
        KERNEL,
        entry="mine",
        against=("eager",),
        budget=0.05,
        energy=True,
        task=task["task"],
        tasks=path,
    )
    assert timing.shapes[0].energy.reason == "not a CUDA device"


def test_a_named_candidate_brings_a_declared_task(judge, tmp_path):
    task = declared_in(tmp_path / "my_tasks.py")
    named = kt.NamedCandidate(KERNEL, task=task, entry="mine")

    assert judge.check(named, **FEW).task == "my_tasks/doubled"


@pytest.mark.slow
def test_a_file_that_judges_while_its_tasks_are_read_says_what_to_do(judge, tmp_path):
    path = tmp_path / "my_tasks.py"
    task = declared_in(path)
    path.write_text(DECLARED + f"kt.check({KERNEL!r}, task=DOUBLED)\n")

    with pytest.raises(kt.UserError, match=r'my_tasks.py:9: .* `if __name__ == "__main__":`'):
        judge.check(KERNEL, entry="mine", task=task, **FEW)


def test_a_task_that_is_declared_in_no_file_is_the_users_mistake(judge):
    names = {}
    exec(DECLARED, names)
    with pytest.raises(kt.UserError, match="the source of <string> is not kept"):
        judge.check(KERNEL, task=names["DOUBLED"])


IN_PLACE = """
import kerneltruth as kt

DOUBLED = kt.task(
    "doubled(x[M, N], y[M, N])",
    dims={"M": "batch", "N": "spatial"},
    reference=lambda x, y: x + y,
    mutates=("x",),
)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "passes"),
    [
        ("x.add_(y)", True),
        ("x.add_(y); return x", True),
        ("return x + y", False),
        ("r = x + y; x.zero_(); return r", False),
    ],
)
def test_what_is_written_by_contract_is_what_counts(judge, tmp_path, kernel, passes):
    task = declared_in(tmp_path / "my_tasks.py", IN_PLACE)

    assert judge.check(f"def doubled(x, y): {kernel}", task=task, **FEW).passed == passes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "kernel"),
    [
        (
            "kernelbenchx/index_fill_",
            "def index_fill_(dim, x, index, value=1.5):\n"
            "    r = x.clone(); r.transpose(0, dim)[index] = value; {}return r",
        ),
        (
            "kernelbenchx/matrix_vector_dot",
            "def matrix_vector_dot(A, x, y, alpha=1.0, beta=1.0):\n"
            "    n = alpha * (A @ x) + beta * y; {}return n @ x",
        ),
        (
            "tritonbench/scaled_add_dot",
            "def scaled_add_dot(y, x, alpha=0.5):\n    n = y + alpha * x; {}return n @ n",
        ),
    ],
)
def test_a_published_task_that_writes_an_argument_compares_it(judge, task, kernel):
    written = "x" if "index" in task else "y"
    right = f"{written}.copy_({'r' if 'index' in task else 'n'}); "

    assert judge.check(kernel.format(right), task=task, **FEW).passed
    assert not judge.check(kernel.format(""), task=task, **FEW).passed
    assert not judge.check(kernel.format(f"{written}.zero_(); "), task=task, **FEW).passed


PAIR = """
import torch

def scaled(x, y):
    return x * y.to(x.dtype)

def inputs():
    n = 16
    return {x}, {y}
"""
HALVES = ("torch.randn(8, n, dtype=torch.bfloat16)", "torch.rand(8, n, dtype=torch.float16)")
TURNED = ("torch.randn(n, 8).t()", "torch.randn(8, n)")
LIKE_HALVES = """
def f(x, y):
    assert str(y.dtype) == "torch.float16"
    return x * y.to(x.dtype)
"""
AS_ROWS = "def f(x, y):\n    return x.as_strided(x.shape, (x.shape[1], 1)) * y\n"


@pytest.mark.slow
def test_a_tensor_keeps_the_dtype_that_the_example_gives_it_beside_another(judge, tmp_path):
    path = tmp_path / "reference.py"
    path.write_text(PAIR.format(x=HALVES[0], y=HALVES[1]))

    assert judge.check(LIKE_HALVES, reference=path, **FEW).passed


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_decays_of_an_example_stay_decays(judge, tmp_path, dtype):
    made = {"x": f"torch.randn(8, n, dtype=torch.{dtype})", "y": "-torch.rand(8, n)"}
    path = tmp_path / "reference.py"
    path.write_text(PAIR.format(**made).replace("y.to", "y.exp().to"))
    kernel = "def f(x, y):\n    return x * y.clamp(max=0).exp().to(x.dtype)\n"

    assert judge.check(kernel, reference=path, **FEW).passed


@pytest.mark.slow
@pytest.mark.parametrize(("until", "passed"), [("-1:", True), (":1", False)])
def test_sums_of_decays_stay_sums_of_decays(judge, tmp_path, until, passed):
    path = tmp_path / "reference.py"
    made = PAIR.format(x="torch.randn(8, n)", y="-torch.rand(8, n).cumsum(-1)")
    path.write_text(made.replace("y.to(x.dtype)", "(y[:, -1:] - y).exp()"))
    kernel = f"def f(x, y):\n    return x * (y[:, {until}] - y).clamp(max=0).exp()\n"

    assert judge.check(kernel, reference=path, **FEW).passed == passed


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["x", "y"])
def test_a_double_beside_a_float_keeps_its_dtype(judge, tmp_path, wide):
    made = {"x": "torch.randn(8, n)", "y": "torch.randn(8, n)"}
    made[wide] = "torch.randn(8, n, dtype=torch.float64)"
    path = tmp_path / "reference.py"
    path.write_text(PAIR.format(**made).replace(".to(x.dtype)", ""))

    assert judge.check("def f(x, y):\n    return x * y\n", reference=path, **FEW).passed


@pytest.mark.slow
def test_a_kernel_that_takes_an_argument_for_contiguous_that_the_example_turns_is_wrong(
    judge, tmp_path
):
    path = tmp_path / "reference.py"
    path.write_text(PAIR.format(x=TURNED[0], y=TURNED[1]))

    report = judge.check(AS_ROWS, reference=path, **FEW)
    assert (report.kind, report.passed) == ("assumes_contiguous", False)
    # The example has its second argument contiguous.
    second = "def f(x, y):\n    return x * y.as_strided(y.shape, (y.shape[1], 1))\n"
    assert judge.check(second, reference=path, **FEW).passed


@pytest.mark.slow
def test_a_kernel_that_ignores_an_argument_by_name_breaks_attributes(judge, tmp_path):
    path = tmp_path / "reference.py"
    path.write_text(
        "import torch\ndef f(x, *, by):\n    return x * by\n"
        "def inputs():\n    return torch.randn(8, 16), 2.0\n"
    )
    right, wrong = (f"def f(x, *, by):\n    return x * {by}\n" for by in ("by", 2.0))

    assert judge.check(right, reference=path, **FEW).passed
    found = judge.check(wrong, reference=path, cases=16, seed=3)
    assert found.profile["attributes"].status == "broken"


@pytest.mark.slow
def test_a_reason_names_the_librarys_argument_once(judge, reference):
    report = judge.check("def a(x): return x\ndef b(x): return x\n", reference=reference, **FEW)

    assert "pass entry=NAME, or begin" in report.detail
    assert str(report).count("public functions") == 1
