"""What a task's published prompt promises: a kernel may not refuse such inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from kerneltruth.errors import DeclarationError

# The layouts besides `contiguous` that a prompt can promise: it names the memory format, or says
# that inputs need not be contiguous.
Layout = Literal["transposed", "strided", "row_gaps", "offset", "channels_last"]

# The reason for not trying `out=` if it would be a tuple of tensors.
SEVERAL_RESULTS = "a call is given one tensor for its result, and here are several"

# Arguments of functions that create tensors; they change no value.
NOT_TRIED_OF_MAKERS = {
    "layout": "only strided tensors are compared",
    "device": "the result lies on the device of the run, which is the default",
    "requires_grad": "results are compared by their values",
    "memory_format": "the layout of a result is left open",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """What a prompt promises beyond float32, a contiguous layout and its attributes' values.

    Every attribute value is promised unless the task's `extended` names it; the signature says
    which optional tensors may be absent.

    Attributes:
        dtypes: named by the prompt or the task's name; None means float32 if a benchmark's prompt
            names no dtype, and all main dtypes of our own tasks.
        layouts: see `Layout`.
        numbers: the tensors that the prompt lets a Python number replace.
        values: whether finite values of any size are promised, or only as the benchmark draws them.
        recipes: the recipes of values that the prompt mentions, such as `signed_zeros`.
        out: whether the caller may pass a tensor `out=` for the result.
        empty: whether the prompt mentions tensors without elements.
        gradients: whether it says that the result is differentiable.
        not_tried: what else it documents and no case tries, such as an argument, with the reason.
        never: by dtype, a condition of sizes and attributes that no case combines with it;
            `not_tried` says why.

    Examples:
        >>> kt.Promises(dtypes=("float32", "float16"), out=True).gradients
        False
    """

    dtypes: tuple[str, ...] | None = None
    layouts: tuple[Layout, ...] = ()
    numbers: tuple[str, ...] = ()
    values: bool = True
    recipes: tuple[str, ...] = ()
    out: bool = False
    empty: bool = False
    gradients: bool = False
    not_tried: Mapping[str, str] = field(default_factory=dict)
    never: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = set(self.layouts) - set(get_args(Layout))
        if unknown:
            known = ", ".join(get_args(Layout))
            raise DeclarationError(f"layouts {sorted(unknown)}: a prompt promises one of {known}")
