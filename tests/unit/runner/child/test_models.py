"""A candidate's model gets the judge's constructor inputs and weights."""

import pytest
import torch
from torch import nn

from kerneltruth.runner.child.binding import Offered, SignatureMismatch, bind
from kerneltruth.runner.child.models import build, for_function, is_described
from kerneltruth.runner.unsupported import UnsupportedError


def offered(init, weights=(), inputs=()):
    return [
        Offered(name="get_init_inputs()", value=repr(init)),
        *(Offered(name=f"x{i}", value=v, tensor=True) for i, v in enumerate(inputs)),
        *(Offered(name=f"weights.{n}", value=v, tensor=True) for n, v in weights),
    ]


WEIGHT = torch.arange(6.0).reshape(2, 3)
BIAS = torch.tensor([10.0, 20.0])
X = torch.tensor([[1.0, 2.0, 3.0]])
EXPECTED = X @ WEIGHT.T + BIAS


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
    assert torch.equal(call(*inputs), EXPECTED)


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
    with pytest.raises(UnsupportedError, match=r"layer.weight\[2, 3\]; its own are b\[2\]"):
        build(Renamed, offered([4, 2], NAMES), "cpu")


def test_the_model_takes_the_dtype_of_its_inputs_and_weights():
    weights = [(n, w.to(torch.bfloat16)) for n, w in NAMES]
    call, inputs = build(Named, offered([3, 2], weights, [X.to(torch.bfloat16)]), "cpu")
    assert call(*inputs).dtype == torch.bfloat16


class Tied(nn.Module):
    """Registers a weight twice, and keeps what it computes from the first."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2, bias=False)
        self.turned = self.layer.weight.detach().t().clone()
        self.head = nn.Linear(3, 2, bias=False)
        self.head.weight = self.layer.weight

    def forward(self, x):
        return x @ self.turned, self.head(x)


def test_a_constructor_computes_with_the_judges_weights_where_it_ties_them_later():
    call, inputs = build(Tied, offered([], NAMES[:1], [X]), "cpu")
    assert all(torch.equal(found, X @ WEIGHT.T) for found in call(*inputs))


class Drawing(nn.Module):
    """Draws what is no weight after its weights, and in each call."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.held = {"start": [torch.randn(2)]}
        self.turned = self.layer.weight.t().clone()

    def forward(self, x):
        return self.held["start"][0], x @ self.turned, torch.rand(2)


def test_a_constructor_draws_at_the_references_seed_and_a_call_at_its_own():
    torch.manual_seed(0)
    expected = Drawing().held["start"][0]
    seen = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        called_with = torch.rand(2)
        torch.manual_seed(seed)
        call, inputs = build(Drawing, offered([], NAMES, [X]), "cpu")
        start, product, drawn = call(*inputs)
        assert torch.equal(start, expected)
        assert torch.equal(product, X @ WEIGHT.T)
        assert torch.equal(drawn, called_with)
        seen.append(drawn)
    assert not torch.equal(*seen)


class RecordingModel(nn.Module):
    """Says what it is called with, and keeps it."""

    def __init__(self, training=True):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, 3))
        self.train(training)

    def forward(self, x):
        self.seen.copy_(x)
        return x + float(self.training) + 10 * float(torch.is_grad_enabled())


@pytest.mark.parametrize(("init", "expected"), [([], 1.0), ([False], 0.0)])
def test_a_model_is_called_as_its_constructor_leaves_it_and_without_gradients(init, expected):
    call, inputs = build(RecordingModel, offered(init, (), [X]), "cpu")
    assert torch.equal(call(*inputs), X + expected)


def offered_state(training, *updated):
    text = repr({"training": training, "updated": updated})
    return [*offered([], (), [X]), Offered(name="model.called", value=text)]


@pytest.mark.parametrize("training", [True, False])
def test_a_model_is_called_in_the_requested_mode(training):
    call, inputs = build(RecordingModel, offered_state(training), "cpu")
    assert torch.equal(call(*inputs), X + float(training))


def test_requested_updates_follow_the_outputs():
    call, inputs = build(RecordingModel, offered_state(None, "seen"), "cpu")
    returned, seen = call(*inputs)
    assert torch.equal(returned, X + 1)
    assert torch.equal(seen, X)
    call, inputs = build(RecordingModel, offered_state(None, "unknown"), "cpu")
    with pytest.raises(AttributeError, match="no buffer 'unknown'"):
        call(*inputs)


STATISTICS = [("norm.running_mean", torch.zeros(3)), ("norm.running_var", torch.ones(3))]


def test_running_statistics_need_a_place_only_where_they_are_used():
    class Plain(nn.Module):
        def forward(self, x):
            return x - x.mean(0)

    given = offered([], STATISTICS, [X])
    call, inputs = build(Plain, given, "cpu")
    assert torch.equal(call(*inputs), torch.zeros(1, 3))
    arguments = [*given, *offered_state(False)[-1:]]
    with pytest.raises(UnsupportedError, match=r"no parameter for the weight norm\.running_mean"):
        build(Plain, arguments, "cpu")


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


TWO_LAYERS = (("bias", BIAS), ("layer.weight", WEIGHT))


def pass_to(entry, weights=NAMES, *described):
    """What a function gets in place of a model, by its parameters' names."""
    named = Offered(name="model.named", value="('inputs', 'outputs', 'scale')")
    arguments = [*offered([3, 2, 0.5], weights, [X]), named, *described]
    positional, keywords = bind(entry, for_function(entry, arguments))
    return entry(*positional, **keywords)


def test_a_function_gets_weights_by_name_or_by_the_end_of_it():
    assert pass_to(lambda x0, layer_bias, layer_weight: (layer_weight, layer_bias)) == (
        WEIGHT,
        BIAS,
    )
    assert pass_to(lambda x0, bias, weight: (weight, bias)) == (WEIGHT, BIAS)


def test_a_function_gets_weights_by_the_longest_end_of_their_names():
    weights = (
        ("a.norm.bias", BIAS),
        ("b.norm.bias", WEIGHT),
        ("a.out.bias", X),
        ("bias", BIAS + 1),
    )
    given = pass_to(lambda x0, b_norm_bias, out_bias, a_norm_bias, bias: locals(), weights)
    expected = {
        "x0": X,
        "a_norm_bias": BIAS,
        "b_norm_bias": WEIGHT,
        "out_bias": X,
        "bias": weights[-1][1],
    }
    assert all(given[name] is tensor for name, tensor in expected.items())


def test_an_end_that_several_weights_share_names_none_of_them():
    with pytest.raises(SignatureMismatch, match="no parameter 'a_bias' for this weight"):
        pass_to(lambda x, bias, other: None, (("a.bias", BIAS), ("b.bias", WEIGHT)))


def test_a_function_gets_the_weights_of_one_layer_in_order():
    assert pass_to(lambda rows, w, b, out=None: (rows, w, b, out)) == (X, WEIGHT, BIAS, None)


def test_a_function_gets_what_the_constructor_gets_only_by_name():
    assert pass_to(lambda x, w, b, scale=1.0, size=7: (scale, size)) == (0.5, 7)


@pytest.mark.parametrize("weights", [TWO_LAYERS, TWO_LAYERS[::-1]])
def test_a_function_that_names_no_weight_of_two_layers_is_refused(weights):
    with pytest.raises(
        SignatureMismatch, match=r"no parameter '(bias|layer_weight)' for this weight"
    ):
        pass_to(lambda x, w, b: None, weights)
    assert pass_to(lambda x, bias, weight: (bias, weight), weights) == (BIAS, WEIGHT)


def test_a_function_of_any_arguments_gets_no_weights_by_place():
    with pytest.raises(SignatureMismatch, match="no parameter 'layer_weight'"):
        pass_to(lambda *arguments: None)
    assert pass_to(lambda *arguments: arguments, ()) == (X,)
    assert torch.equal(pass_to(torch.relu, ()), X)


def test_a_function_has_no_buffers_to_update():
    called = Offered(name="model.called", value="{'updated': ('mean',)}")
    with pytest.raises(SignatureMismatch, match="no buffers to update"):
        pass_to(lambda x, w, b: x, NAMES, called)
