"""A candidate's model gets the judge's constructor inputs and weights."""

import pytest
import torch
from torch import nn

from kerneltruth.runner.binding import Offered
from kerneltruth.runner.models import build, is_described
from kerneltruth.runner.protocol import UnsupportedHere


def offered(init, weights=(), inputs=()):
    return [
        Offered(name="get_init_inputs()", value=repr(init)),
        *(Offered(name=f"x{i}", value=v, tensor=True) for i, v in enumerate(inputs)),
        *(Offered(name=f"weights.{n}", value=v, tensor=True) for n, v in weights),
    ]


WEIGHT = torch.arange(6.0).reshape(2, 3)
BIAS = torch.tensor([10.0, 20.0])
X = torch.tensor([[1.0, 2.0, 3.0]])
DUE = X @ WEIGHT.T + BIAS


class Named(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.layer(x)


class Copying(Named):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.turned = self.layer.weight.detach().t().clone()
        self.register_buffer("doubled", 2 * self.layer.bias.detach())

    def forward(self, x):
        return x @ self.turned + self.doubled / 2


class Renamed(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.b = nn.Parameter(torch.zeros(outputs))
        self.w = nn.Parameter(torch.empty(outputs, inputs).normal_())

    def forward(self, x):
        return x @ self.w.t() + self.b


NAMES = (("layer.weight", WEIGHT), ("layer.bias", BIAS))


@pytest.mark.parametrize("kind", [Named, Copying, Renamed])
def test_weights_arrive_by_name_shape_and_before_a_constructor_copies_them(kind):
    call, inputs = build(kind, offered([3, 2], NAMES, [X]), "cpu")
    assert torch.equal(call(*inputs), DUE)


def test_weights_of_equal_shape_go_in_their_order():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.p, self.q = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))

        def forward(self):
            return 10 * self.p + self.q

    weights = [("first", torch.tensor([1.0])), ("second", torch.tensor([2.0]))]
    call, _ = build(Two, offered([], weights), "cpu")
    assert float(call()) == 12.0


def test_a_weight_without_a_place_is_named():
    with pytest.raises(UnsupportedHere, match=r"layer.weight\[2, 3\]; its own are b\[2\]"):
        build(Renamed, offered([4, 2], NAMES), "cpu")


def test_the_model_takes_the_dtype_of_its_inputs_and_weights():
    weights = [(n, w.to(torch.bfloat16)) for n, w in NAMES]
    call, inputs = build(Named, offered([3, 2], weights, [X.to(torch.bfloat16)]), "cpu")
    assert call(*inputs).dtype == torch.bfloat16


def test_a_model_is_in_evaluation_mode_and_without_gradients():
    class Told(nn.Module):
        def forward(self, x):
            return x + float(self.training) + float(torch.is_grad_enabled())

    call, inputs = build(Told, offered([], (), [X]), "cpu")
    assert torch.equal(call(*inputs), X)


def test_constructor_inputs_keep_lists_and_tuples_apart():
    class Kept:
        def __init__(self, *given):
            self.given = given

        def __call__(self):
            return [float(type(v) is list) for v in self.given]

    call, _ = build(Kept, offered([[1, 2], (1, 2)]), "cpu")
    assert [float(v) for v in call()] == [1.0, 0.0]


def test_a_candidates_buffers_for_weights_are_not_the_judges_memory():
    class Overwrites(Named):
        def forward(self, x):
            self.layer.weight.zero_()
            return x

    kept = WEIGHT.clone()
    call, inputs = build(Overwrites, offered([3, 2], NAMES, [X]), "cpu")
    call(*inputs)
    assert torch.equal(WEIGHT, kept)


def test_only_arguments_with_constructor_inputs_describe_a_model():
    assert is_described(offered([]))
    assert not is_described([Offered(name="x", value=1)])
