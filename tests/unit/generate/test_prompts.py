"""Prompts use only the public part of a task: no case, no seed, no reference unless requested."""

import re
from typing import get_args

import pytest

from kerneltruth.cases.strategies import generate
from kerneltruth.documents.timing import Regime
from kerneltruth.errors import UserError
from kerneltruth.generate.brief import brief_of, signature_of
from kerneltruth.generate.example import example_of
from kerneltruth.generate.prompts import load_prompts
from kerneltruth.generate.review import Review, ShapeTiming
from kerneltruth.tasks.registry import find, tasks_of

PROMPTS = load_prompts()


def brief(name):
    task = find(name)
    return brief_of(task, PROMPTS, example=example_of(task, PROMPTS))


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("kernelbenchx/softmax", "def softmax(input, dim=-1, dtype=None):"),
        ("kernelbenchx/index_fill_", "def index_fill_(dim, x, index, value=1.5):"),
        (
            "kernelbenchx/cross_entropy",
            "def cross_entropy(input, target, weight=None, ignore_index=-100, reduction='mean'):",
        ),
        (
            "kernelbenchx/Adam",
            "def Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0):",
        ),
    ],
)
def test_a_signature_is_as_python_writes_it(name, signature):
    assert signature_of(find(name)) == signature


def test_a_brief_names_every_dtype_that_may_not_be_refused():
    assert "float32, float16, bfloat16, int32, complex64" in brief("kernelbenchx/add")


def test_a_brief_has_description_signature_dtypes_and_example():
    text = brief("kernelbenchx/softmax")
    assert find("kernelbenchx/softmax").description in text
    assert "def softmax(input, dim=-1, dtype=None):" in text
    assert "float32, float16, bfloat16" in text
    assert "out = [[" in text


@pytest.mark.parametrize("suite", ["core", "kernelbenchx", "tritonbench"])
def test_no_brief_names_what_is_hidden(suite):
    for task in tasks_of(suite).values():
        hidden = {a.name for a in task.attributes if a.hidden}
        words = set(re.findall(r"\w+", brief(task.key)))
        assert not hidden & words, task.key


def test_no_brief_shows_a_value_that_the_judge_tries_beside_the_default():
    values = {repr(v) for v in find("kernelbenchx/leaky_relu").attributes[0].values} - {"0.01"}
    shown = set(re.findall(r"-?\d+\.\d+", brief("kernelbenchx/leaky_relu")))
    assert values == {"0.2", "0.0", "1.5"}
    assert not values & shown


def test_an_example_is_no_case_of_the_judge():
    text = example_of(find("kernelbenchx/softmax"), PROMPTS)
    numbers = {float(n) for n in re.findall(r"0\.\d{3,4}", text)}
    assert len(numbers) > 6
    from kerneltruth.cases.materialize import materialize

    task = find("kernelbenchx/softmax")
    for case in generate(task, strategies=(), seed=0, count=24, dtypes=None, domain="extended"):
        drawn = materialize(task, case).tensors["input"].double().flatten()
        shown = {float(f"{v:.4g}") for v in drawn[:2000].tolist()}
        assert len(numbers & shown) < len(numbers) / 2


def test_a_brief_is_the_same_every_time():
    assert brief("kernelbenchx/matmul") == brief("kernelbenchx/matmul")


def test_no_brief_shows_the_reference():
    for task in tasks_of("kernelbenchx").values():
        assert "## Reference" not in brief(task.key)
    task = find("kernelbenchx/relu")
    assert "torch.relu(x)" in brief_of(task, PROMPTS, reference="torch.relu(x)")


def test_random_operators_and_those_with_several_right_answers_have_no_example():
    assert example_of(find("kernelbenchx/rand"), PROMPTS) == ""
    assert example_of(find("kernelbenchx/svd"), PROMPTS) == ""


def test_nothing_to_say_leaves_no_gap():
    assert "\n\n\n" not in brief("kernelbenchx/rand")


@pytest.mark.parametrize(
    ("language", "named", "rule", "other"),
    [
        ("triton", "in Triton", "@triton.jit", "load_inline"),
        ("cuda", "in CUDA C++", "torch.utils.cpp_extension.load_inline", "riton"),
        ("gluon", "in Gluon", "@gluon.jit", "@triton.jit"),
    ],
)
def test_kernels_are_asked_for_in_the_language_that_the_user_names(language, named, rule, other):
    prompts = load_prompts(language=language)
    task = find("kernelbenchx/softmax")
    problem = prompts.fill("problem", name="x", description="", source="y = 1", device="", shots="")
    for text in (brief_of(task, prompts), problem):
        assert named in text
        assert rule in text
        assert other not in text
    assert named in prompts.system()


def test_the_feedback_names_no_other_language():
    prompts = load_prompts(language="cuda")
    timing = {"candidate_us": 1, "eager_us": 1, "ratio": 1, "low": 1, "high": 1}
    timings = tuple(
        ShapeTiming(shape="M=1", bound_by=bound, **timing) for bound in get_args(Regime)
    )
    reviews = (
        Review(outcome="pass", stage="perf", timings=timings),
        Review(outcome="fail", stage="exe"),
        Review(outcome="compile_error", stage="call"),
    )
    for review in reviews:
        for said in (prompts.feedback(review, worse=None), prompts.to_diagnose(review)):
            assert not re.search(r"riton|\btl\.", said)


def test_an_unknown_language_is_refused():
    with pytest.raises(
        UserError, match="--language 'tilelang': must be one of triton, cuda, gluon"
    ):
        load_prompts(language="tilelang")


@pytest.fixture
def own(tmp_path):
    for name, text in PROMPTS.texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    return tmp_path


def test_a_users_own_prompts_are_used_and_have_an_identity(own):
    (own / "system.txt").write_text("You write CUDA.")
    mine = load_prompts(own)
    assert mine.system() == "You write CUDA."
    assert mine.sha256 != PROMPTS.sha256
    assert load_prompts().sha256 == PROMPTS.sha256


def test_a_dollar_in_what_is_filled_in_stays(own):
    assert "costs $5 and $name" in PROMPTS.fill("reference", source="# costs $5 and $name")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$seed", r"template task.txt of .*: unknown names seed; it may use \$"),
        ("costs $5", r"a stray \$; it may use"),
    ],
)
def test_templates_that_cannot_be_filled_are_refused(own, text, said):
    (own / "task.txt").write_text(text)
    with pytest.raises(UserError, match=said):
        load_prompts(own)


def test_a_missing_template_is_named(own):
    (own / "wrong.txt").unlink()
    with pytest.raises(UserError, match=r"cannot read wrong.txt"):
        load_prompts(own)
