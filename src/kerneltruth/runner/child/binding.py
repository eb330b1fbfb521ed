"""Bind a task's arguments to a candidate's signature: by name if possible, else by position."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# Parameters in which a caller may provide memory for the result: only the first name is the
# judge's.
_RESULTS = ("out", "out_tensor", "output", "result")


class SignatureMismatch(Exception):
    """The candidate's signature cannot take the task's arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """An argument of the task.

    `optional`: the candidate may do without it in this call. `member_of`: the list of tensors that
    contains it.
    """

    name: str
    value: Any
    optional: bool = False
    tensor: bool = False
    default: Any = None
    member_of: str | None = None


def bind(
    entry: Callable[..., Any], offered: Sequence[Offered]
) -> tuple[list[Any], dict[str, object]]:
    """Return positional and keyword arguments for the call.

    Arguments go by keyword if the candidate has a parameter of that name. The others fill the
    remaining parameters in order: tensors any of them, attributes only a required one or one with
    the same default. The rest goes into `*args` or `**kwargs`, or is left out if optional.

    Raises:
        SignatureMismatch: an argument that must be passed has no parameter, or the reverse.
    """
    offered = _with_lists(offered)
    try:
        signature = inspect.signature(entry)
    except (ValueError, TypeError):
        return [a.value for a in offered], {}
    assigned, left = _assign(list(signature.parameters.values()), offered)
    kinds = {p.kind for p in signature.parameters.values()}
    extra: list[Any] = []
    named: dict[str, object] = {}
    for argument in left:
        if _stands_for_all(signature, argument, offered):
            extra += argument.value
        elif inspect.Parameter.VAR_KEYWORD in kinds:
            named[argument.name] = argument.value
        elif inspect.Parameter.VAR_POSITIONAL in kinds:
            extra.append(argument.value)
        elif not argument.optional:
            raise SignatureMismatch(f"{_called(entry)}{signature} cannot take {argument.name!r}")
    return _arrange(signature, assigned, extra, named, _called(entry))


def _stands_for_all(
    signature: inspect.Signature, argument: Offered, offered: Sequence[Offered]
) -> bool:
    """Return whether a tuple is passed as the positional arguments themselves: `rand(*size)`."""
    first = next(iter(signature.parameters.values()), None)
    if first is None or first.kind is not inspect.Parameter.VAR_POSITIONAL:
        return False
    return isinstance(argument.value, tuple) and argument is offered[0]


def knows(entry: Callable[..., Any], name: str) -> bool:
    """Return whether the candidate has a parameter of that name."""
    try:
        return name in inspect.signature(entry).parameters
    except (ValueError, TypeError):
        return False


def _with_lists(offered: Sequence[Offered]) -> list[Offered]:
    """Join the members of each list into one argument, at the place of the first."""
    lists: dict[str, list[Any]] = {}
    found = []
    for argument in offered:
        group = argument.member_of
        if group is None:
            found.append(argument)
        elif group in lists:
            lists[group].append(argument.value)
        else:
            lists[group] = [argument.value]
            found.append(Offered(name=group, value=lists[group], tensor=True))
    return found


def _called(entry: Callable[..., Any]) -> str:
    return str(getattr(entry, "__name__", type(entry).__name__))


def _assign(
    parameters: list[inspect.Parameter], offered: Sequence[Offered]
) -> tuple[dict[str, object], list[Offered]]:
    """Return values by parameter, and the arguments without one."""
    named = {p.name for p in parameters if p.kind in _BY_PLACE}
    named |= {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    assigned = {a.name: a.value for a in offered if a.name in named}
    free = (p for p in parameters if p.name not in assigned)
    holes = [p for p in free if p.kind in _BY_PLACE or p.name in _RESULTS]
    left = []
    for argument in (a for a in offered if a.name not in named):
        hole = next((h for h in holes if _fits(argument, h)), None)
        if hole is None:
            left.append(argument)
        else:
            assigned[hole.name] = argument.value
            holes.remove(hole)
    return assigned, left


def _fits(argument: Offered, hole: inspect.Parameter) -> bool:
    if hole.name in _RESULTS and hole.default is None:
        return argument.name == _RESULTS[0]
    if argument.name == _RESULTS[0]:
        return False
    if argument.tensor or hole.default is inspect.Parameter.empty:
        return True
    return type(hole.default) is type(argument.default) and bool(hole.default == argument.default)


def _arrange(
    signature: inspect.Signature,
    assigned: dict[str, object],
    extra: list[Any],
    named: dict[str, object],
    called: str,
) -> tuple[list[Any], dict[str, object]]:
    positional: list[Any] = []
    in_order = True
    for parameter in signature.parameters.values():
        if parameter.name in assigned:
            by_place = parameter.kind in _BY_PLACE and in_order
            if by_place:
                positional.append(assigned[parameter.name])
            else:
                named[parameter.name] = assigned[parameter.name]
        elif parameter.kind in _BY_PLACE:
            in_order = False
    if extra and not in_order:
        raise SignatureMismatch(f"{called}{signature} leaves no place for {len(extra)} arguments")
    positional += extra
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        raise SignatureMismatch(f"{called}{signature}: {error}") from error
    return positional, named
