"""Define the arguments of a call as they are sent to a child."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# The bytes of a tensor; a large result stays in whatever form needs no copy.
Data = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorArgument:
    """An input tensor as it must lie in the child's memory.

    `buffer` is the whole allocation: guard band, elements (with gaps, which hold guard values
    too), guard band. `shape`, `strides` and `offset` (in elements) describe the view in it that
    the candidate receives. Arguments of one `member_of` are passed together, as a list of that
    name. `shown`: whether the child reports the buffer after the call.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    buffer: Data
    member_of: str | None = None
    shown: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptArgument:
    """A `TensorArgument` whose buffer lies in the judge's memory: where it begins, and its size."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    start: int
    size: int
    member_of: str | None = None
    shown: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedArgument:
    """A contiguous tensor too large to be sent: its elements repeat those of `block`, row-major.

    `member_of` is as in `TensorArgument`.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    block: Data
    member_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArgument:
    """An attribute: None, bool, int, float, str, or a list of ints.

    A candidate that does not know the attribute may still be called if `value` is the task's
    `default`. An absent optional tensor is a ScalarArgument whose value and default are None.
    """

    name: str
    value: Any
    default: Any = None


Argument = TensorArgument | KeptArgument | RepeatedArgument | ScalarArgument
