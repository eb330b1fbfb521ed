"""The claims that results break, and matrices to try them on."""

import pytest
import torch

from kerneltruth.cases.matrices import matrix
from kerneltruth.cases.philox import stream
from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.registry import find


@pytest.fixture
def make_matrix():
    """A float32 matrix of a kind and form, as cases hold it."""

    def make(kind, form, *shape, seed=0):
        generator = torch.Generator().manual_seed(seed)
        x = torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1
        return matrix(kind, x, stream(seed, "test"), form).float()

    return make


@pytest.fixture
def claims():
    """The names of the claims that outputs break, of a task of KernelBenchX or by its key."""

    def judge(name, outputs, **given):
        task = find(name if "/" in name else f"kernelbenchx/{name}")
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        tensors = {n: t for n, t in given.items() if isinstance(t, torch.Tensor)}
        settings = {a.name: a.default for a in task.attributes}
        settings |= {n: v for n, v in given.items() if n not in tensors}
        wide = {n: t.double() for n, t in tensors.items()}
        reference = task.reference(**task.keywords(wide, settings, task.reference))
        reference = reference if isinstance(reference, tuple) else (reference,)
        assert [tuple(o.shape) for o in outputs] == [tuple(r.shape) for r in reference]
        dtype = next(iter(tensors.values())).dtype
        evidence = Evidence(
            inputs=wide,
            scalars=settings,
            outputs=outputs,
            reference=reference,
            dtype=str(dtype).removeprefix("torch."),
            eps=torch.finfo(dtype).eps,
        )
        return [claim.name for claim in task.claims(evidence) if not claim.holds]

    return judge
