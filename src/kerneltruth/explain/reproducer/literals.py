"""Tensors, bounds and other values as Python text that a reader can see and change."""

from __future__ import annotations

import base64
import textwrap
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from kerneltruth.oracle.dtypes import NAMES

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Up to here elements are written as numbers.
MOST_WRITTEN = 256
LINE = 96


def coarse(bound: Tensor) -> Tensor:
    """Round many bounds up to 8 bits, by less than 1%, which shortens the text."""
    if bound.numel() <= MOST_WRITTEN:
        return bound
    mantissa, exponent = torch.frexp(bound)
    return torch.ldexp((mantissa * 256).ceil() / 256, exponent)


class CompressedText(str):
    """Text that the script spreads over lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTensor:
    """A tensor as a script states it, with its elements in row-major order.

    Attributes:
        data: numbers if they are few, parts of complex ones in turn; otherwise compressed bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    data: list[Any] | CompressedText


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenInput(WrittenTensor):
    """An input, with its place in memory, in elements."""

    strides: tuple[int, ...]
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOutput(WrittenTensor):
    """What is expected of an output.

    Attributes:
        bound: of each element's error, or of all; None if the output must be equal.
        in_place: the input that holds it.
    """

    output_dtype: str
    bound: WrittenTensor | float | None
    in_place: str | None
    judged: bool


def data_of(value: Tensor) -> WrittenTensor:
    """Return a tensor's elements: as numbers if they are few, otherwise as compressed bytes."""
    value = value.detach().cpu().contiguous()
    data: list[Any] | CompressedText
    if value.numel() <= MOST_WRITTEN:
        # As parts, because Python's text of a complex number loses infinite parts and the sign of
        # 0.
        flat = (torch.view_as_real(value) if value.is_complex() else value).reshape(-1)
        data = (flat.to(torch.float64) if flat.is_floating_point() else flat).tolist()
    else:
        raw = value.reshape(-1).view(torch.uint8).numpy().tobytes()
        data = CompressedText(base64.b64encode(zlib.compress(raw, 9)).decode())
    return WrittenTensor(dtype=NAMES[value.dtype], shape=tuple(value.shape), data=data)


def as_python(value: Any, indent: int = 0) -> str:
    """Return a Python expression for the value; `nan` and `inf` are names in the script."""
    inner = " " * (indent + 4)
    if isinstance(value, CompressedText):
        chunks = [value[i : i + LINE - indent] for i in range(0, len(value), LINE - indent)]
        return "\n".join(("(", *(f'{inner}"{c}"' for c in chunks), " " * indent + ")"))
    if isinstance(value, WrittenTensor):
        value = by_name(value)
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        short = "{" + ", ".join(f"{k!r}: {as_python(v)}" for k, v in value.items()) + "}"
        if "\n" not in short and len(short) + indent <= LINE:
            return short
        items = (f"{inner}{k!r}: {as_python(v, indent + 4)}," for k, v in value.items())
        return "\n".join(("{", *items, " " * indent + "}"))
    if isinstance(value, list) and any(isinstance(v, dict | WrittenTensor) for v in value):
        items = (f"{inner}{as_python(v, indent + 4)}," for v in value)
        return "\n".join(("[", *items, " " * indent + "]"))
    text = repr(value)
    if len(text) + indent > LINE and isinstance(value, list):
        wrapped = textwrap.wrap(text[1:-1], LINE - indent - 4, break_long_words=False)
        return "\n".join(("[", *(inner + w for w in wrapped), " " * indent + "]"))
    return text


def by_name(value: DataclassInstance) -> dict[str, Any]:
    """Return the fields of a dataclass by name, in order."""
    return {field.name: getattr(value, field.name) for field in fields(value)}
