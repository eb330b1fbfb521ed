"""Tasks of all suites by key, and that a suite is imported only when it is asked for."""

import subprocess
import sys

import pytest

from kerneltruth.errors import UserError
from kerneltruth.tasks import registry


def test_a_bare_name_is_the_cores_task():
    assert registry.find("gelu").key == "gelu"


def test_a_key_names_the_suite():
    assert registry.find("kernelbenchx/gelu").suite == "kernelbenchx"


def test_a_bare_name_that_only_one_suite_has_is_found_there():
    assert registry.find("fused_tanh_linear").key == "kernelbenchx/fused_tanh_linear"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("kernelbenchx/gather", "earlier/gather"),
        ("kernelbenchx/fused_silu_batch_norm", "tritonbench/silu_batch_norm"),
        ("fused_silu_batch_norm", "tritonbench/silu_batch_norm"),
        ("tritonbench/relu", "kernelbenchx/relu"),
        ("tritonbench/sigmoid_batch_norm", "kernelbenchx/fused_sigmoid_batch_norm"),
        ("tritonbench/exp", "tritonbench/exp"),
    ],
)
def test_what_one_published_benchmark_calls_the_task_of_another_is_that_task(name, key):
    assert registry.find(name).key == key
    suite, slash, bare = name.partition("/")
    assert not slash or registry.find(bare, suite).key == key


def test_an_unknown_fusion_is_not_taken_for_the_operator_alone():
    with pytest.raises(UserError, match="nearest: kernelbenchx/"):
        registry.find("kernelbenchx/fused_gelu")
    with pytest.raises(UserError, match="unknown task 'fused_gelu'"):
        registry.find("fused_gelu")


def test_a_suite_may_be_named_apart():
    assert registry.find("gelu", "kernelbenchx").key == "kernelbenchx/gelu"
    assert registry.find("kernelbenchx/gelu", "kernelbenchx").key == "kernelbenchx/gelu"


def test_an_unknown_key_is_answered_with_the_nearest_keys():
    with pytest.raises(UserError, match="nearest: kernelbenchx/airy_ai"):
        registry.find("airy_a1")
    with pytest.raises(UserError, match="nearest: kernelbenchx/gelu"):
        registry.find("kernelbenchx/gelo")
    with pytest.raises(UserError, match="unknown task 'causal_attention'"):
        registry.find("causal_attention", "kernelbenchx")


def test_a_name_that_several_suites_have_is_answered_with_their_keys():
    with pytest.raises(UserError, match=r"several suites have a task 'SGD': .*/SGD, .*/SGD"):
        registry.find("SGD")


def test_an_unknown_suite_is_answered_with_the_known_ones():
    with pytest.raises(UserError, match="must be one of core, kernelbenchx"):
        registry.tasks_of("kernelbench")


def test_a_key_of_an_unknown_suite_is_no_key():
    assert "nowhere/gelu" not in registry.TASKS


def test_every_key_leads_to_its_task():
    assert len(registry.TASKS) == len(list(registry.TASKS))
    assert all(task.key == key for key, task in registry.TASKS.items())


def test_entries_stand_for_their_tasks():
    known = registry.by_entry("kernelbenchx")
    assert known["adamw_step"] is known["AdamW"]


def test_tasks_of_one_name_in_other_suites_are_known():
    assert registry.elsewhere(registry.find("gelu")) == ("kernelbenchx/gelu",)


@pytest.mark.processes
def test_looking_up_a_core_task_imports_no_other_suite():
    code = (
        "import sys; from kerneltruth.tasks.registry import find, TASKS; find('relu'); "
        "TASKS['softmax']; sys.exit('kerneltruth.tasks.kernelbenchx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_registered_suites_tasks_are_known_by_their_entries_too(monkeypatch):
    task = registry.find("gelu")
    monkeypatch.setattr(registry, "_registered", {"mine": {"mine/gelu": task}})
    assert registry.by_entry("mine") == {"gelu": task, task.entry: task}


@pytest.fixture
def foreign(monkeypatch):
    """A suite that a user brings along; asking for the second of its tasks would fail."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_listed", {})
    task = registry.find("gelu")

    class Made(dict):
        def __getitem__(self, key):
            assert key == "kernelbench/level1/1"
            return task

    names = ("level1/1", "level1/2")
    listed = {
        n: registry.Listed(
            name=n,
            key=f"kernelbench/{n}",
            category="c",
            entry="ModelNew",
            aliases=(f"{n[-1]}_Softmax",),
        )
        for n in names
    }
    registry.register("kernelbench", Made({one.key: None for one in listed.values()}), listed)
    return task


def test_a_registered_suites_task_is_made_alone(foreign):
    assert registry.find("kernelbench/level1/1") is foreign
    assert registry.find("level1/1", "kernelbench") is foreign


def test_a_registered_suite_is_listed_without_making_its_tasks(foreign):
    assert list(registry.listed_of("kernelbench")) == ["level1/1", "level1/2"]


def test_an_unknown_task_of_a_registered_suite_is_answered_with_the_nearest(foreign):
    with pytest.raises(UserError, match=r"nearest: kernelbench/level1.*--suite kernelbench:PATH"):
        registry.find("kernelbench/level1/3")


def test_what_is_near_to_another_name_of_a_task_is_too(foreign):
    with pytest.raises(UserError, match="nearest: kernelbench/level1/2"):
        registry.find("2_Softmacs", "kernelbench")


def test_a_task_of_a_suite_that_is_not_registered_asks_for_it():
    with pytest.raises(UserError, match="pass --suite kernelbench:PATH"):
        registry.find("kernelbench/level1/1")


def test_built_in_suites_are_listed_by_bare_name():
    assert registry.listed_of("core")["gelu"].key == "gelu"
