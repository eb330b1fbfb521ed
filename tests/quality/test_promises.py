"""Every promise of every task is tried, in the default number of cases."""

import ast

import pytest

from kerneltruth.cases.promised import Promise, promises_of
from kerneltruth.cases.published import published_case
from kerneltruth.cases.strategies import generate
from kerneltruth.corpus.eager import eager_source
from kerneltruth.engine.requests import CASES
from kerneltruth.oracle.dealing import deal
from kerneltruth.oracle.obligations import departures, obligations_of
from kerneltruth.oracle.plan import Plan
from kerneltruth.suites.listing import show_task
from kerneltruth.suites.terms import sentence
from kerneltruth.tasks.model import CALL, PUBLISHED
from kerneltruth.tasks.registry import TASKS, eager_modules
from kerneltruth.tasks.sentences import QUOTED

# What `run` judges at most of one candidate: more would cost its throughput.
MOST = 40


def cases_of_run(task, *, seed, device):
    """The cases that `run` judges of a task, if each of them can be."""
    plan = Plan(seed=seed, cases=CASES, promises=True)
    published = published_case(task, seed=seed, device=device)
    dealt = deal(task, plan, published, device=device)
    return [published, *dealt.firsts, *dealt.others][: dealt.total]


@pytest.mark.slow
def test_every_promise_is_tried():
    untried = {}
    for key, task in TASKS.items():
        cases = cases_of_run(task, seed=0, device="cuda")
        promises = promises_of(task)
        assert promises, key
        assert len(cases) <= MOST, key
        untried[key] = [str(p) for p in promises if not any(map(p.tried_by, cases))]
    assert {key: left for key, left in untried.items() if left} == {}


@pytest.mark.slow
def test_what_a_promised_case_departs_in_decides():
    for key, task in TASKS.items():
        decides = {d.key: d.promised for d in obligations_of(task)}
        published, *cases = cases_of_run(task, seed=0, device="cpu")
        departing = {d for c in cases if c.domain == "core" for d in departures(task, c, published)}
        assert [d for d in departing if not decides.get(d.key, d.promised)] == [], key


def broadcasts(task, name, value):
    """Whether a form stretches some tensors, while the others stay as they are."""
    usual = {a.name: a.default for a in task.attributes}
    pairs = [(task.axes(s, usual), task.axes(s, usual | {name: value})) for s in task.tensors]
    changed = [(full, seen) for full, seen in pairs if full != seen]
    stretched = all(
        len(seen) <= len(full)
        and all(a in ("1", b) for a, b in zip(reversed(seen), reversed(full), strict=False))
        for full, seen in changed
    )
    return 0 < len(changed) < len(pairs) and stretched


def needs_sentence(task, promise):
    """Whether a promise goes beyond what decides by this project's choice.

    The published inputs, other values and other numbers of dims do; broadcasting does not.
    """
    usual = {a.name: a.default for a in task.attributes}
    match promise.kind:
        case "attribute" if promise.name.startswith("_") and promise.name != CALL:
            quoted = task.suite in QUOTED and promise.name not in ("_rank", "_batched")
            return quoted and broadcasts(task, promise.name, promise.value)
        case "attribute":
            return repr(promise.value) != repr(usual[promise.name])
        case "dtype":
            return promise.name != task.promised_dtypes[0]
        case "absent":
            return not promise.name.startswith("_")
        case "recipe":
            return False
        case _:
            return True


def test_every_promise_has_the_sentence_that_makes_it():
    unsaid = [
        f"{key}: {promise}"
        for key, task in TASKS.items()
        for promise in promises_of(task)
        if needs_sentence(task, promise) and not sentence(task, promise)
    ]
    assert unsaid == []


def test_broadcasting_is_beyond_the_core_where_no_sentence_promises_it():
    for key, form in (
        ("kernelbenchx/mul", {"_form": "row"}),
        ("kernelbenchx/bitwise_and_binomial", {"_trials": "row"}),
        ("kernelbenchx/fused_sub_gelu", {"_other": "row"}),
        ("kernelbenchx/binary_cross_entropy", {"_weight": "row"}),
        ("kernelbenchx/matmul_fp16", {"_batched": "one other"}),
        ("tritonbench/scaled_add_dot", {"_x": "one"}),
    ):
        task, ((name, value),) = TASKS[key], form.items()
        said = sentence(task, Promise(kind="attribute", name=name, value=value))
        assert task.is_core(form) == bool(said), key
        published = published_case(task, seed=0, device="cpu")
        (departure,) = departures(task, published.with_attributes(**form), published)
        assert departure.key == ("shapes" if said else "shapes.beyond")
        beyond = [
            c for c in cases_of_run(task, seed=0, device="cpu") if not task.is_core(c.settings)
        ]
        assert bool(beyond) == ("shapes.beyond" in {d.key for d in obligations_of(task)}), key


def _parameters(task):
    """The parameters of the published entry, which PyTorch's own function in its place has."""
    tree = ast.parse(eager_source(eager_modules(task.suite)[task.key]))
    entries = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == task.entry)
    given = next(entries).args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return ["out" if name == "out_tensor" else name for name in names]


def test_every_argument_of_a_published_entry_is_tried_or_says_why_not():
    for key, task in TASKS.items():
        if task.suite not in PUBLISHED:
            continue
        tried = {*task.call_order(), *(("out",) if task.promises.out else ())}
        not_tried = task.promises.not_tried
        assert [n for n in _parameters(task) if n not in {*tried, *not_tried}] == [], key
        assert not tried & {*not_tried}, key
        assert all(not_tried.values()), key


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("name", "recipe", "mode"),
    [
        ("batch_norm", "far_from_zero", "training"),
        ("gelu", "exp_edge", "approximate"),
        ("cross_entropy", "large", "reduction"),
        # Some sizes leave one element to each channel, of which there is no variance.
        ("fused_relu_batch_norm_conv2d", "channel_offsets", "training"),
    ],
)
def test_promised_values_are_tried_in_each_mode(name, recipe, mode, seed):
    task = TASKS[f"kernelbenchx/{name}"]
    cases = [c for c in generate(task, seed=seed, count=MOST) if c.recipe == recipe]
    modes = next(a.values for a in task.attributes if a.name == mode)
    assert {c.settings[mode] for c in cases} == {*modes}


def test_what_is_not_tried_is_shown():
    shown = show_task("rand", "kernelbenchx").tasks[0]
    assert shown.not_tried["generator"]


def test_a_promise_is_listed_with_the_cases_that_try_it():
    task = TASKS["kernelbenchx/conv2d"]
    cases = list(generate(task, seed=0, count=40))
    tried = {str(p): [c.summary() for c in cases if p.tried_by(c)] for p in promises_of(task)}
    assert tried["dtype float32"]
    assert tried["bias=None in float32"]
    assert tried["stride=2"]
    assert all("float32" in case or "complex64" in case for each in tried.values() for case in each)


def test_what_pytorch_lacks_on_a_gpu_in_one_dtype_is_tried_in_others():
    task = TASKS["kernelbenchx/solve_symmetric_ldl"]
    cases = [c for seed in range(4) for c in generate(task, seed=seed, count=80, device="cuda")]
    tried = {(c.dtype, c.settings["hermitian"]) for c in cases}
    assert ("complex64", True) not in tried
    assert {("complex64", False), ("float32", True)} <= tried
    assert "hermitian=True in complex64" in task.promises.not_tried


def test_what_no_prompt_promises_is_tried_but_may_be_refused():
    task = TASKS["kernelbenchx/conv2d"]
    half = [c for c in generate(task, seed=0, count=40) if c.dtype == "float16"]
    assert half
    assert {c.domain for c in half} == {"extended"}
    assert not any(Promise(kind="dtype", name="float16").tried_by(c) for c in half)


def test_a_name_that_says_a_dtype_promises_it():
    assert TASKS["kernelbenchx/matmul_fp16"].promised_dtypes == ("float16",)
    assert TASKS["kernelbenchx/gelu_int8"].promised_dtypes == ("int8",)
    assert TASKS["softmax"].promised_dtypes == ("float32", "float16", "bfloat16")


@pytest.mark.parametrize("name", ["bitwise_and", "fused_mul_sub", "fused_sub_gelu", "zeta"])
def test_broadcasting_that_no_prompt_names_may_be_refused(name):
    task = TASKS[f"kernelbenchx/{name}"]
    forms = {"row", "column", "single", "outer", "deep"}
    tried = [c for c in generate(task, seed=0, count=40) if forms & {*c.settings.values()}]
    assert tried
    assert {c.domain for c in tried} == {"extended"}


@pytest.mark.parametrize(
    ("name", "settings", "promised"),
    [
        # Named by their prompts: broadcasting, each argument, pairs and padding by name.
        ("fused_mul_add_logsoftmax_dropout_bmm", {"_input2": "plane"}, True),
        ("normalized_cosine_similarity", {"_x2": "one"}, True),
        ("fused_silu_layer_norm_conv2d", {"conv_groups": 2}, True),
        ("fused_cross_entropy_log_softmax", {"dim": 0}, True),
        ("fused_conv2d_add", {"stride": (2, 1), "dilation": (1, 2)}, True),
        ("fused_relu_max_pool2d_conv2d", {"conv_padding": "same", "pool_stride": (2, 1)}, True),
        ("invert_matrix_lu", {"_rank": 3}, True),
        ("grid_sample", {"mode": "bicubic"}, True),
        # Not named by them.
        ("fused_silu_layer_norm_conv2d", {"conv_stride": (1, 2)}, False),
        ("fused_sigmoid_batch_norm", {"_rank": 4}, False),
        ("fused_softplus_linear", {"_rank": 1}, False),
        ("linear_w4a16", {"_rank": 3}, False),
        ("matmul_bf16", {"_batched": True}, False),
        ("mean", {"dim": None}, False),
        ("solve_and_add_scaled_vector", {"_y": "matrix"}, False),
    ],
)
def test_what_a_prompt_names_is_promised_and_nothing_else(name, settings, promised):
    assert TASKS[f"kernelbenchx/{name}"].is_core(settings) == promised


def test_a_tensor_that_a_prompt_asks_for_is_always_there():
    optional = {t.name for t in TASKS["kernelbenchx/fused_add_mul_groupnorm"].tensors if t.optional}
    assert not optional


@pytest.mark.parametrize("name", ["conv2d", "fused_leaky_relu_conv2d", "fused_conv2d_add"])
def test_layouts_are_tried_with_windows_that_are_smaller_than_the_image(name):
    case = next(generate(TASKS[f"kernelbenchx/{name}"], seed=0, count=1, strategies=["layouts"]))
    window = "P" if name == "conv2d" else "KH"
    assert case.layout == "channels_last"
    assert case.sizes[window] < case.sizes["H"]
