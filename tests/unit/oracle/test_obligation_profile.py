"""What becomes of each obligation while a candidate's cases are judged."""

from dataclasses import replace

import pytest
import torch
from scripted import RELU, declare, returned, session_of

from kerneltruth.cases.published import published_case
from kerneltruth.documents.records import OBLIGATIONS
from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.attempt import judge_cases
from kerneltruth.oracle.case_status import UNREACHED
from kerneltruth.oracle.obligations import departures, obligations_of
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.profile import (
    REFUSED_AS_PUBLISHED,
    REFUSED_WITHOUT,
    SAME_WITHOUT,
    UNPROMISED_GRADIENTS,
    WRONG_AS_PUBLISHED,
)
from kerneltruth.runner.observation import Access, Binary, Launch, Observation
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.registry import TASKS, suites, tasks_of
from kerneltruth.tasks.spec import Variants

HANGS = Observation(ended="timeout")
REFUSAL = Observation(ended="raised", error="ValueError", message="not contiguous")
SCALED = declare(
    "scaled(x[M, N], scale=2.0)",
    lambda x, scale: x * scale,
    attributes={"scale": (2.0, 0.5)},
)

FOR_FLOAT32 = declare(
    "relu(x[M, N])", lambda x: torch.relu(x), promises=Promises(dtypes=("float32",))
)


def right(call):
    return call.tensors["x"].clamp(min=0)


def attempt_of(answer, task=RELU, cases=48, plan=None, **runner):
    session = session_of(task, answer, **runner)
    *_, ended = judge_cases(session, replace(plan or Plan(), cases=cases))
    return ended.attempt


def statuses(attempt):
    return {key: entry.status for key, entry in attempt.profile.items()}


def factor(call):
    return next((a.value for a in call.arguments if a.name == "scale"), 2.0)


def with_status(attempt, status):
    return [key for key, found in statuses(attempt).items() if found == status]


def is_dense(call):
    (argument,) = call.arguments
    return argument.strides == (argument.shape[1], 1)


def test_a_right_candidate_holds_all_that_is_tried():
    attempt = attempt_of(right)
    assert with_status(attempt, "broken") == with_status(attempt, "refused") == []
    assert {"published", "shapes", "values", "layouts", "specials", "memory", "repeatable"} <= {
        *with_status(attempt, "held")
    }
    assert attempt.profile["gradients"].reason == UNPROMISED_GRADIENTS


def test_a_number_of_one_value_is_said_to_be_not_tried():
    fixed = declare("scaled(x[M, N], scale=2.0)", lambda x, scale: x * scale)
    attempt = attempt_of(
        lambda call: call.tensors["x"] * 2, task=fixed, plan=Plan(contract="torch")
    )
    entry = attempt.profile["attributes"]
    assert (attempt.verdict.word, attempt.score) == ("pass", 1.0)
    assert (entry.status, entry.decisive) == ("not_tried", False)
    assert entry.reason == "the task lists only one value of scale"
    varied = attempt_of(lambda call: call.tensors["x"] * 2, task=SCALED).profile["attributes"]
    assert varied.status == "broken"


def test_a_candidate_that_is_wrong_on_strided_input_alone_breaks_that_alone():
    attempt = attempt_of(lambda call: right(call) if is_dense(call) else right(call) + 100)
    assert with_status(attempt, "broken") == ["layouts"]
    assert attempt.profile["layouts"].failure.case.layout != "contiguous"
    assert attempt.profile["dtypes.float16"].status == "held"
    # The others go on within the same budget of cases.
    assert attempt.cases == 48


def test_a_simpler_case_that_is_refused_does_not_fail_alike():
    def answer(call):
        if call.tensors["x"].shape[1] != 71:
            return right(call)
        return REFUSAL if is_dense(call) else right(call) + 100

    attempt = attempt_of(answer)
    assert with_status(attempt, "broken") == ["layouts"]
    assert with_status(attempt, "refused") == ["shapes"]


def test_what_does_not_compile_beyond_the_prompt_alone_is_declined():
    refused = Observation(
        ended="returned",
        binaries=(Binary(kernel="k", target="sm_90", ok=False, error="no registers"),),
    )
    compiled = Observation(
        ended="returned", binaries=(Binary(kernel="k", target="sm_90", ok=True),)
    )
    # A kernel is specialized for strides, so each layout is compiled by itself.
    kernel = lambda call: Launch(
        kernel="k", grid=(1,), constants={"DENSE": is_dense(call)}, signature={}
    )
    attempt = attempt_of(
        lambda call: returned(right(call), launches=(kernel(call),)),
        targets=("sm_90",),
        compiled=lambda call: compiled if is_dense(call) else refused,
    )
    assert attempt.verdict.word == "pass"
    assert with_status(attempt, "refused") == ["layouts"]


def test_a_refusal_is_no_break():
    attempt = attempt_of(lambda call: right(call) if is_dense(call) else REFUSAL)
    assert with_status(attempt, "broken") == []
    assert with_status(attempt, "refused") == ["layouts"]
    assert attempt.profile["layouts"].reason == "ValueError: not contiguous"
    assert attempt.verdict.word == "pass"


def test_two_faults_break_two_obligations():
    def answer(call):
        off = 100 * (not is_dense(call)) + 100 * bool(call.tensors["x"].isnan().any())
        return right(call) + off

    assert with_status(attempt_of(answer), "broken") == ["layouts", "specials"]


@pytest.mark.parametrize(
    ("status", "wrong", "tried", "untried"),
    [
        ("broken", lambda call: right(call) + 100, SAME_WITHOUT, WRONG_AS_PUBLISHED),
        ("refused", lambda call: REFUSAL, REFUSED_WITHOUT, REFUSED_AS_PUBLISHED),
    ],
)
def test_a_kernel_that_fails_everywhere_is_tried_once_in_each_way(status, wrong, tried, untried):
    calls = []
    attempt = attempt_of(lambda call: calls.append(call) or wrong(call))
    assert with_status(attempt, status) == ["published"]
    for key in ("shapes", "values", "dtypes.float16", "layouts", "specials"):
        assert attempt.profile[key].reason == tried
    assert attempt.profile["memory"].reason == untried
    assert len(calls) <= 24
    assert attempt.cases <= 14


PARTLY = {
    "sizes": lambda call, x: x.shape[1] == 5,
    "rows": lambda call, x: x.shape[0] == 3,
    "dtype": lambda call, x: x.dtype == torch.float32,
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", PARTLY)
@pytest.mark.parametrize("status", ["broken", "refused"])
def test_what_fails_as_published_and_not_everywhere_is_tried_in_all_else(how, status, seed):
    def answer(call):
        if not PARTLY[how](call, call.tensors["x"]):
            return right(call)
        return REFUSAL if status == "refused" else right(call) + 100

    attempt = attempt_of(answer, plan=Plan(seed=seed))
    assert with_status(attempt, "broken") + with_status(attempt, "refused") == ["published"]
    assert {"shapes", "values", "dtypes.float16", "dtypes.bfloat16", "layouts", "specials"} <= {
        *with_status(attempt, "held")
    }
    assert attempt.score > 0.7


def test_a_second_fault_is_found_where_the_published_inputs_fail():
    answer = lambda call: (
        right(call) + 100 * (call.tensors["x"].shape[1] == 5 or not is_dense(call))
    )
    assert with_status(attempt_of(answer), "broken") == ["published", "layouts"]


def test_a_fault_of_one_attribute_value_is_of_the_attributes():
    attempt = attempt_of(lambda call: call.tensors["x"] * 2.0, task=SCALED)
    assert with_status(attempt, "broken") == ["attributes"]


@pytest.mark.parametrize(
    ("wrong_if", "broken"),
    [
        (lambda a, b, dims: not isinstance(dims, int), ["attributes"]),
        (lambda a, b, dims: dims == 1, ["attributes"]),
        (lambda a, b, dims: a.shape[1] == 1 != b.shape[0], ["shapes"]),
        (lambda a, b, dims: False, []),
    ],
)
def test_a_value_of_an_argument_that_follows_from_a_form_is_of_the_attributes(wrong_if, broken):
    def answer(call):
        a, b = call.tensors["a"], call.tensors["b"]
        dims = next(x.value for x in call.arguments if x.name == "dims")
        return torch.tensordot(a, b, dims) + (100 if wrong_if(a, b, dims) else 0)

    attempt = attempt_of(answer, task=TASKS["tritonbench/tensordot"], plan=Plan(domain="core"))
    assert with_status(attempt, "broken") == broken
    assert {"attributes", "shapes"} <= {*broken, *with_status(attempt, "held")}


TWICE = declare(
    "twice(a[M, N]: matrix(_matrix), _matrix='shuffled')",
    lambda a: a * 2,
    {"M": "spatial", "N": "spatial"},
    attributes={"_matrix": ("steep",)},
    benchmark={"M": 16, "N": 16},
)


@pytest.mark.parametrize(
    ("wrong_if", "broken"),
    [
        (lambda a: 1e4 < torch.linalg.cond(a.double()) < 1e6, ["values"]),
        (lambda a: a.shape != (16, 16), ["shapes"]),
        (lambda a: False, []),
    ],
)
def test_another_form_of_a_matrix_is_of_the_values(wrong_if, broken):
    def answer(call):
        a = call.tensors["a"]
        return a * 2 + (100 if wrong_if(a) else 0)

    plan = Plan(domain="core", dtypes=("float32",))
    attempt = attempt_of(answer, task=TWICE, plan=plan)
    assert with_status(attempt, "broken") == broken


def test_a_kernel_that_is_wrong_at_zeros_alone_breaks_values_and_not_specials():
    def answer(call):
        return right(call) + (call.tensors["x"] == 0)

    attempt = attempt_of(answer, plan=Plan(strategies=("nan_injected", "adversarial")))
    assert "values" in with_status(attempt, "broken")
    assert "specials" not in with_status(attempt, "broken")


def test_an_ordinary_case_that_is_refused_counts_where_a_special_one_showed_it():
    plan = Plan(strategies=("nan_injected",))
    attempt = attempt_of(lambda call: REFUSAL, plan=plan)
    assert attempt.verdict.word == "runtime_error"
    assert "specials" not in with_status(attempt, "refused")


def test_a_call_that_does_not_return_ends_its_obligation_alone():
    attempt = attempt_of(lambda call: right(call) if is_dense(call) else HANGS)
    assert with_status(attempt, "broken") == ["layouts"]
    assert attempt.verdict.word == "pass"
    assert attempt.hazards["layouts"].startswith("does not return in time on transposed inputs: ")


def test_nothing_is_called_after_two_calls_that_do_not_return():
    calls = []

    def hangs(call):
        calls.append(call)
        return right(call) if call.tensors["x"].shape[1] < 20 else HANGS

    attempt = attempt_of(hangs)
    assert attempt.verdict.word == "timeout"
    assert sum(call.tensors["x"].shape[1] >= 20 for call in calls) <= 2


def test_published_inputs_that_do_not_return_are_enough():
    calls = []
    attempt = attempt_of(lambda call: calls.append(call) or HANGS)
    assert (attempt.verdict.word, len(calls)) == ("timeout", 1)
    assert attempt.profile["shapes"].reason == "the candidate's time, 20 s, is spent"


def test_a_candidate_that_runs_out_of_its_time_keeps_what_was_tried():
    calls = []

    def ends_in_the_second(call):
        calls.append(call)
        if len(calls) == 1:
            return right(call)
        return HANGS

    attempt = attempt_of(ends_in_the_second, plan=Plan(budget_s=1.0))
    assert attempt.verdict.word == "timeout"
    assert with_status(attempt, "held") == ["published", "interface", "memory"]
    assert attempt.profile["shapes"].reason == "the candidate's time, 1 s, is spent"


def test_the_judges_own_work_takes_none_of_the_candidates_time():
    """References of published sizes take minutes where many judges share a machine."""
    session = session_of(RELU, right)

    class Slow:
        def __getattr__(self, name):
            return getattr(known, name)

        def get(self, task, case):
            session.runner.spent_s += 100.0
            return known.get(task, case)

    known, session.cache = session.cache, Slow()
    *_, ended = judge_cases(session, Plan(cases=16, budget_s=1.0))
    assert ended.attempt.verdict == Passed()


# There is time for every case at its own size.
UNHURRIED = Plan(budget_s=1e5)


def _large_ones_time_out(seconds_an_element):
    """A kernel at this pace, whose calls of many elements do not return in 5 s."""

    def answer(call):
        x = call.tensors["x"]
        if x.numel() > 20_000:
            return HANGS
        return returned(right(call), seconds=seconds_an_element * x.numel())

    return answer


def test_a_right_kernel_may_be_too_slow_for_the_interpreter():
    answer = _large_ones_time_out(1e-4)
    attempt = attempt_of(answer, language="triton", plan=UNHURRIED)
    assert attempt.verdict.word == "pass"
    assert attempt.profile["shapes"].status == "held"
    (reason,) = attempt.skipped
    assert reason.startswith("too large for Triton's interpreter: about ")


def test_operations_explain_what_elements_do_not():
    cubed = declare("cubed(x[M, N])", lambda x: torch.relu(x), flops="(M*N)**2")

    def answer(call):
        n = call.tensors["x"].numel()
        return HANGS if n > 20_000 else returned(right(call), seconds=1e-8 * n * n)

    attempt = attempt_of(answer, task=cubed, language="triton", plan=UNHURRIED)
    assert attempt.verdict.word == "pass"
    (reason,) = attempt.skipped
    assert reason.startswith("too large for Triton's interpreter: about ")
    linear = replace(cubed, flops="M*N")
    attempt = attempt_of(answer, task=linear, language="triton", plan=UNHURRIED)
    assert attempt.verdict.word == "timeout"


def test_after_one_call_that_is_too_large_no_other_is_made():
    calls = []

    def answer(call):
        calls.append(call.tensors["x"].numel())
        return _large_ones_time_out(1e-4)(call)

    attempt_of(answer, language="triton", cases=144, plan=UNHURRIED)
    assert sum(n > 20_000 for n in calls) == 1


@pytest.mark.parametrize(
    ("pace", "language", "device"),
    [(1e-7, "triton", "cpu"), (1e-4, "torch", "cpu"), (1e-4, "triton", "cuda:0")],
)
def test_a_call_that_does_not_return_is_broken_unless_the_interpreter_explains_it(
    pace, language, device
):
    attempt = attempt_of(_large_ones_time_out(pace), language=language, device=device)
    assert (attempt.verdict.word, attempt.profile["shapes"].status) == ("timeout", "broken")


WIDE = declare("relu(x[M, N])", lambda x: torch.relu(x), benchmark={"M": 16, "N": 256})


def _interpreted(seconds_of):
    """A kernel whose calls take that long by their elements; those of over 5 s do not return."""
    calls = []

    def answer(call):
        x = call.tensors["x"]
        calls.append(x.numel())
        seconds = seconds_of(x)
        return HANGS if seconds > 5.0 else returned(right(call), seconds=seconds)

    return attempt_of(answer, task=WIDE, language="triton"), calls


def test_published_inputs_are_tried_at_the_largest_size_that_the_interpreter_allows():
    attempt, calls = _interpreted(lambda x: 0.1 + 2e-3 * x.numel())
    assert attempt.verdict.word == "pass"
    published = attempt.profile["published"]
    assert published.status == "held"
    assert published.reason == "tried at M=4 N=256; the benchmark has M=16 N=256"
    assert calls[:6] == [4096, 128, 256, 512, 1024, 1024]
    assert not with_status(attempt, "broken")


def test_what_is_wrong_at_small_sizes_may_be_too_slow_at_the_published_one():
    def answer(call):
        x = call.tensors["x"]
        if x.shape == (16, 256):
            return HANGS
        return returned(right(call) + (x.shape[1] % 256 > 0), seconds=3e-3 * x.numel())

    attempt = attempt_of(answer, task=WIDE, language="triton", plan=Plan(contract="published"))
    assert attempt.profile["published"].status == "held"
    assert attempt.verdict.word == "pass"


@pytest.mark.parametrize(
    ("seconds_of", "most"),
    [
        (lambda x: 6.0, 2),
        (lambda x: 1e-3 if x.shape[0] < 16 else 6.0, 6),
        (lambda x: 1e-3 if x.shape[1] < 200 else 6.0, 3),
        # What every call takes explains nothing.
        (lambda x: 1.0 if x.shape[0] < 16 else 6.0, 6),
    ],
)
def test_published_inputs_that_smaller_calls_do_not_explain_break_published(seconds_of, most):
    attempt, calls = _interpreted(seconds_of)
    assert (attempt.verdict.word, attempt.profile["published"].status) == ("timeout", "broken")
    assert len(calls) <= most


@pytest.mark.slow
def test_a_slow_right_kernel_keeps_what_was_tried_when_its_time_is_spent():
    calls = []

    def slow(call):
        calls.append(call)
        return returned(right(call), seconds=0.4)

    attempt = attempt_of(slow, plan=Plan(budget_s=2.0))
    assert attempt.verdict.word == "timeout"
    assert 2 <= attempt.cases == attempt.profile["published"].cases + len(calls) - 1 < 10
    assert not with_status(attempt, "broken")
    held, untried = with_status(attempt, "held"), with_status(attempt, "not_tried")
    assert "published" in held
    reasons = {attempt.profile[key].reason for key in untried if key != "gradients"}
    assert reasons >= {"the candidate's time, 2 s, is spent"}


def test_a_rare_value_that_a_larger_size_draws_breaks_values_and_not_shapes():
    def rarely_wrong(call):
        x = call.tensors["x"]
        return right(call) + ((x > 0.998) & (x < 1))

    assert with_status(attempt_of(rarely_wrong, cases=96), "broken") == ["values"]


def test_a_size_of_which_each_value_is_wrong_breaks_shapes():
    attempt = attempt_of(lambda call: right(call) + (call.tensors["x"].shape[1] > 20))
    assert "shapes" in with_status(attempt, "broken")


def test_stray_writes_are_a_matter_of_memory():
    def writes(call):
        hit = Observation(ended="returned", guards_hit=("x",), results=())
        return hit if call.tensors["x"].shape[1] > 30 else right(call)

    assert with_status(attempt_of(writes), "broken") == ["memory"]


@pytest.mark.parametrize(
    ("departs", "also"),
    [
        (lambda call: call.tensors["x"].shape[1] > 30, "shapes"),
        (lambda call: factor(call) != 2.0, "attributes"),
    ],
)
def test_wrong_values_with_stray_reads_break_the_memory_and_what_the_case_tries(departs, also):
    stray = Access(
        kernel="k", line=7, write=False, program=(0, 0, 0), buffer="x", element=1, elements=1
    )

    def reads_beyond(call):
        value = call.tensors["x"] * factor(call)
        return returned(value + 100, accesses=(stray,)) if departs(call) else value

    attempt = attempt_of(reads_beyond, task=SCALED)
    assert attempt.verdict.kind == "out_of_bounds"
    assert with_status(attempt, "broken") == sorted(["memory", also], key=OBLIGATIONS.index)


def test_another_dtype_of_right_values_breaks_the_interface():
    attempt = attempt_of(lambda call: right(call).double())
    assert with_status(attempt, "broken") == ["interface"]
    assert attempt.profile["values"].status == "held"


@pytest.mark.parametrize(("contract", "word"), [("core", "pass"), ("torch", "fail")])
def test_results_in_another_dtype_decide_where_the_contract_asks_for_what_they_depart_in(
    contract, word
):
    def widened(call):
        result = right(call)
        return result.float() if result.dtype == torch.float16 else result

    attempt = attempt_of(widened, task=FOR_FLOAT32, plan=Plan(contract=contract))
    assert attempt.verdict.word == word
    assert with_status(attempt, "broken") == ["dtypes.float16"]
    assert (attempt.failed > 0) == (word == "fail")


def test_what_does_not_load_has_no_obligation_tried():
    failed = Observation(ended="load_failed", error="SyntaxError", message="bad")
    attempt = attempt_of(right, loaded=failed)
    assert set(statuses(attempt).values()) == {"not_tried", "not_applicable"}
    assert attempt.profile["published"].reason == "compile_error on loading"


def test_what_the_budget_does_not_reach_is_not_tried():
    attempt = attempt_of(right, cases=2)
    assert attempt.profile["layouts"].reason == UNREACHED


FAULTS = {
    "large": lambda call, x: (x.abs() > 100).any(),
    "nan": lambda call, x: x.isnan().any(),
    "half large": lambda call, x: x.dtype == torch.float16 or (x.abs() > 100).any(),
    "odd large": lambda call, x: x.shape[1] % 2 and (x.abs() > 10).any(),
    "strided": lambda call, x: not is_dense(call),
    "large as published or special": lambda call, x: (
        x.isnan().any() or x.isinf().any() or (x.shape[1] == 5 and (x.abs() > 100).any())
    ),
    "half, or ordinary as published": lambda call, x: (
        (x.dtype == torch.float16 and x.shape[1] != 5) or (x.shape[1] == 5 and (x.abs() > 20).any())
    ),
    "one row": lambda call, x: x.shape[0] == 1 or (x.abs() > 500).any(),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fault", FAULTS)
def test_the_case_that_an_entry_shows_departs_in_what_the_entry_is_about(fault, seed):
    wrong = lambda call: right(call) + 100 * bool(FAULTS[fault](call, call.tensors["x"]))
    attempt = attempt_of(wrong, plan=Plan(seed=seed))
    published = published_case(RELU, seed=seed, device="cpu")
    shown = {k: e.failure.case for k, e in attempt.profile.items() if e.failure is not None}
    assert shown
    for key, case in shown.items():
        assert key in {d.key for d in departures(RELU, case, published)} | {"published"}, shown


@pytest.mark.parametrize("suite", suites())
def test_every_task_has_the_obligations_that_no_operator_is_without(suite):
    for task in tasks_of(suite).values():
        keys = [d.key for d in obligations_of(task)]
        assert len(set(keys)) == len(keys)
        assert {"published", "shapes", "interface", "memory", "repeatable"} <= {*keys}


def test_an_operator_of_integers_has_no_special_values():
    keys = {d.key for d in obligations_of(tasks_of("core")["gcd"])}
    assert not keys & {"specials", "gradients"}


def test_the_same_seed_gives_the_same_profile():
    answer = lambda call: torch.where(call.tensors["x"] > 9, 0, right(call))
    assert statuses(attempt_of(answer)) == statuses(attempt_of(answer))


def test_what_takes_an_unpromised_departure_beside_a_promised_one_breaks_the_unpromised():
    def answer(call):
        odd = call.tensors["x"].shape[1] % 2 and call.tensors["x"].shape[1] != 5
        return right(call) + (100 if odd and not is_dense(call) else 0)

    attempt = attempt_of(answer)
    assert attempt.verdict.word == "pass"
    assert with_status(attempt, "broken") == ["layouts"]
    assert [*attempt.hazards] == ["layouts"]


def test_what_takes_two_promised_departures_breaks_the_more_unusual_of_them():
    def answer(call):
        sizes = call.tensors["x"].abs()
        large = bool(((sizes > 300) & sizes.isfinite()).any())
        odd = call.tensors["x"].shape[1] % 2 and call.tensors["x"].shape[1] != 5
        return right(call) + (1e6 if odd and large else 0)

    attempt = attempt_of(answer)
    assert attempt.verdict.word == "fail"
    assert with_status(attempt, "broken") == ["values"]
    assert attempt.profile["values"].decisive


ADD = declare(
    "add(x[M, N], y[*shape])",
    lambda x, y: x + y,
    where={"shape": Variants("_y", {"same": "M, N", "row": "N", "column": "M, 1"})},
    extended={"_y": ("column",)},
)


@pytest.mark.parametrize(
    ("wrong", "word", "broken"),
    [("row", "fail", "shapes"), ("column", "pass", "shapes.beyond")],
)
def test_broadcasting_fails_where_it_is_promised_and_is_a_hazard_elsewhere(wrong, word, broken):
    def answer(call):
        x, y = call.tensors["x"], call.tensors["y"]
        form = "row" if y.ndim == 1 else "column" if y.shape != x.shape else "same"
        return x + y + 100 * (form == wrong)

    attempt = attempt_of(answer, task=ADD)
    assert attempt.verdict.word == word
    assert with_status(attempt, "broken") == [broken]
    others = {"shapes", "shapes.beyond"} - {broken}
    assert {key: attempt.profile[key].status for key in others} == dict.fromkeys(others, "held")
    assert [*attempt.hazards] == ([broken] if word == "pass" else [])
