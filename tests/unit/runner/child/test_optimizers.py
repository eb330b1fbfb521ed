"""An entry that makes an optimizer is asked for its steps."""

import torch

from kerneltruth.runner.child import optimizers
from kerneltruth.runner.child.binding import Offered


class Recorder:
    """An optimizer that writes down the gradients which it meets."""

    def __init__(self, params):
        self.params = params
        self.seen = []

    def step(self):
        self.seen.append([None if p.grad is None else p.grad.tolist() for p in self.params])


def offered(**tensors):
    return [Offered(name=n, value=t, tensor=True) for n, t in tensors.items()]


def test_gradients_are_no_arguments_of_the_entry():
    arguments = offered(p=torch.zeros(2), _gradients_of_p=torch.ones(3, 2))
    rest, gradients = optimizers.set_aside(arguments)
    assert [a.name for a in rest] == ["p"]
    assert list(gradients) == ["p"]


def test_a_step_is_taken_for_each_gradient():
    p, idle = torch.zeros(2), torch.zeros(1)
    gradients = {"p": torch.tensor([[1.0, 2.0], [3.0, 4.0]]), "idle": None}
    owners = optimizers.parameters(offered(p=p, idle=idle), gradients)
    optimizer = Recorder([p, idle])
    assert optimizers.stepped(optimizer, owners, gradients) is None
    assert optimizer.seen == [[[1.0, 2.0], None], [[3.0, 4.0], None]]


def test_what_takes_no_steps_comes_back_as_it_is():
    p = torch.zeros(2)
    assert optimizers.stepped(p, {"p": p}, {"p": torch.ones(1, 2)}) is p


def test_a_gradient_without_its_parameter_is_not_used():
    optimizer = Recorder([])
    assert optimizers.stepped(optimizer, {}, {"p": torch.ones(2, 2)}) is None
    assert optimizer.seen == []
