"""The messages between the judge and the child that runs a problem, as JSON.

Where an answer is tensors, such as outputs, it needs no message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kerneltruth.documents.model import Model, Number
from kerneltruth.suites.kernelbench.schema import Input, InputFacts, WeightFacts

# How a message names the gradients at the outputs.
PASSED = "passed."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemCall:
    """A call of the model, without its tensors.

    Attributes:
        constants: those that differ from the file's own, as the text of a dict.
        order: the names of the inputs.
        scalars: the inputs that are not tensors, as Python text.
        dtype: of inputs, weights and the tensors that the model creates.
        arithmetic: `truncated` or `rounded` for factors in TF32, `gpu-0` or `gpu-1` for operators
            as in GPU libraries, `composed` for activations as in kernels; None for torch's own.
        training: the mode; None leaves the model as its constructor does.
        updated: buffers that are outputs too.
        large: whether it is worth a GPU.
        on_cpu: whether a CPU can do it.
    """

    constants: str
    order: tuple[str, ...]
    scalars: Mapping[str, str]
    dtype: str
    arithmetic: str | None = None
    training: bool | None = None
    updated: tuple[str, ...] = ()
    large: bool = False
    on_cpu: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Another evaluation of the reference: right results may deviate as much as it does.

    Attributes:
        dtype: of inputs, weights and the tensors that the model creates.
        arithmetic: see `ProblemCall`.
        settles: whether a non-finite value here makes the element unsettled.
        columns: whether inputs are column-major, for which libraries have other programs.
    """

    dtype: str
    arithmetic: str | None = None
    settles: bool = True
    columns: bool = False


class ProblemRequest(Model, frozen=True, kw_only=True, tag_field="what"):
    """What the judge wants from a child; `threads` is how many the child computes in."""

    threads: int = 1


class OutlineRequest(ProblemRequest, frozen=True, kw_only=True, tag="outline"):
    """Shapes of inputs, weights and outputs, and the cost of a call; answered by an `Outline`.

    Nothing is computed if the meta device allows that.

    Attributes:
        device: meta or cpu.
        forward: whether to call the model.
    """

    constants: str
    device: str
    forward: bool


class FactsRequest(ProblemRequest, frozen=True, kw_only=True, tag="facts"):
    """What only runs show; `dtypes` are tried in addition to float32 and float64."""

    constants: str
    dtypes: tuple[str, ...]


class RunsRequest(ProblemRequest, frozen=True, kw_only=True, tag="runs"):
    """Whether a run in float64 succeeds, and the range of integer inputs."""

    constants: str


class RangesRequest(ProblemRequest, frozen=True, kw_only=True, tag="ranges"):
    """The range of integer inputs alone, without a run."""

    constants: str


class IgnoresRequest(ProblemRequest, frozen=True, kw_only=True, tag="ignores"):
    """Whether the outputs depend on nothing that these constants add to the inputs."""

    constants: str


class ExampleRequest(ProblemRequest, frozen=True, kw_only=True, tag="example"):
    """Why a plain function is no reference, as its example shows for some constants."""

    constants: str = "{}"


class DrawnRequest(ProblemRequest, frozen=True, kw_only=True, tag="drawn"):
    """The tensor inputs, then the weights of these names, as the problem's own file makes them."""

    constants: str
    weights: tuple[str, ...]
    seed: int


class OutputsRequest(ProblemRequest, frozen=True, kw_only=True, tag="outputs"):
    """The outputs for given inputs and weights.

    `count` is how many runs of a random model, whose outputs are stacked; None for one run.
    """

    call: ProblemCall
    count: int | None = None


class GradientsRequest(ProblemRequest, frozen=True, kw_only=True, tag="gradients"):
    """The gradients of the real inputs, for those at the outputs."""

    call: ProblemCall


class SpreadRequest(ProblemRequest, frozen=True, kw_only=True, tag="with_spread"):
    """The outputs in float64, and how far other evaluations deviate from them.

    `promised` has the dtype of each output.
    """

    call: ProblemCall
    variants: tuple[Variant, ...]
    promised: tuple[str, ...]


AnyRequest = (
    OutlineRequest
    | FactsRequest
    | RunsRequest
    | RangesRequest
    | IgnoresRequest
    | ExampleRequest
    | DrawnRequest
    | OutputsRequest
    | GradientsRequest
    | SpreadRequest
)


class ExtentsAnswer(Model, frozen=True, kw_only=True):
    """For each input, the largest integer that it holds; None for other inputs."""

    extents: tuple[int | None, ...]


class IgnoredAnswer(Model, frozen=True, kw_only=True):
    """Whether the outputs ignore what the constants add."""

    ignored: bool


class ExampleAnswer(Model, frozen=True, kw_only=True):
    """Why a plain function is no reference; None if its example shows nothing against it."""

    trouble: str | None = None


class FactsAnswer(Model, frozen=True, kw_only=True):
    """What runs of a problem show.

    Attributes:
        extents: see `ExtentsAnswer`.
        outputs: of the call; numbers as 0-dim tensors.
        constant: whether the outputs do not depend on the inputs.
        positive: whether negative inputs are outside of the model's domain.
        inexact: the error of a run in the working dtype, relative to the output's size, if it is
            too large for any bound.
        dtypes: those of the outputs, by the dtype of inputs and weights; None if torch has none.

    The others are as in `Schema`.
    """

    working: str
    numbers: dict[str, str]
    inputs: tuple[InputFacts, ...]
    extents: tuple[int | None, ...]
    state: dict[str, WeightFacts]
    outputs: tuple[Input, ...]
    dtypes: dict[str, tuple[str, ...] | None]
    training: bool
    modes: bool
    random: bool
    random_otherwise: bool
    updated: tuple[str, ...]
    constant: bool
    positive: bool
    inexact: Number | None
