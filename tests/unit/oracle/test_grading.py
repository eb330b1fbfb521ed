"""Results of timed calls: what did the work passes, what did not is wrong."""

from dataclasses import replace

import pytest
import torch
from scripted import MATMUL, RELU, SUM, case_of, declare, result, returned

from kerneltruth.cases.philox import stream
from kerneltruth.cases.pools import Choice, inputs_at, pools_of
from kerneltruth.documents.verdict import Failed, Infra, Passed
from kerneltruth.oracle.expectation_builder import expect_timed
from kerneltruth.oracle.grading import grade, grade_spots, spotwise
from kerneltruth.runner.observation import Observation, OtherResult
from kerneltruth.tasks.claims import Claim
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Output

SOFTMAX = declare(
    "softmax(x[M, N])",
    lambda x: torch.softmax(x, -1),
    {"M": "batch", "N": "reduced"},
    benchmark={"M": 16, "N": 64},
)
PRODUCT = replace(MATMUL, benchmark=replace(MATMUL.benchmark, dims={"M": 48, "N": 40, "K": 256}))
IN_PLACE = declare("halve_(x[M, N])", lambda x: x * 0.5, mutates=("x",))


# Drawing is most of what these tests cost. Declarations are kept: an id stays that of one task.
POOLS = {}


def pools_for(declared, case):
    """The pools of a case, drawn once."""
    key = id(declared), case
    if key not in POOLS:
        POOLS[key] = declared, pools_of(declared, case)
    return POOLS[key][1]


def expected_call(declared, case, index=0):
    """What is due of one of the calls, and its inputs."""
    pools = pools_for(declared, case)
    drawn = {n: p.choose(stream(4, "calls"), 4) for n, p in pools.items()}
    at = {n: c[index] for n, c in drawn.items()}
    inputs = inputs_at(declared, case, pools, at)
    return expect_timed(declared, case, inputs), inputs.tensors


def verdict(declared, case, compute, index=0):
    expectation, tensors = expected_call(declared, case, index)
    return grade(declared, expectation, returned(compute(**tensors)))


def assert_passes(declared, case, compute):
    found = verdict(declared, case, compute)
    assert isinstance(found, Passed), found


def assert_fails(declared, case, compute, kind="value"):
    found = verdict(declared, case, compute)
    assert isinstance(found, Failed), found
    assert found.kind == kind
    return found


DTYPES = ("float32", "float16", "bfloat16")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_result_passes_in_every_dtype(dtype):
    assert_passes(SOFTMAX, case_of(SOFTMAX, dtype=dtype), lambda x: torch.softmax(x, -1))
    assert_passes(RELU, case_of(RELU, dtype=dtype), lambda x: x.relu())


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_ordinary_formulation_passes(dtype):
    def softmax(x):
        e = (x.float() - x.float().amax(-1, keepdim=True)).exp()
        return (e / e.sum(-1, keepdim=True)).to(x.dtype)

    assert_passes(SOFTMAX, case_of(SOFTMAX, dtype=dtype), softmax)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_parts_pass(dtype):
    case = case_of(SUM, N=4096, dtype=dtype)
    assert_passes(SUM, case, lambda x: x.view(3, 64, 64).float().sum(1).sum(1).to(x.dtype))


def in_tf32(tensor):
    """Rounded to the 10 bits of TF32's fraction."""
    bits = tensor.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def test_a_product_in_tf32_passes():
    assert_passes(PRODUCT, case_of(PRODUCT), lambda a, b: in_tf32(a) @ in_tf32(b))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_product_in_half_precision_passes(dtype):
    assert_passes(
        PRODUCT, case_of(PRODUCT, dtype=dtype), lambda a, b: (a.float() @ b.float()).to(a.dtype)
    )


def _cut_off(a, b):
    """A product whose first row is far below 0."""
    first = torch.arange(a.shape[0], device=a.device) == 0
    return (a @ b - 1e9 * first.unsqueeze(-1)).clamp(min=0)


@pytest.mark.parametrize(("left", "right"), [(1.0, True), (1e3, False)])
def test_what_all_evaluations_cut_off_may_be_left_within_the_usual(left, right):
    declared = replace(PRODUCT, reference=_cut_off)

    def compute(a, b):
        made = _cut_off(a, b)
        made[0, 0] = left
        return made

    found = verdict(declared, case_of(declared, M=48, N=40, K=256), compute)
    assert isinstance(found, Passed) is right, found


def another_call(declared, case, compute):
    """The right result of other contents."""
    _, tensors = expected_call(declared, case, index=1)
    return compute(**tensors)


CHEATS = {
    "zeros": lambda right, stale: torch.zeros_like(right),
    "ones": lambda right, stale: torch.ones_like(right),
    "stale": lambda right, stale: stale,
    "a part stale": lambda right, stale: torch.cat([right[:-1], stale[-1:]]),
    "a part not written": lambda right, stale: torch.cat([right[:-1], 0 * right[-1:]]),
    "not a number": lambda right, stale: right * float("nan"),
    "of opposite sign": lambda right, stale: -right,
    "one row twice": lambda right, stale: torch.cat([right[:1], right[:-1]]),
    "a few percent off": lambda right, stale: right * 1.1,
}


@pytest.mark.parametrize("cheat", CHEATS)
@pytest.mark.parametrize(
    ("declared", "compute"),
    [
        (SOFTMAX, lambda x: torch.softmax(x, -1)),
        (PRODUCT, lambda a, b: a @ b),
    ],
    ids=["softmax", "matmul"],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_did_not_do_the_work_is_wrong(declared, compute, cheat, dtype):
    case = case_of(declared, dtype=dtype)
    stale = another_call(declared, case, compute)
    kind = "nan" if cheat == "not a number" else "value"
    assert_fails(declared, case, lambda **given: CHEATS[cheat](compute(**given), stale), kind)


def test_a_wrong_result_says_how_wrong():
    found = assert_fails(RELU, case_of(RELU), lambda x: x.relu() + 1)
    assert "15 of 15" in found.detail


def test_a_wrong_shape_and_dtype_are_reported():
    case = case_of(RELU)
    assert_fails(RELU, case, lambda x: x.relu()[:1], kind="shape")
    assert_fails(RELU, case, lambda x: x.relu().double(), kind="dtype")


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_of_another_number_of_dims_is_right_as_where_it_is_judged(shape):
    mean = declare("mean(x[M])", lambda x: x.mean(), {"M": "reduced"}, benchmark={"M": 64})
    assert_passes(mean, case_of(mean), lambda x: x.mean().reshape(shape))
    assert_fails(mean, case_of(mean), lambda x: x.mean().reshape(shape) + 1)


def test_one_buffer_for_all_results_is_allowed():
    expectation, tensors = expected_call(RELU, case_of(RELU))
    seen = Observation(ended="returned", results=(result(tensors["x"].relu(), alias="x"),))
    assert isinstance(grade(RELU, expectation, seen), Passed)


def test_what_a_task_writes_in_place_is_graded():
    expectation, tensors = expected_call(IN_PLACE, case_of(IN_PLACE))

    def seen(tensor):
        data = tensor.view(torch.uint8).numpy().tobytes()
        return Observation(ended="returned", buffers={"x": data})

    assert isinstance(grade(IN_PLACE, expectation, seen(tensors["x"] * 0.5)), Passed)
    untouched = grade(IN_PLACE, expectation, seen(tensors["x"]))
    assert isinstance(untouched, Failed)


def test_a_result_that_could_not_be_shown_is_no_pass():
    expectation, _ = expected_call(RELU, case_of(RELU))
    for ended in ("raised", "died", "timeout", "lost"):
        seen = Observation(ended=ended, error="E", message="gone")
        assert not isinstance(grade(RELU, expectation, seen), Passed)


def test_no_result_and_a_result_that_is_no_tensor_fail():
    expectation, _ = expected_call(RELU, case_of(RELU))
    for results in ((), (OtherResult(type="str", text="'done'"),)):
        seen = Observation(ended="returned", results=results)
        assert isinstance(grade(RELU, expectation, seen), Failed)


def small(name, **dims):
    """A published task at a small shape."""
    declared = find(name)
    shape = {**declared.benchmark.dims, **dims}
    return declared, case_of(replace(declared, benchmark=replace(declared.benchmark, dims=shape)))


def test_an_answer_that_is_not_unique_is_graded_by_its_claims():
    declared, case = small("kernelbenchx/cholesky", B=2, N=12)

    def factor(given):
        return torch.linalg.cholesky(given["A"])

    expectation, tensors = expected_call(declared, case)
    seen = returned(factor(tensors))
    assert isinstance(grade(declared, expectation, seen), Passed)
    for wrong in (factor(tensors) * 1.1, torch.zeros_like(tensors["A"]), tensors["A"]):
        assert isinstance(grade(declared, expectation, returned(wrong)), Failed)


def test_a_random_operator_is_graded_by_what_must_hold():
    declared, case = small("kernelbenchx/fused_mv_logsoftmax_dropout", M=256, K=16)
    expectation, tensors = expected_call(declared, case)
    logs = torch.log_softmax(tensors["input"] @ tensors["vec"], 0)
    seen = returned(torch.nn.functional.dropout(logs, 0.5))
    assert isinstance(grade(declared, expectation, seen), Passed)
    assert isinstance(grade(declared, expectation, returned(torch.zeros_like(logs))), Failed)


@pytest.mark.parametrize("name", ["argmax", "topk"])
def test_indices_are_graded(name):
    declared, case = small(name)
    expectation, _ = expected_call(declared, case)
    right = tuple(o.rounded for o in expectation.outputs)
    assert isinstance(grade(declared, expectation, returned(*right)), Passed)
    wrong = tuple(torch.zeros_like(t) for t in right)
    assert isinstance(grade(declared, expectation, returned(*wrong)), Failed)


def test_what_the_operator_refuses_is_raised():
    def refuse(x):
        raise RuntimeError("no such operator")

    declared = declare("refuse(x[M, N])", refuse)
    case = case_of(declared)
    inputs = inputs_at(declared, case, pools_of(declared, case), {"x": Choice()})
    with pytest.raises(RuntimeError, match="no such operator"):
        expect_timed(declared, case, inputs)


def sampled(declared, compute, *, dtype="float32", change=lambda lines: lines):
    """How samples of three calls are judged, if `compute` gave the results."""
    case = case_of(declared, dtype=dtype)
    calls = [expected_call(declared, case, index) for index in (0, 1, 0)]
    outputs = [compute(**tensors).reshape(-1) for _, tensors in calls]
    count = outputs[0].numel()
    spots = (count - 1, 0, count // 2, 0)
    lines = torch.stack([o[torch.tensor(spots)] for o in outputs])
    return grade_spots(declared, [e for e, _ in calls], [spots], returned(change(lines)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_right_elements_of_several_calls_pass(dtype):
    found = sampled(SOFTMAX, lambda x: torch.softmax(x, -1), dtype=dtype)
    assert isinstance(found, Passed), found


@pytest.mark.parametrize("line", range(3))
def test_one_wrong_element_of_one_call_is_seen(line):
    def changed(lines):
        lines[line, 2] += 1e-3
        return lines

    found = sampled(SOFTMAX, lambda x: torch.softmax(x, -1), change=changed)
    assert isinstance(found, Failed)
    assert found.detail.startswith("1 of 12 elements")


def test_elements_of_another_call_are_wrong():
    found = sampled(SOFTMAX, lambda x: torch.softmax(x, -1), change=lambda lines: lines.flip(0))
    assert isinstance(found, Passed)
    found = sampled(SOFTMAX, lambda x: torch.softmax(x, -1), change=lambda lines: lines.roll(1, 0))
    assert isinstance(found, Failed)


LARGEST = declare("argmax(x[M, N])", lambda x: x.argmax(-1), outputs=(Output(dtype="int64"),))
TURNED = declare(
    "turned(x[M, N])", lambda x: torch.complex(x, -x), outputs=(Output(dtype="complex"),)
)


@pytest.mark.parametrize(
    ("declared", "right", "wrong"),
    [
        (LARGEST, lambda x: x.argmax(-1), lambda x: x.argmin(-1)),
        (TURNED, lambda x: torch.complex(x, -x), lambda x: torch.complex(x, x)),
    ],
    ids=["indices", "complex"],
)
def test_elements_that_are_no_floats_are_judged_too(declared, right, wrong):
    assert isinstance(sampled(declared, right), Passed)
    assert isinstance(sampled(declared, wrong), Failed)


def test_claims_about_the_whole_are_left_out():
    def claims(evidence):
        yield Claim("no more than there is", float(evidence.outputs[0].numel()), 5.0)

    whole = replace(RELU, claims=claims)
    assert isinstance(sampled(whole, torch.relu), Passed)
    assert isinstance(sampled(whole, torch.neg), Failed)


def test_a_sample_of_another_form_is_no_right_one():
    expectation, _ = expected_call(RELU, case_of(RELU))
    seen = Observation(ended="returned", results=(OtherResult(type="sample", text="odd"),))
    found = grade_spots(RELU, [expectation], [(0,)], seen)
    assert (type(found), found.detail) == (Failed, "odd")


@pytest.mark.parametrize(
    ("name", "alone"),
    [("softmax", True), ("log1p", False), ("svd", False), ("eig", False), ("gelu_int8", False)],
)
def test_where_elements_are_right_together_only_none_is_judged_alone(name, alone):
    declared = find(f"kernelbenchx/{name}")
    assert spotwise(declared, expected_call(declared, case_of(declared))[0]) is alone


def test_what_is_written_in_place_is_judged_as_a_whole():
    assert not spotwise(IN_PLACE, expected_call(IN_PLACE, case_of(IN_PLACE))[0])


def _claims(works):
    """Claims that raise an error for what `works` refuses."""

    def claims(evidence):
        if not works(evidence.outputs[0]):
            raise RuntimeError("no such claim")
        yield Claim("nothing", 0.0, 0.0)

    return claims


def test_claims_that_no_result_lets_compute_are_not_the_candidates_fault():
    declared = replace(
        RELU,
        outputs=(Output(compare="claims"),),
        claims=_claims(lambda out: False),
    )
    found = verdict(declared, case_of(declared), lambda x: x.relu())
    assert isinstance(found, Infra)
    assert "no such claim" in found.reason


def test_claims_that_its_own_result_breaks_are_the_candidates_fault():
    declared = replace(
        RELU,
        outputs=(Output(compare="claims"),),
        claims=_claims(lambda out: bool(out.isfinite().all())),
    )
    assert_fails(declared, case_of(declared), lambda x: x.relu() + torch.nan)
