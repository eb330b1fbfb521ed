"""Documents for tests: what a test does not name is empty, zero, false or null."""

from types import NoneType
from typing import Literal, get_args, get_origin

import msgspec

from kerneltruth.documents.model import Number, parse, plain


def document(kind, /, **named):
    """A model of a kind with the fields that a test names, in the form that they have in JSON."""
    return parse(kind, {**_blank(kind), **plain(named)})


def _blank(kind):
    fields = [f for f in msgspec.structs.fields(kind) if f.required]
    tag = kind.__struct_config__.tag
    own = {kind.__struct_config__.tag_field: tag} if tag else {}
    return own | {field.encode_name: _empty(field.type) for field in fields}


def _empty(hint):
    choices = get_args(hint)
    if NoneType in choices:
        return None
    if get_origin(hint) is Literal:
        return choices[0]
    for kind, value in ((tuple, []), (dict, {}), (list, [])):
        if get_origin(hint) is kind:
            return value
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _blank(hint)
    return {str: "", int: 0, float: 0.0, bool: False, Number: 0.0}[hint]
