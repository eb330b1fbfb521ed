"""What runs in the child: shapes and costs of a model, without computing it."""

import pytest
import torch
from torch import nn

from kerneltruth.documents.model import dumps, loads, parse
from kerneltruth.suites.kernelbench.inside.model import LoadedProblem
from kerneltruth.suites.kernelbench.inside.modes import Counter, Narrowing, OneStep
from kerneltruth.suites.kernelbench.inside.serving import Harness
from kerneltruth.suites.kernelbench.messages import OutlineRequest, OutputsRequest, ProblemCall
from kerneltruth.suites.kernelbench.schema import Input, Outline

from .problems import HEAD, NO_INIT, STACKED

LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


THREADS = f"""{HEAD}
class Model(nn.Module):
    def forward(self, x):
        return x + torch.get_num_threads()

{NO_INIT}"""


def outline(source):
    request = dumps(OutlineRequest(constants="{}", device="meta", forward=True))
    answer = Harness(LoadedProblem(source)).answer(request)
    return parse(Outline, loads(bytes(answer.numpy())))


def counted(call, shortened):
    counter = Counter()
    with torch.no_grad(), counter:
        if not shortened:
            return counter, call()
        with OneStep(counter):
            return counter, call()


def test_an_empty_tensor_that_a_concatenation_skips_is_no_part_of_it():
    parts = [torch.empty(0), torch.rand(2, 3, 5), torch.rand(2, 3, 5)]
    counter, _ = counted(lambda: torch.cat(parts, dim=-2), False)
    assert counter.stretched == set()
    counter, _ = counted(lambda: torch.cat([torch.rand(3, 2), torch.rand(3, 1)], dim=1), False)
    assert counter.stretched == {"cat:2:uneven"}


MASKED = f"""{HEAD}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(7))
        self.register_buffer("mask", torch.ones(4096, 4096, dtype=torch.bool).tril())

    def forward(self, x):
        return x * self.scale * self.mask[:7, :7]

def get_inputs():
    return [torch.rand(7, 7)]

{NO_INIT}"""


def test_a_mask_counts_as_no_weight():
    found = outline(MASKED)
    assert found.masks == ("mask",)
    assert found.weights == 7


COMPILED = f"""{HEAD}
def refused(graph, inputs):
    raise AssertionError("compiled")

@torch.compile(backend=refused)
def doubled(x):
    return x * 2

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.plus = torch.compile(torch.nn.Identity(), backend=refused)

    def forward(self, x):
        return self.plus(doubled(x))

def get_inputs():
    return [torch.rand(2)]

{NO_INIT}"""


def test_a_reference_is_called_as_written_where_its_file_compiles_it():
    call = ProblemCall(constants="{}", order=("x",), scalars={}, dtype="float64")
    before = torch.compile
    (found,) = Harness(LoadedProblem(COMPILED)).answer(
        dumps(OutputsRequest(call=call)), x=torch.ones(2, dtype=torch.float64)
    )
    assert found.tolist() == [2.0, 2.0]
    assert torch.compile is before


def test_a_reference_uses_one_thread_unless_more_are_requested():
    before = torch.get_num_threads()
    call = ProblemCall(constants="{}", order=("x",), scalars={}, dtype="float64")
    harness = Harness(LoadedProblem(THREADS))
    try:
        for more, threads in (({}, 1), ({"threads": 3}, 3), ({}, 1)):
            request = OutputsRequest(call=call, **more)
            (found,) = harness.answer(dumps(request), x=torch.zeros(2, dtype=torch.float64))
            assert found.tolist() == [threads] * 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrowed_results_are_neighbours_in_the_narrow_dtype(dtype):
    x = torch.rand(64, 64) + 1
    name = str(dtype).removeprefix("torch.")
    draws = []
    for salt in range(3):
        with Narrowing(name, salt):
            draws.append((x * 1.0, x.exp_().log_() if salt > 2 else x.clone().mul_(1.0)))
    for whole, in_place in draws:
        for found in (whole, in_place):
            assert torch.equal(found.to(dtype).float(), found)
            assert (found - x).abs().max() <= torch.finfo(dtype).eps
    up = [(whole > x).float().mean() for whole, _ in draws]
    assert all(0.3 < share < 0.7 for share in up)
    assert not torch.equal(draws[0][0], draws[1][0])


def test_narrowed_results_overflow_and_statistics_stay():
    x = torch.tensor([60000.0, 70000.0, -70000.0, 20000.0, torch.nan, torch.inf])
    nan, inf = torch.nan, torch.inf
    for salt, values in (
        (0, [60000.0, inf, -inf, 20000.0, nan, inf]),
        (1, [inf, inf, -inf, inf, nan, inf]),
    ):
        with Narrowing("float16", salt):
            found = x + 0
        expected = torch.tensor(values)
        same = torch.isclose(found, expected, rtol=1e-3, equal_nan=True)
        assert same.all(), (found, expected)
    y = torch.rand(4, 3) + 1
    with Narrowing("bfloat16", 0):
        _, mean, _ = torch.native_batch_norm(y, None, None, None, None, True, 0.1, 1e-5)
    assert torch.equal(mean, y.mean(0)) or torch.allclose(mean, y.mean(0), rtol=1e-6)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_one_step_of_a_recurrent_layer_stands_for_all(kind, batch_first):
    with torch.device("meta"):
        layer = LAYERS[kind](5, 7, 2, bidirectional=True, batch_first=batch_first)
        x = torch.rand(6, 9, 5)
    all_steps, whole = counted(lambda: layer(x), shortened=False)
    one_step, short = counted(lambda: layer(x), shortened=True)
    assert short[0].shape == whole[0].shape
    assert [t.shape for t in short[1]] == [t.shape for t in whole[1]]
    assert one_step.flops == pytest.approx(all_steps.flops, rel=0.25)
    assert one_step.terms == all_steps.terms


def test_a_sequence_of_real_numbers_goes_through_all_steps():
    layer, x = nn.GRU(5, 7), torch.rand(6, 9, 5)
    _, whole = counted(lambda: layer(x), shortened=False)
    _, again = counted(lambda: layer(x), shortened=True)
    assert torch.equal(whole[0], again[0])


def test_a_constructor_that_reads_numbers_is_laid_out_all_the_same():
    found = outline(STACKED)
    assert found.outputs[0] == Input(shape=(64, 2048, 256), dtype="float32")
    assert found.state["layer.weight_hh_l1"] == (768, 256)


def test_what_a_model_rejects_is_rejected_where_its_constructor_reads_numbers():
    source = STACKED.replace("return [features, hidden]", "return [features + 1, hidden]")
    with pytest.raises(RuntimeError, match=r"input.size"):
        outline(source)


SCALED = f"""{HEAD}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(128, 64))
        nn.init.constant_(self.weight, 3.0)
        self.most = self.weight.detach().max()

    def forward(self, x):
        return (x * self.weight).sum() + self.most

def get_inputs():
    return [torch.rand(128, 64)]

{NO_INIT}"""


@pytest.mark.parametrize("given", [True, False])
def test_weights_that_are_not_given_are_those_of_the_constructor(given):
    """And what follows of them: else given ones are not drawn first, for large models take long."""
    call = ProblemCall(constants="{}", order=("x",), scalars={}, dtype="float64")
    one = torch.ones(128, 64, dtype=torch.float64)
    weights = {"weights.weight": one} if given else {}
    (found,) = Harness(LoadedProblem(SCALED)).answer(
        dumps(OutputsRequest(call=call)), x=one, **weights
    )
    assert float(found) == 8192 * (1 if given else 3) + 3
