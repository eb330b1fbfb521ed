"""Put data together that are more than tensors: this text ends the sources that take such data.

Nothing here may import kerneltruth.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import Any


def _whole(form: str, given: Sequence[Any]) -> list[Any]:
    """Return data of a form, in which `...` stands for a tensor, with the tensors of each part."""
    parts = zip(ast.literal_eval(form), given, strict=True)
    return [_filled(part, iter(t if isinstance(t, list) else [t])) for part, t in parts]


def _filled(form: Any, tensors: Iterator[Any]) -> Any:
    if form is ...:
        return next(tensors)
    if isinstance(form, dict):
        return {key: _filled(value, tensors) for key, value in form.items()}
    if isinstance(form, tuple | list):
        return type(form)(_filled(value, tensors) for value in form)
    return form
