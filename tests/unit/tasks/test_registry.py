"""Tasks of all suites by key, and that a suite is imported only when it is asked for."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

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


@pytest.mark.slow
@pytest.mark.processes
def test_looking_up_a_core_task_imports_no_other_suite():
    code = (
        "import sys; from kerneltruth.tasks.registry import find, TASKS; find('relu'); "
        "TASKS['softmax']; sys.exit('kerneltruth.tasks.kernelbenchx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class Brought(registry.OpenTasks):
    """A suite that a user brings along; making the second of its tasks would fail."""

    option = "mine:here"

    def __getitem__(self, key):
        assert key == "mine/level1/1"
        return registry.find("gelu")

    def __iter__(self):
        return (item.key for item in self.listed().values())

    def __len__(self):
        return 2

    def listed(self):
        return {
            n: registry.Listed(
                name=n,
                key=f"mine/{n}",
                category="c",
                entry="ModelNew",
                aliases=(f"{n[-1]}_Softmax",),
            )
            for n in ("level1/1", "level1/2")
        }


@pytest.fixture
def brought():
    with registry.opening("mine", Brought()):
        yield registry.find("gelu")


def test_an_open_suites_task_is_made_alone(brought):
    assert registry.find("mine/level1/1") is brought
    assert registry.find("level1/1", "mine") is brought


def test_an_open_suite_is_listed_without_making_its_tasks(brought):
    assert list(registry.listed_of("mine")) == ["level1/1", "level1/2"]


def test_an_unknown_task_of_an_open_suite_is_answered_with_the_nearest(brought):
    with pytest.raises(UserError, match=r"nearest: mine/level1.*tasks --suite mine:here"):
        registry.find("mine/level1/3")


def test_what_is_near_to_another_name_of_a_task_is_too(brought):
    with pytest.raises(UserError, match="nearest: mine/level1/2"):
        registry.find("2_Softmacs", "mine")


def test_a_suite_is_found_only_while_it_is_open():
    with registry.opening("mine", Brought()):
        assert registry.opened_tasks("mine") is not None
    assert registry.opened_tasks("mine") is None


def test_another_thread_does_not_see_what_this_one_has_open(brought):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(registry.opened_tasks, "mine").result() is None


def test_a_task_of_a_suite_that_is_not_open_asks_for_it():
    with pytest.raises(UserError, match="pass --suite kernelbench:PATH"):
        registry.find("kernelbench/level1/1")


def test_built_in_suites_are_listed_by_bare_name():
    assert registry.listed_of("core")["gelu"].key == "gelu"
