"""Dropout and fractional pooling: fair results are accepted, unfair ones are not."""

import pytest
import torch
import torch.nn.functional as F
from claims_of import broken_by

from kerneltruth.tasks.dropped import SURPRISE, surprise
from kerneltruth.tasks.fractional import all_starts, rounded_starts, starts
from kerneltruth.tasks.kernelbenchx import fusion_a_bmm, fusion_a_pointwise, fusion_a_pooling

TASKS = {
    t.name: t
    for module in (fusion_a_bmm, fusion_a_pointwise, fusion_a_pooling)
    for t in module.TASKS
}


def broken(name, inputs, outputs, **scalars):
    """The names of the claims that do not hold for float32 outputs."""
    task = TASKS[name]
    settings = {a.name: a.default for a in task.attributes} | scalars
    return broken_by(task, inputs, outputs, settings)


def noise(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def shrunk(x, mask):
    return F.hardshrink(x * mask * 2, 0.5)


def hardshrink_claims(out, x):
    return broken("fused_hardshrink_dropout", {"input": x}, (out,))


@pytest.mark.parametrize("seed", range(20))
def test_a_fair_dropout_is_accepted(seed):
    x = noise(16, 32) * 8 - 4
    assert hardshrink_claims(shrunk(x, noise(16, 32, seed=seed) < 0.5), x) == []


def test_a_dropout_that_does_not_scale_is_refused():
    x = noise(16, 32) * 8 - 4
    out = F.hardshrink(x * (noise(16, 32, seed=1) < 0.5), 0.5)
    assert hardshrink_claims(out, x) == ["elements neither kept nor dropped"]


@pytest.mark.parametrize("share", [0.0, 0.25, 0.75, 1.0])
def test_a_dropout_of_another_share_is_refused(share):
    x = noise(16, 32) * 8 - 4
    out = shrunk(x, noise(16, 32, seed=1) >= share)
    assert "surprise at the share of dropped elements" in hardshrink_claims(out, x)


@pytest.mark.parametrize("dim", [0, 1])
def test_a_dropout_of_the_same_places_in_every_row_is_refused(dim):
    x = noise(32, 32) * 8 - 4
    mask = (noise(32, seed=1) < 0.5).unsqueeze(dim).expand(32, 32)
    assert hardshrink_claims(shrunk(x, mask), x) == [f"surprise at neighbours in dim -{2 - dim}"]


def test_a_dropout_of_every_other_element_is_refused():
    x = noise(512) * 8 - 4
    out = shrunk(x, torch.arange(512) % 2 == 0)
    assert hardshrink_claims(out, x) == ["surprise at neighbours in dim -1"]


def test_dropping_with_probability_one_leaves_zeros():
    x = noise(4, 8)
    zeros = torch.zeros(4, 8)
    assert broken("fused_hardshrink_dropout", {"input": x}, (zeros,), p=1.0) == []
    assert broken("fused_hardshrink_dropout", {"input": x}, (x,), p=1.0) != []


def test_a_dropped_nan_may_stay_or_go():
    x = noise(16, 32) * 8 - 4
    x[:, :4] = torch.nan
    mask = noise(16, 32, seed=1) < 0.5
    assert hardshrink_claims(shrunk(x, mask), x) == []
    gone = torch.where(mask, F.hardshrink(x * 2, 0.5), 0.0)
    assert hardshrink_claims(gone, x) == []
    gone[3, 2] = 1.0
    assert hardshrink_claims(gone, x) == ["elements neither kept nor dropped"]


def bmm_claims(out, x, y):
    return broken("fused_bmm_dropout_gelu", {"input1": x, "input2": y}, (out,))


def test_dropout_before_gelu_is_told_apart_from_dropout_after_it():
    x, y = noise(2, 16, 8) - 0.5, noise(2, 8, 24, seed=1) - 0.5
    keep = noise(2, 16, 24, seed=2) < 0.5
    assert bmm_claims(F.gelu((x @ y) * keep * 2), x, y) == []
    assert "elements neither kept nor dropped" in bmm_claims(F.gelu(x @ y) * keep * 2, x, y)


def test_products_in_tf32_are_accepted():
    x, y = noise(2, 16, 64) - 0.5, noise(2, 64, 24, seed=1) - 0.5
    keep = noise(2, 16, 24, seed=2) < 0.5
    cut = [(t.view(torch.int32) & ~0x1FFF).view(torch.float32) for t in (x, y)]
    assert bmm_claims(F.gelu((cut[0] @ cut[1]) * keep * 2), x, y) == []


def test_what_is_subtracted_stays_where_elements_are_dropped():
    x, y, z = noise(2, 16, 8) - 0.5, noise(2, 8, 24, seed=1) - 0.5, noise(24, seed=3)
    given = {"input1": x, "input2": y, "other": z}
    value = F.gelu(F.rms_norm(x @ y, (24,), eps=1e-5))
    keep = noise(2, 16, 24, seed=2) < 0.5
    name = "fused_bmm_rmsnorm_gelu_dropout_sub"
    assert broken(name, given, (value * keep * 2 - z,)) == []
    assert "elements neither kept nor dropped" in broken(name, given, ((value - z) * keep * 2,))
    assert "elements neither kept nor dropped" in broken(name, given, (value * keep * 2,))


def test_surprise_bounds_the_tail_of_a_binomial():
    assert surprise(0, 40, 0.5) == pytest.approx(27.7, abs=0.1)
    assert surprise(20, 40, 0.5) == 0
    assert surprise(0, 20, 0.5) < SURPRISE


def pooled(x, **given):
    values, indices = F.fractional_max_pool2d(torch.relu(x), return_indices=True, **given)
    return values, indices


def fractional_claims(x, outputs, kernel_size=(2, 2)):
    more = {"kernel_size": kernel_size, "return_indices": len(outputs) == 2}
    return broken("fused_fractional_max_pool2d_with_relu", {"input": x}, outputs, **more)


@pytest.mark.parametrize("kernel_size", [(2, 2), 3, (3, 2)])
def test_fractional_pooling_of_pytorch_is_accepted(kernel_size):
    torch.manual_seed(0)
    for size in ((1, 1), (5, 7), (10, 4)):
        x = noise(3, 4, 13, 12) - 0.3
        outputs = pooled(x, kernel_size=kernel_size, output_size=size)
        assert fractional_claims(x, outputs, kernel_size) == []


def test_adaptive_pooling_is_not_fractional():
    x = noise(3, 4, 13, 12)
    out = F.adaptive_max_pool2d(torch.relu(x), (5, 7))
    assert fractional_claims(x, (out,)) == ["planes that no random numbers explain"]


def test_windows_of_another_size_or_without_relu_are_refused():
    torch.manual_seed(0)
    x = noise(3, 4, 13, 12) - 0.5
    larger, _ = pooled(x, kernel_size=3, output_size=(5, 7))
    assert fractional_claims(x, (larger,)) != []
    below = x - 1
    plain = F.fractional_max_pool2d(below, 2, output_size=(5, 7))
    assert fractional_claims(below, (plain,)) != []


def test_indices_into_another_plane_are_refused():
    torch.manual_seed(0)
    x = noise(3, 4, 13, 12) + 0.1
    values, indices = pooled(x, kernel_size=2, output_size=(5, 7))
    wrong = (values, (indices + 1) % (13 * 12))
    assert fractional_claims(x, wrong) == ["indices that do not point at their values"]


def test_every_random_number_gives_one_of_the_known_ways():
    known = {tuple(way) for way in all_starts(13, 5, 2, "float32").tolist()}
    for u in torch.rand(200, generator=torch.Generator().manual_seed(0)).tolist():
        assert tuple(starts(13, 5, 2, u).tolist()) in known


def starts_on_a_gpu(size, count, kernel, u):
    """The norms of every plane, as PyTorch's kernel computes them: in float32 throughout."""
    step = torch.tensor(float(size - kernel)) / (count - 1)
    first = ((torch.arange(count - 1) + u.unsqueeze(1)) * step).int() - (u * step).int()[:, None]
    return torch.cat((first, torch.full((len(u), 1), size - kernel)), 1).long()


def draw_near(count, near, seed):
    """Random numbers in float32, every other one within some roundings of a number."""
    chance = torch.Generator().manual_seed(seed)
    u = torch.rand(count, generator=chance)
    u[::2] = near + (u[::2] - 0.5) * 2.0**-17
    return u.clamp(0, 1 - 2.0**-24)


def pooled_on_a_gpu(x, rows, columns):
    best = F.max_pool2d(torch.relu(x), 2, stride=1)
    down = best.gather(-2, rows[None, :, :, None].expand(-1, -1, -1, best.shape[-1]))
    return down.gather(-1, columns[None, :, None, :].expand(-1, -1, down.shape[-2], -1))


@pytest.mark.slow
@pytest.mark.parametrize(("near", "seed"), [(0.5, 0), (1.0, 1)])
def test_windows_that_float32_rounds_elsewhere_are_accepted(near, seed):
    planes = 20_000
    x = torch.rand(1, planes, 18, 13, generator=torch.Generator().manual_seed(seed)) - 0.1
    rows = starts_on_a_gpu(18, 9, 2, draw_near(planes, near, seed))
    columns = starts_on_a_gpu(13, 5, 2, draw_near(planes, 1 / 3, seed + 2))
    exact = {tuple(way) for way in all_starts(18, 9, 2, "float32").tolist()}
    assert {tuple(way) for way in rows.tolist()} - exact
    assert fractional_claims(x, (pooled_on_a_gpu(x, rows, columns),)) == []
    # Windows of numbers of their own, in one plane of all.
    rows[7, 3] += 1
    assert fractional_claims(x, (pooled_on_a_gpu(x, rows, columns),)) == [
        "planes that no random numbers explain"
    ]


@pytest.mark.parametrize(("size", "count"), [(32, 16), (63, 13), (257, 16), (16, 6)])
def test_every_way_that_float32_has_is_known(size, count):
    known = {tuple(way) for way in all_starts(size, count, 2, "float32").tolist()}
    known |= {tuple(way) for way in rounded_starts(size, count, 2).tolist()}
    for near in (0.0, 0.2, 0.25, 0.5, 0.75, 0.8, 1.0):
        rows = starts_on_a_gpu(size, count, 2, draw_near(20_000, near, 0))
        assert {tuple(way) for way in rows.unique(dim=0).tolist()} <= known
