"""Names of a module that hold other values while a GPU is emulated."""

import inspect
import types

import pytest
import torch

from kerneltruth.runner.emulation import swaps


@pytest.fixture
def module():
    made = types.ModuleType("made")
    made.known, made.other = "real", "kept"
    return made


def test_names_of_a_module_are_changed_at_once_and_restored(module):
    (swap,) = swaps.swaps_of(module, {"known": "claimed", "new": "added"})
    swap.apply()
    assert (module.known, module.new, module.other) == ("claimed", "added", "kept")
    swap.undo()
    assert (module.known, module.other) == ("real", "kept")
    assert not hasattr(module, "new")


def test_a_name_that_a_candidate_has_deleted_stays_away(module):
    (swap,) = swaps.swaps_of(module, {"known": "claimed", "new": "added"})
    swap.apply()
    del module.new
    swap.undo()
    assert module.known == "real"


def test_attributes_of_a_class_are_changed_one_by_one():
    class Owner:
        known = "real"

    found = [*swaps.swaps_of(Owner, {"known": "claimed", "new": "added"})]
    assert len(found) == 2
    for swap in found:
        swap.apply()
    assert (Owner.known, Owner.new) == ("claimed", "added")
    for swap in found:
        swap.undo()
    assert (Owner.known, hasattr(Owner, "new")) == ("real", False)


def test_classes_of_torch_stay_classes_while_a_gpu_is_emulated():
    owners = (torch.cuda, torch.cuda.nvtx, torch.cuda.profiler, torch)
    classes = [(o, n) for o in owners for n in dir(o) if inspect.isclass(getattr(o, n))]
    made = swaps.all_swaps(lambda function: function)
    for swap in made:
        swap.apply()
    try:
        others = [n for owner, n in classes if not inspect.isclass(getattr(owner, n))]
    finally:
        for swap in made:
            swap.undo()
    assert classes
    assert others == []
