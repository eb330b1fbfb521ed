"""Problems that load a model by name are judged on a small one, which candidates get too."""

import importlib.util
import subprocess
import sys
from dataclasses import replace

import pytest

from kerneltruth.cases.strategies import generate
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.explain.reproducer.script import script
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.suites.kernelbench.own_reference import read_reference
from kerneltruth.suites.kernelbench.published_problems import read_problems
from kerneltruth.suites.kernelbench.suite import KernelBench

from .problems import LINEAR

pytestmark = pytest.mark.processes
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="transformers is not installed; it comes with the extra kernelbench4",
)

MODEL = """
import torch
from transformers import AutoConfig, AutoModelForCausalLM


class Model(torch.nn.Module):
    def __init__(self, name, config):
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained(name, config=config)

    def forward(self, x):
        return self.model(x).logits


name = "NAME"
config = AutoConfig.from_pretrained(name)
vocab_size = config.vocab_size
sequence_length = 256
batch_size = 32


def get_inputs():
    return [torch.randint(0, vocab_size, (batch_size, sequence_length))]


def get_init_inputs():
    return [name, config]
"""
BUILT = "        self.model = AutoModelForCausalLM.from_pretrained(name, config=config)\n"
GPT2 = MODEL.replace("NAME", "gpt2")
OPT = MODEL.replace("NAME", "facebook/opt-1.3b")


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "level4").mkdir()
    (tmp_path / "level4/1_gpt2.py").write_text(GPT2)
    (tmp_path / "level4/2_Linear.py").write_text(LINEAR)
    return tmp_path


def test_without_transformers_such_a_problem_names_the_extra(checkout, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    problems = read_problems(checkout)
    assert "pip install 'kerneltruth[kernelbench4]'" in problems["level4/1"].trouble
    assert problems["level4/2"].trouble is None


def test_a_file_of_the_users_own_means_the_models_that_it_names(checkout):
    assert read_problems(checkout)["level4/1"].pretrained
    own = read_reference(checkout / "level4/1_gpt2.py")
    assert (own.pretrained, own.trouble) == (False, None)


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    return tmp_path_factory.mktemp("schemas")


@pytest.fixture
def opened(runner, schemas, tmp_path):
    """The suite of one problem, and its task."""

    def opening(source):
        (tmp_path / "level4").mkdir()
        (tmp_path / "level4/1_Model.py").write_text(source)
        suite = KernelBench(read_problems(tmp_path), runner, schemas)
        task = suite.task("level4/1")
        assert task.unrefereeable is None
        return suite, task

    return opening


def read(source):
    return read_candidate(source, "new.py", task_names=("ModelNew",), task="ModelNew")


@pytest.fixture
def judge(runner, opened):
    """The attempt of a candidate for a problem; its own model is one."""

    def judge(source, candidate=None, cases=8):
        suite, task = opened(source)
        new = candidate and read(candidate)
        with CandidateSession(
            task,
            new or suite.own_function("level4/1"),
            runner,
            ExpectationCache(Policy()),
            deadline_s=60,
        ) as session:
            *_, last = judge_cases(session, Plan(cases=cases, compile=False))
        assert isinstance(last, AttemptEnded)
        return last.attempt

    return judge


def new(source, *, then="", forward="self.model(x).logits"):
    """A candidate that builds the same model, does something to it, and returns something."""
    source = source.replace("class Model(", "class ModelNew(").replace(BUILT, BUILT + then)
    return source.replace("self.model(x).logits", forward)


@needs_transformers
@pytest.mark.slow
def test_a_problems_own_model_passes(judge):
    attempt = judge(GPT2)
    assert isinstance(attempt.verdict, Passed), attempt.failure or attempt.verdict
    assert attempt.cases == 8


WRONG = {
    "activation": {"then": "        self.model.transformer.h[1].mlp.act = torch.nn.ReLU()\n"},
    "scaled": {"forward": "self.model(x).logits * 1.02"},
}


@needs_transformers
@pytest.mark.slow
@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_model_is_caught(judge, how):
    attempt = judge(GPT2, new(GPT2, **WRONG[how]))
    assert isinstance(attempt.verdict, Failed)
    assert attempt.verdict.kind == "value"


# A constructor may compute with the weights that it has loaded, also with tied ones.
FUSING = """
        self.table = self.model.lm_head.weight.detach().t().clone()
"""
TIMES_TABLE = "self.model.transformer(x).last_hidden_state @ self.table.to(self.model.dtype)"


@needs_transformers
@pytest.mark.slow
def test_weights_that_a_constructor_derives_come_from_the_judges(judge):
    attempt = judge(GPT2, new(GPT2, then=FUSING, forward=TIMES_TABLE))
    assert isinstance(attempt.verdict, Passed), attempt.failure or attempt.verdict


@needs_transformers
@pytest.mark.slow
def test_a_family_can_be_loaded_by_its_own_class_and_without_a_configuration(judge):
    source = OPT.replace("AutoModelForCausalLM", "OPTForCausalLM").replace(
        "(name, config=config)", "(name)"
    )
    attempt = judge(OPT, source.replace("class Model(", "class ModelNew("))
    assert isinstance(attempt.verdict, Passed), attempt.failure or attempt.verdict


LOADING = """
from transformers import AutoConfig

AutoConfig.from_pretrained("{name}")


def relu(x):
    return x.clamp(min=0)
"""


def loaded(runner, source, *, pretrained):
    candidate = read_candidate(source, "relu.py", task_names=("relu",))
    with runner.open(replace(candidate, pretrained=pretrained)) as session:
        return session.loaded


@needs_transformers
@pytest.mark.slow
def test_a_model_without_a_small_one_is_named(runner):
    assert loaded(runner, LOADING.format(name="gpt2"), pretrained=True).ended == "returned"
    seen = loaded(runner, LOADING.format(name="no/such-model"), pretrained=True)
    assert seen.ended == "load_failed"
    assert seen.message.startswith("no small model stands for 'no/such-model'; these have one: Ele")


@needs_transformers
@pytest.mark.slow
def test_candidates_of_other_tasks_see_transformers_as_it_is(runner):
    source = LOADING.format(name="gpt2").replace(
        'AutoConfig.from_pretrained("gpt2")',
        "import transformers\n"
        "assert 'kerneltruth' not in transformers.PretrainedConfig.get_config_dict.__module__",
    )
    assert loaded(runner, source, pretrained=False).ended == "returned"
    assert loaded(runner, source, pretrained=True).ended == "load_failed"


@needs_transformers
@pytest.mark.slow
def test_a_script_reproduces_a_fault_on_the_small_model(runner, opened, tmp_path):
    _, task = opened(GPT2)
    candidate = read(new(GPT2, forward="self.model(x).logits * 1.02"))
    cache = ExpectationCache(Policy())
    case = next(iter(generate(task, count=1, seed=1)))
    with CandidateSession(task, candidate, runner, cache, deadline_s=60) as session:
        expectation = cache.get(task, case)
        ruling, _, placed = session.call(expectation)
    text = script(
        task=task,
        candidate=candidate,
        expectation=expectation,
        placed=placed,
        verdict=ruling.verdict,
    )
    ended = []
    for source in (text, text.replace(" * 1.02", "")):
        (tmp_path / "script.py").write_text(source)
        done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True)
        ended.append(done.returncode)
    assert ended == [1, 0]
