"""Each bug of the corpus fails on a small case that shows its fault; its control passes there."""

from dataclasses import dataclass, field

import pytest

from kerneltruth.corpus import ENTRIES, network_layers, published, source
from kerneltruth.corpus.entry import filename
from kerneltruth.documents.case import Case
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.probes import probe
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS

BY_NAME = {entry.name: entry for entry in ENTRIES}
OURS = (*published.ENTRIES, *network_layers.ENTRIES)
NAN = float("nan")
WIDE = (-3.0, -1.0, 0.5, 2.0)


@dataclass(frozen=True, kw_only=True)
class Witness:
    """A case by what matters of it, and the kind of the failure that it shows."""

    dims: tuple[int, ...]
    kind: str = "value"
    values: dict[str, tuple[float, ...]] = field(default_factory=dict)
    recipe: str = "normal"
    dtype: str = "float32"
    layout: str = "contiguous"
    settings: dict[str, object] = field(default_factory=dict)

    def case(self, task):
        sizes = zip(task.dims, self.dims, strict=True)
        return Case(
            task=task.name,
            dims=tuple((d.symbol, n) for d, n in sizes),
            attributes=tuple(
                (a.name, self.settings.get(a.name, a.default)) for a in task.attributes
            ),
            dtype=self.dtype,
            layout=self.layout,
            recipe=self.recipe,
            seed=11,
            literals=tuple(self.values.items()),
        )


def row(*values, name="input", **more):
    return Witness(dims=(1, len(values)), values={name: values}, **more)


WITNESSES = {
    "numpy_softmax_tail_leak": Witness(dims=(1, 65)),
    "softmax_other_zero": Witness(dims=(1, 3)),
    "gelu_no_half": row(*WIDE),
    "silu_double_argument": row(*WIDE),
    "rmsnorm_no_sqrt": row(*WIDE, name="x"),
    "l2norm_no_sqrt": row(*WIDE, name="x"),
    "leaky_relu_alpha": row(*WIDE),
    "matmul_no_accumulate": Witness(dims=(2, 2, 33)),
    "attention_no_scale": Witness(dims=(2, 3, 4)),
    "flash_attention_no_rescale": Witness(dims=(4, 33, 4)),
    "tanh_naive_exp": row(50.0, 1.0, name="input_tensor", kind="nan"),
    "tanh_empty_like_strides": Witness(dims=(2, 3), layout="transposed", kind="assumes_contiguous"),
    "sigmoid_naive_exp": row(95.0, 1.0, kind="nan"),
    "sigmoid_flat_noncontiguous": Witness(
        dims=(2, 3), layout="transposed", kind="assumes_contiguous"
    ),
    "silu_naive_exp": row(95.0, 1.0, kind="nan"),
    "silu_grid_capped": Witness(dims=(1, 4097), kind="uninitialized"),
    "softplus_naive_exp": row(95.0, 1.0, kind="inf"),
    "softplus_beta_ignored": row(*WIDE, settings={"beta": 2.0}),
    "relu_nan_swallowed": row(NAN, 1.0, kind="nan"),
    "relu_in_place": row(*WIDE, kind="input_mutated"),
    "relu_returns_input": row(0.5, 2.0, kind="aliased_output"),
    "elu_copy": row(*WIDE),
    "elu_mask_arithmetic": row(95.0, 1.0, kind="nan"),
    "gelu_last_block_skipped": Witness(dims=(1, 1025), kind="uninitialized"),
    "gelu_tanh_always": row(*WIDE),
    "softmax_no_max": row(95.0, 94.0, kind="nan"),
    "softmax_unit_stride": Witness(dims=(2, 3), layout="transposed", kind="assumes_contiguous"),
    "softmax_online_skips_tail": Witness(dims=(1, 257)),
    "log_softmax_no_max": row(95.0, 94.0, kind="inf"),
    "logsumexp_no_max": row(95.0, 94.0, kind="inf"),
    "layernorm_one_pass_variance": row(1000.0, 1000.5, 1001.0, 1000.25, name="x"),
    "layernorm_padded_variance": Witness(dims=(2, 3), recipe="uniform"),
    # Its mean is of 1024 elements: most are off a little, and the last one is not written at all.
    "layernorm_fixed_block": Witness(dims=(1, 1025)),
    "rmsnorm_half_square": row(300.0, 200.0, name="x", dtype="float16"),
    "rmsnorm_no_eps": Witness(dims=(1, 4), recipe="zeros", kind="nan"),
    "rmsnorm_eps_outside": row(1e-3, -2e-3, 5e-4, 1e-3, name="x"),
    "l2norm_no_eps": row(0.0, 0.0, name="x", kind="nan"),
    "sum_half_accumulator": row(*[0.3] * 1024, dtype="float16"),
    "sum_single_column_view": row(2.0, kind="aliased_output"),
    "mean_padded_size": row(1.0, 2.0, 3.0),
    "mean_half_accumulator": row(*[100.0] * 1024, dtype="float16", kind="inf"),
    "std_one_pass": row(1000.0, 1000.5, 1001.0, 1000.25),
    "std_single_column_zero": row(2.0, kind="nan"),
    "row_max_nan_swallowed": row(NAN, 1.0, kind="nan"),
    "row_max_other_zero": row(-1.0, -2.0),
    "argmax_ties_last": row(1.0, 1.0, name="input_tensor"),
    "matmul_k_tail_unmasked": Witness(dims=(2, 2, 33), kind="out_of_bounds"),
    "matmul_k_floor_division": Witness(dims=(2, 2, 33)),
    "matmul_half_accumulator": Witness(
        dims=(1, 1, 512),
        dtype="float16",
        values={"tensor1": (3.7,) * 256 + (-3.7,) * 256, "tensor2": (2.3,) * 511 + (2.0,)},
    ),
    "addmm_scalars_ignored": Witness(dims=(2, 2, 2), settings={"beta": 0.5}),
    "attention_padded_scale": Witness(dims=(2, 3, 20)),
    "flash_attention_tail_leak": Witness(dims=(2, 3, 4)),
    "causal_attention_bottom_right": Witness(dims=(2, 3, 4)),
}


@pytest.fixture(scope="module")
def expectations():
    return ExpectationCache(Policy())


@pytest.fixture
def verdict_of(runner, expectations):
    def judge(entry, case):
        task = TASKS[entry.task]
        candidate = read_candidate(
            source(entry), filename(entry), task_names=tuple(TASKS), task=entry.task
        )
        with CandidateSession(task, candidate, runner, expectations, deadline_s=60.0) as session:
            expectation = expectations.get(task, case)
            ruling, _, _ = session.call(expectation)
            if not isinstance(ruling.verdict, Failed):
                return ruling.verdict
            return probe(session, expectation, ruling, config=0).refine(ruling.verdict)

    return judge


def test_every_bug_of_ours_has_a_witness():
    assert set(WITNESSES) == {entry.name for entry in OURS if entry.role == "bug"}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITNESSES)
def test_the_bug_fails_on_its_witness_and_its_control_passes(name, verdict_of):
    entry = BY_NAME[name]
    case = WITNESSES[name].case(TASKS[entry.task])
    verdict = verdict_of(entry, case)
    assert isinstance(verdict, Failed), verdict
    assert verdict.kind == WITNESSES[name].kind
    assert verdict_of(BY_NAME[entry.control], case) == Passed()
