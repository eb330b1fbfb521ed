"""Parse the notation of call signatures, which `spec` explains, to arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.arguments import MATRIX_KINDS, Derived, Scalar, TensorSpec
from kerneltruth.tasks.brackets import closing, split


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
        DeclarationError: it is not in the notation.
    """
    name, _, rest = text.partition("(") if isinstance(text, str) else ("", "", "")
    if not name.isidentifier() or not rest.endswith(")"):
        raise DeclarationError(f"signature {text!r}: write it as `name(arguments)`")
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
        raise DeclarationError(
            f"signature {text!r}: {part!r} is neither a tensor nor an attribute; write "
            "`name[dims]` or `name=default`"
        )
    yield Given(key.strip(), _literal(default.strip(), key.strip()))


def _literal(text: str, name: str) -> Scalar:
    try:
        value: Scalar = ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise DeclarationError(
            f"the default {text!r} of {name!r} is no literal; write a number, a string, a bool, "
            "None or a tuple"
        ) from error
    return value


def _tensor(part: str, text: str, member_of: str | None) -> TensorSpec:
    start = part.index("[")
    end = closing(part, start)
    after = _AFTER.match(part[end + 1 :])
    if after is None:
        raise DeclarationError(
            f"signature {text!r}: {part!r} is no tensor; write `name[dims]`, `name[dims]?` or "
            "`name[dims]: kind`"
        )
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
