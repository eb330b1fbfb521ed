"""Problems as tasks: derived in a child, and judged like any other."""

import ast
from dataclasses import replace

import msgspec
import pytest
import torch

from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.strategies import generate
from kerneltruth.clock.roofline.work import work_of
from kerneltruth.clock.schedule.timed_cases import MOST_ELEMENTS, timed_cases
from kerneltruth.documents.verdict import Failed, Passed, Unrefereeable
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache, expect
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.reference import reference
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.suites.catalog import SuiteTasks
from kerneltruth.suites.kernelbench.child_session import ProblemSession
from kerneltruth.suites.kernelbench.own_reference import read_reference
from kerneltruth.suites.kernelbench.problem import Plain, problem_of_function
from kerneltruth.suites.kernelbench.schema_cache import schema_of
from kerneltruth.suites.kernelbench.suite import KernelBench, Reference

from .problems import (
    DRAWING,
    GROUPED,
    HEAD,
    LINEAR,
    NO_INIT,
    REMEMBERING,
    STACKED,
    function,
    problem,
)

pytestmark = pytest.mark.processes

TUPLE = function(
    'return {"both": (a0 + a1, [a0 * a1]), "mean": float(a0.mean())}',
    "torch.rand(n, m), torch.rand(n, m)",
)
TARGETS = function(
    "return nn.functional.cross_entropy(a0, a1)",
    "torch.rand(n, m), torch.randint(0, m, (n,))",
)
LOGARITHM = function("return torch.log(a0).sum(1)", "torch.rand(n, m)")
TRIANGLE = function(
    "return torch.tril(a0 @ a1)", "torch.tril(torch.rand(n, n)), torch.tril(torch.rand(n, n))"
).replace("(self, a0, a1, a2, a3)", "(self, a0, a1)")
MASKED = function(
    "return torch.cumsum(a0 * a1, 1)", "torch.rand(n, m), torch.randint(0, 2, (n, m)).bool()"
)
CONSTANT = function("return (a0 - a0).sum(1)", "torch.rand(n, m)")
INEXACT = function(
    "return (a0 * 1e6 + 1e12).square().sum(1) - (a0 * 1e6 + 1e12).sum(1).square() / a0.shape[1]",
    "torch.rand(n, m)",
)
# 1e-12 is 0 in float16, and what lies closer together than float16 can tell is divided by it.
NARROW = function(
    "return (a0 * 1e-6) / (a0 * 1e-6).square().sum(1, keepdim=True).clamp_min(1e-12)",
    "torch.rand(n, m)",
)
MISSING = "import no_such_package\n" + LINEAR
PLAIN_NUMBER = function("return a0 * a1", "torch.rand(n, m), 3.5").replace(
    "(self, a0)", "(self, a0, a1)"
)
LISTED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, sizes, rate):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(a, b) for a, b in zip([16] + sizes, sizes)))

    def forward(self, x):
        return self.layers(x)

sizes = [64] * 2
def get_inputs():
    return [torch.rand(100, 16)]
def get_init_inputs():
    return [sizes, 0.5]
"""
)


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    """Schemas of problems that several tests share."""
    return tmp_path_factory.mktemp("schemas")


@pytest.fixture
def suite_and_task(runner, schemas):
    """The suite of one problem, and its task."""

    def make(source):
        suite = KernelBench({"level1/1": problem(source)}, runner, schemas)
        return suite, suite.task("level1/1")

    return make


def attempt_of(runner, task, candidate, cases=10, dtypes=None):
    cache = ExpectationCache(Policy())
    with CandidateSession(task, candidate, runner, cache, deadline_s=20) as session:
        *_, last = judge_cases(session, Plan(cases=cases, dtypes=dtypes, compile=False))
    assert isinstance(last, AttemptEnded)
    return last.attempt


def candidate(source):
    return read_candidate(source, "new.py", task_names=("ModelNew",), task="ModelNew")


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        *(LINEAR, GROUPED, TUPLE, TARGETS, LOGARITHM, TRIANGLE, MASKED, PLAIN_NUMBER, LISTED),
        *(REMEMBERING, STACKED, DRAWING),
    ],
    ids=[
        "linear",
        "grouped",
        "tuple",
        "targets",
        "logarithm",
        "triangle",
        "masked",
        "number",
        "listed",
        "remembering",
        "stacked",
        "drawing",
    ],
)
def test_a_problems_own_model_passes(runner, suite_and_task, source):
    suite, task = suite_and_task(source)
    assert task.unrefereeable is None
    attempt = attempt_of(runner, task, suite.own_function("level1/1"))
    assert isinstance(attempt.verdict, Passed), attempt.failure or attempt.verdict
    assert attempt.cases == 10


@pytest.mark.slow
def test_inputs_are_cast_to_float32_and_made_where_the_judge_needs_them(runner, suite_and_task):
    asks = 'torch.rand(n, m, device="cuda", dtype=torch.float16), torch.rand(n, m).double()'
    suite, task = suite_and_task(function("return a0 * a1", asks).replace("a0, a1, a2", "a0, a1"))
    assert [o.dtype for o in task.outputs] == ["same"]
    attempt = attempt_of(runner, task, suite.own_function("level1/1"), cases=6)
    assert isinstance(attempt.verdict, Passed), attempt.failure or attempt.verdict


@pytest.mark.slow
def test_what_a_constructor_draws_beside_weights_is_part_of_the_problem(runner, suite_and_task):
    _, task = suite_and_task(DRAWING)
    assert not task.random
    # As in KernelBench, plain attributes stay in float32, and with them what is added to them.
    assert [o.dtype for o in task.outputs] == ["float32"]
    drawn_first = DRAWING.replace("class Model", "class ModelNew").replace(
        "        self.layer =", "        self.skipped = torch.randn(3)\n        self.layer ="
    )
    attempt = attempt_of(runner, task, candidate(drawn_first))
    assert isinstance(attempt.verdict, Failed)
    assert attempt.verdict.kind == "value"


@pytest.mark.slow
@pytest.mark.parametrize("source", [LINEAR, GROUPED, TARGETS, TRIANGLE])
def test_a_problem_gets_three_or_more_shapes(runner, schemas, source):
    assert schema_of(problem(source), runner, schemas).distinct >= 3


@pytest.mark.slow
def test_a_problem_that_nothing_makes_small_has_shapes_and_is_not_judged(runner, suite_and_task):
    source = LINEAR.replace("nn.Linear(features,", "nn.Linear(features * 0 + 2**18,")
    source = source.replace("torch.rand(rows, features)", "torch.rand(rows, 2**18)")
    source = source.replace("[features, outputs]", "[features, 256 + outputs]")
    suite, task = suite_and_task(source)
    assert suite.schema("level1/1").distinct >= 3
    assert task.unrefereeable.startswith("too large for a float64 reference on a CPU")
    assert isinstance(attempt_of(runner, task, candidate(LINEAR)).verdict, Unrefereeable)


MANY_GROUPS = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features, channels, groups):
        super().__init__()
        self.linear = nn.Linear(features, channels)
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(self.linear(x))


batch, features, channels, groups = 1024, 8192, 8192, 256


def get_inputs():
    return [torch.rand(batch, features)]


def get_init_inputs():
    return [features, channels, groups]
"""
)


@pytest.mark.slow
def test_groups_have_several_channels_where_one_would_be_normalized_to_a_constant(runner, schemas):
    schema = schema_of(problem(MANY_GROUPS), runner, schemas)
    assert schema.trouble is None
    assert schema.distinct >= 3
    assert all(o.shape[1] > 256 for choice in schema.choices for o in choice.outline.outputs)


DEEP = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers = ([nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU()] for _ in range(12))
        self.layers = nn.Sequential(*(layer for group in layers for layer in group))

    def forward(self, x):
        return self.layers(x)


batch = 512


def get_inputs():
    return [torch.rand(batch, 256)]


"""
    + NO_INIT
)


@pytest.mark.slow
def test_a_deep_network_is_tried_with_batches_that_its_normalizations_are_exact_for(
    runner, schemas
):
    """Over two rows each of them gives 1 or -1, whichever row is larger by a rounding error."""
    schema = schema_of(problem(DEEP), runner, schemas)
    assert schema.trouble is None
    assert all(choice.outline.inputs[0].shape[0] > 8 for choice in schema.choices)


LAYERED = (
    HEAD
    + """
def layer(inputs, outputs):
    return (
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.Softmax(dim=-1),
    )


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        layers = (each for _ in range(8) for each in layer(channels, channels))
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


channels = 4


def get_inputs():
    return [torch.rand(8, channels, 16, 16)]


def get_init_inputs():
    return [channels]
"""
)
OTHERWISE = "torch.backends.mkldnn.set_flags(False)\nModelNew = Model\n"
OFF = """
class ModelNew(Model):
    def forward(self, x):
        return super().forward(x) * 1.05
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "right"), [(OTHERWISE, True), (OFF, False)], ids=["otherwise", "off"]
)
def test_layers_in_half_precision_may_round_otherwise_and_may_not_be_off(
    runner, suite_and_task, more, right
):
    """Without oneDNN, PyTorch rounds other results on the way: as it does on a GPU."""
    _, task = suite_and_task(LAYERED)
    half = ("float16", "bfloat16")
    attempt = attempt_of(runner, task, candidate(LAYERED + more), cases=16, dtypes=half)
    assert isinstance(attempt.verdict, Passed) is right, attempt.failure or attempt.verdict


HALVES = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, x):
        half = x.shape[-1] // 2
        return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


rows, width = 64, 64


def get_inputs():
    return [torch.rand(rows, width)]


"""
    + NO_INIT
)
PUT_TOGETHER = HALVES.replace("forward(self, x)", "forward(self, x, y)").replace(
    """half = x.shape[-1] // 2
        return torch.cat((-x[..., half:], x[..., :half]), dim=-1)""",
    "return torch.cat((x, y), dim=1)",
)
PUT_TOGETHER = PUT_TOGETHER.replace("width = 64, 64", "width, more = 64, 64, 64").replace(
    "[torch.rand(rows, width)]", "[torch.rand(rows, width), torch.rand(rows, more)]"
)


@pytest.mark.slow
def test_halves_of_an_odd_size_are_not_tried_and_parts_of_other_sizes_are(runner, schemas):
    """A kernel may rely on halves being equal, as the model means it."""
    halves = schema_of(problem(HALVES), runner, schemas)
    assert halves.distinct >= 3
    assert all(choice.outline.inputs[0].shape[1] % 2 == 0 for choice in halves.every)
    parts = schema_of(problem(PUT_TOGETHER), runner, schemas)
    shapes = [[i.shape[1] for i in choice.outline.inputs] for choice in parts.choices]
    assert any(width != more for width, more in shapes)


def test_a_constraint_of_the_model_holds_in_all_sets(runner, schemas):
    schema = schema_of(problem(GROUPED), runner, schemas)
    for choice in schema.choices:
        channels, groups, _ = ast.literal_eval(choice.outline.init)
        assert channels % groups == 0


LARGE = LINEAR.replace("rows = 64 * 4", "rows = 2**20")


@pytest.mark.slow
@pytest.mark.parametrize(("source", "rows"), [(LINEAR, 256), (LARGE, 2**15)])
def test_a_problem_is_timed_at_its_own_size_or_at_a_part_of_it(suite_and_task, source, rows):
    _, task = suite_and_task(source)
    *_, largest = timed_cases(task)
    assert f"rows={rows} features=512 outputs=128" in largest.settings["_sizes"]
    inputs = materialize(task, largest).tensors
    assert sum(t.numel() for t in inputs.values()) <= MOST_ELEMENTS
    # It is the size of a measurement, and judging does without it.
    judged = {case.settings["_sizes"] for case in generate(task, seed=0, count=40)}
    assert largest.settings["_sizes"] not in judged


def test_a_problem_with_indices_is_timed_at_sizes_at_which_it_was_run(
    runner, schemas, suite_and_task
):
    """How large an index may be, only a run shows."""
    schema = schema_of(problem(TARGETS), runner, schemas)
    assert schema.timed is None
    _, task = suite_and_task(TARGETS)
    for case in timed_cases(task):
        assert case.settings["_sizes"] in {choice.label for choice in schema.choices}
        assert materialize(task, case).tensors


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("source", [LINEAR, GROUPED, TARGETS, MASKED, PLAIN_NUMBER])
def test_a_call_moves_its_inputs_weights_and_outputs_once(suite_and_task, source, dtype):
    _, task = suite_and_task(source)
    if dtype not in (*task.dtypes, *task.extended_dtypes):
        pytest.skip(f"this problem is not judged in {dtype}")
    for case in timed_cases(task, dtype=dtype):
        given = materialize(task, case)
        results = reference(task, given.tensors, given.scalars)
        size = getattr(torch, dtype).itemsize
        moved = sum(t.numel() * t.element_size() for t in given.tensors.values())
        assert work_of(task, case).bytes == moved + sum(r.numel() for r in results) * size


def test_integer_inputs_stay_below_their_own_bound(suite_and_task):
    _, task = suite_and_task(TARGETS)
    for case in generate(task, seed=1, count=12):
        inputs = materialize(task, case).tensors
        assert inputs["a1"].dtype == torch.int64
        assert int(inputs["a1"].max()) < inputs["a0"].shape[1]


def test_inputs_keep_the_form_in_which_the_problem_draws_them(suite_and_task):
    _, task = suite_and_task(TRIANGLE)
    for case in generate(task, seed=1, count=12):
        for tensor in materialize(task, case).tensors.values():
            assert torch.equal(torch.nan_to_num(tensor), torch.nan_to_num(tensor).tril())


def test_a_model_of_positive_numbers_is_not_given_negative_ones(suite_and_task):
    _, task = suite_and_task(LOGARITHM)
    for case in generate(task, seed=1, count=12, domain="core"):
        assert float(materialize(task, case).tensors["a0"].min()) >= 0


def test_cases_go_through_the_sets_of_constants(suite_and_task):
    _, task = suite_and_task(LINEAR)
    sizes = {case.settings["_sizes"] for case in generate(task, seed=0, count=16)}
    assert len(sizes) >= 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (CONSTANT, "does not depend on the inputs"),
        (INEXACT, "float32 is off by"),
        (MISSING, "No module named 'no_such_package'"),
        (HEAD + NO_INIT, "does not define Model and get_inputs"),
        (LINEAR.replace("[features, outputs]", "[features, outputs, object()]"), "takes"),
    ],
)
def test_a_problem_that_tells_nothing_apart_says_why(runner, suite_and_task, source, reason):
    _, task = suite_and_task(source)
    assert reason in task.unrefereeable
    attempt = attempt_of(runner, task, candidate(LINEAR.replace("Model(", "ModelNew(")))
    assert isinstance(attempt.verdict, Unrefereeable)
    assert reason in attempt.verdict.reason


def test_a_candidate_that_drops_the_last_columns_fails(runner, suite_and_task):
    _, task = suite_and_task(LINEAR)
    wrong = LINEAR.replace("Model(", "ModelNew(").replace(
        "return torch.relu(self.layer(x))",
        "y = torch.relu(self.layer(x))\n        y[:, 16:] = 0\n        return y",
    )
    assert isinstance(attempt_of(runner, task, candidate(wrong)).verdict, Failed)


@pytest.mark.slow
def test_where_the_model_gives_nan_in_float16_a_candidate_may_too(runner, suite_and_task):
    suite, task = suite_and_task(NARROW)
    plan = Plan(cases=4, compile=False, dtypes=("float16",))
    cache = ExpectationCache(Policy())
    with CandidateSession(
        task, suite.own_function("level1/1"), runner, cache, deadline_s=20
    ) as session:
        *judged, last = judge_cases(session, plan)
    assert last.attempt.failed == 0
    verdicts = {type(event.judgement.verdict) for event in judged}
    assert Unrefereeable in verdicts


@pytest.mark.slow
def test_a_candidate_with_the_wrong_number_fails(runner, suite_and_task):
    _, task = suite_and_task(TUPLE)
    wrong = TUPLE.replace("Model(", "ModelNew(").replace("a0.mean()", "a0.sum()")
    assert isinstance(attempt_of(runner, task, candidate(wrong)).verdict, Failed)


RENAMED = (
    HEAD
    + """
class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.w = nn.Parameter(torch.randn(outputs, features))
        self.b = nn.Parameter(torch.zeros(outputs))

    def forward(self, anything):
        return (anything @ self.w.t() + self.b).clamp(min=0)
"""
)
DERIVED = (
    HEAD
    + """
features = 7
def get_inputs():
    raise RuntimeError("a candidate's own constants are never read")
class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.layer = nn.Linear(features, outputs)
        self.transposed = self.layer.weight.detach().t().contiguous()

    def forward(self, x):
        return (x @ self.transposed.to(x) + self.layer.bias).clamp(min=0)
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("source", [RENAMED, DERIVED], ids=["renamed", "derived"])
def test_weights_reach_a_candidate_that_keeps_them_otherwise(runner, suite_and_task, source):
    _, task = suite_and_task(LINEAR)
    attempt = attempt_of(runner, task, candidate(source))
    assert isinstance(attempt.verdict, Passed), attempt.failure or attempt.verdict


@pytest.mark.slow
def test_the_schema_is_the_same_each_time_and_from_the_cache(runner, tmp_path):
    first = schema_of(problem(GROUPED), runner, tmp_path)
    assert schema_of(problem(GROUPED), runner) == first
    assert len(list(tmp_path.iterdir())) == 1
    assert schema_of(problem(GROUPED), runner, tmp_path) == first


@pytest.mark.slow
def test_a_damaged_cache_is_no_hindrance(runner, tmp_path):
    first = schema_of(problem(MASKED), runner, tmp_path)
    next(tmp_path.iterdir()).write_text("{")
    assert schema_of(problem(MASKED), runner, tmp_path) == first


def test_only_the_last_references_keep_their_children(runner, schemas):
    closed = []

    class Watched(ProblemSession):
        def __init__(self, problem, *rest, **how):
            super().__init__(problem, *rest, **how)
            self.number = problem.number

        def close(self):
            closed.append(self.number)
            super().close()

    problems = {f"level1/{i}": problem(MASKED, i) for i in range(1, 7)}
    made = KernelBench(problems, runner, schemas, new_session=Watched)
    suite = SuiteTasks(made, "kernelbench:here")
    assert all(suite[f"kernelbench/level1/{i}"] for i in range(1, 7))
    assert closed == [1, 2, 3]


def test_the_truth_is_in_float64_with_the_weights_given(suite_and_task):
    _, task = suite_and_task(LINEAR)
    case = next(generate(task, seed=3, count=1))
    inputs = materialize(task, case)
    wide = {n: t.double() for n, t in inputs.tensors.items()}
    (truth,) = task.reference(**task.keywords(wide, inputs.scalars, task.reference))
    weight, bias = wide["weights.layer.weight"], wide["weights.layer.bias"]
    expected = torch.relu(wide["x"] @ weight.T + bias)
    assert truth.dtype == torch.float64
    assert torch.allclose(truth, expected, rtol=1e-12)


def test_zeros_that_are_square_in_the_example_alone_are_no_symmetric_matrices(runner, schemas):
    source = (
        "import torch\n\nrows, columns = 8, 8\n\n"
        "def inputs():\n    return torch.randn(rows, 4), torch.zeros(rows, columns)\n\n"
        "def f(x, state):\n    return x.sum(-1, keepdim=True) + state\n"
    )
    plain = problem_of_function("f", source, Plain(name="f", makes="inputs"))

    class SymmetricInExample(KernelBench):
        def schema(self, name):
            schema = super().schema(name)
            seen = tuple(replace(facts, form="symmetric") for facts in schema.inputs)
            return replace(schema, inputs=seen)

    suite = SymmetricInExample({"f": plain}, runner, schemas)
    assert [spec.kind for spec in suite.task("f").tensors] == ["real", "real"]


COMPOSED = {
    "nn.functional.mish(a0)": lambda x: x * (2 * torch.sigmoid(2 * torch.log(1 + x.exp())) - 1),
    "a0 * torch.sigmoid(a0)": lambda x: x * 0.5 * (1 + torch.tanh(0.5 * x)),
}


@pytest.mark.parametrize("activation", COMPOSED)
def test_a_composed_tail_of_an_activation_is_right_and_a_wrong_one_is_not(
    suite_and_task, activation
):
    _, task = suite_and_task(function(f"return {activation}", "torch.randn(n, m) - 11"))
    case = next(generate(task, seed=3, count=1))
    (output,) = expect(task, case, Policy()).outputs
    (x,) = materialize(task, case).tensors.values()
    composed = COMPOSED[activation](x)
    assert output.difference(composed).stats.num_exceeding == 0
    assert output.difference(composed + 2e-5).stats.num_exceeding == x.numel()
    assert output.difference(torch.zeros_like(x)).stats.num_exceeding > x.numel() / 2


POWERS = function(
    "s = a0; return [s := s @ a1 for _ in range(12)][-1]",
    "torch.randn(n, m), torch.randn(m, m)",
).replace("(self, a0, a1, a2, a3)", "(self, a0, a1)")
EXPONENTIAL = function("return torch.exp(a0)", "torch.randn(n, m)")


def expected_of(made, source, values):
    """What is expected of inputs that are about one number in their upper half, else another."""
    _, task = made(source)
    case = next(generate(task, seed=3, count=1))
    literals = []
    for name, tensor in materialize(task, case).tensors.items():
        rows = torch.arange(tensor.shape[0])[:, None]
        one, other = values[name]
        filled = torch.where(rows < len(rows) // 2, one, other) * (1 + 0.1 * (rows % 5))
        literals.append((name, filled.expand(tensor.shape).flatten().tolist()))
    expected = expect(task, msgspec.structs.replace(case, literals=tuple(literals)), Policy())
    assert (expected.invalid, expected.unrefereeable) == (None, None)
    (output,) = expected.outputs
    return output


def test_a_recurrence_beyond_float32_may_end_as_nan_and_one_within_may_not(suite_and_task):
    output = expected_of(suite_and_task, POWERS, {"a0": (1.0, 1e-30), "a1": (1e3, 1e3)})
    beyond = output.rounded.isinf()
    assert beyond.any(1).tolist() == beyond.all(1).tolist() != [False] * len(beyond)
    lost = torch.full_like(output.rounded, torch.nan)
    assert output.difference(torch.where(beyond, lost, output.rounded)).stats.num_exceeding == 0
    wrong = output.difference(lost).stats.num_exceeding
    assert wrong == int((~beyond).sum()) > 0


def test_nan_in_place_of_an_infinity_is_wrong_where_nothing_is_summed(suite_and_task):
    output = expected_of(suite_and_task, EXPONENTIAL, {"a0": (100.0, 1.0)})
    infinite = output.rounded.isinf()
    lost = torch.where(infinite, torch.nan, output.rounded)
    assert output.difference(lost).stats.num_exceeding == int(infinite.sum()) > 0
    assert output.difference(output.rounded).stats.num_exceeding == 0


TURNED = """
import torch

def turned(x, cos):
    return torch.cat((x[..., :16] * cos[:, None], x[..., 16:]), -1)

def inputs():
    return torch.randn(2, 128, 4, 32), torch.randn(128, 16)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "verdict"), [("arange(len(cos))", Passed), ("arange(len(cos)) % 64", Failed)]
)
def test_a_kernel_that_takes_positions_modulo_64_is_caught(
    runner, schemas, tmp_path, place, verdict
):
    path = tmp_path / "turned.py"
    path.write_text(TURNED)
    task = Reference({"turned": read_reference(path)}, runner, schemas).task("turned")
    source = TURNED.replace("* cos", f"* cos[torch.{place}]")
    made = read_candidate(source, "turned.py", task_names=("turned",), task="turned")
    assert isinstance(attempt_of(runner, task, made, cases=48).verdict, verdict)
