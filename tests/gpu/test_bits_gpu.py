"""The same random bits on the GPU as on the CPU."""

import pytest
import torch

from kerneltruth.cases.philox import stream
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.cases.values import draw
from kerneltruth.tasks.spec import TensorSpec

pytestmark = pytest.mark.gpu


def bits(tensor):
    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8)


@pytest.mark.parametrize("count", [1, 4, 1001, 100_003])
def test_random_words_are_the_same(count):
    here = stream(7, "words").words(count)
    there = stream(7, "words", device="cuda").words(count)
    assert torch.equal(here, there.cpu())


@pytest.mark.parametrize("recipe", sorted(RECIPES))
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_values_of_every_recipe_are_the_same(recipe, dtype):
    spec = TensorSpec(name="x", dims=())
    here, there = (
        draw(
            spec,
            (3, 257),
            dtype=dtype,
            recipe=recipe,
            rng=stream(3, "values", device=device),
            extent=1000,
        )
        for device in ("cpu", "cuda")
    )
    assert torch.equal(bits(here), bits(there))
