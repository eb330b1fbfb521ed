"""Parse the notation of call signatures, which `spec` explains, to arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.arguments import MATRIX_KINDS, Derived, Scalar, TensorSpec


@dataclass(frozen=True, slots=True)
class Given:
    """An attribute as a signature writes it: a name and its default."""

    name: str
    default: Scalar


@dataclass(frozen=True, slots=True)
class Signature:
    """A parsed signature: the operator's name and its arguments in order."""

    name: str
    arguments: tuple[TensorSpec | Given | Derived, ...]


_NAME = re.compile(r"^(?P<name>\w+)\[")
_AFTER = re.compile(r"^(?P<optional>\?)?(?:\s*:\s*(?P<kind>\w+)(?:\((?P<args>.*)\))?)?$")
_LIST = re.compile(r"^(?P<name>\w+)\s*=\s*\[(?P<members>.*)\]$")


def parse_signature(text: str) -> Signature:
    """Parse a signature.

    Raises:
        DeclarationError: it is not in the notation, which is a mistake in our declaration.
    """
    name, _, rest = text.partition("(")
    if not name.isidentifier() or not rest.endswith(")"):
        raise DeclarationError(f"signature {text!r} is not `name(arguments)`")
    parts = (item for part in split(rest[:-1]) for item in _arguments(part, text))
    return Signature(name, tuple(parts))


def _arguments(part: str, text: str) -> Iterator[TensorSpec | Given | Derived]:
    """Return the arguments that one part stands for; a list of tensors stands for its members."""
    if _NAME.match(part):
        yield _tensor(part, text, None)
        return
    key, derived, expression = part.partition(":=")
    if derived:
        yield Derived(name=key.strip(), expression=expression.strip())
        return
    listed = _LIST.match(part)
    if listed and _NAME.match(listed["members"].strip()):
        for member in split(listed["members"]):
            yield _tensor(member, text, listed["name"])
        return
    key, equals, default = part.partition("=")
    if not equals:
        raise DeclarationError(f"{part!r} of {text!r} is neither a tensor nor an attribute")
    yield Given(key.strip(), ast.literal_eval(default.strip()))


def _tensor(part: str, text: str, member_of: str | None) -> TensorSpec:
    start = part.index("[")
    end = _closing(part, start)
    after = _AFTER.match(part[end + 1 :])
    if after is None:
        raise DeclarationError(f"{part!r} of {text!r} is not `name[dims]?: kind(extent)`")
    args = split(after["args"] or "")
    kind = after["kind"] or "real"
    first = args[0] if args else None
    return TensorSpec(
        name=part[:start],
        dims=tuple(split(part[start + 1 : end])),
        kind=kind,
        extent=None if kind in MATRIX_KINDS else first,
        other=args[1] if len(args) > 1 else None,
        form=first if kind in MATRIX_KINDS else None,
        optional=after["optional"] is not None,
        member_of=member_of,
    )


def _closing(text: str, start: int) -> int:
    """Return where the bracket that opens at `start` closes."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([") - (text[i] in ")]")
        if depth == 0:
            return i
    raise DeclarationError(f"{text!r} does not close its bracket")


def split(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
