"""Faster construction of the language's types, which is most of what a program costs.

Every operation makes a tensor and its block type anew; shapes repeat, so what follows from a
shape alone is kept. The results are those of the original constructors.
"""

from __future__ import annotations

import math
from typing import Any

import triton.language as tl
from triton._utils import validate_block_shape

_CONSTEXPR = tl.core.constexpr
_TUPLE = tl.core.tuple
# By a block's shape: the shape as the language's tuple and the number of elements.
_blocks: dict[tuple[int, ...], tuple[Any, int]] = {}
_names: dict[tuple[tuple[int, ...], str], str] = {}
# By a tensor's shape: the number of elements and the shape, both as constants.
_tensors: dict[tuple[int, ...], tuple[Any, Any]] = {}
_tokens: dict[tuple[Any, ...], Token] = {}


class Token:
    """Stands for all types that are equal to each other; compared by identity."""

    __slots__ = ()


def token(ty: Any) -> Token:
    """Return the token of a type, shared with all types that certainly equal it."""
    try:
        return ty._kerneltruth_token  # type: ignore[no-any-return]
    except AttributeError:
        pass
    kind = type(ty)
    if kind is tl.block_type:
        key: tuple[Any, ...] = (kind, token(ty.element_ty), _bare(ty.shape))
    elif kind is tl.pointer_type:
        key = (kind, token(ty.element_ty), ty.address_space, ty.const)
    elif kind is tl.dtype:
        key = (kind, ty.name)
    else:
        # Equal to itself at least.
        key = (Token(),)
    ty._kerneltruth_token = made = _tokens.setdefault(key, Token())
    return made


def _bare(shape: Any) -> tuple[int, ...]:
    items = shape.values if type(shape) is _TUPLE else shape
    return tuple([n.value if type(n) is _CONSTEXPR else n for n in items])


def init_block_type(self: Any, element_ty: Any, shape: Any) -> None:
    """Replaces `block_type.__init__`."""
    bare = _bare(shape)
    if bare not in _blocks:
        if not bare:
            raise TypeError("0d block_type is forbidden")
        _blocks[bare] = (_TUPLE(bare), validate_block_shape(bare))
    element = element_ty.name
    if (bare, element) not in _names:
        _names[bare, element] = f"<{_TUPLE(bare)}, {element_ty}>"
    self.element_ty = element_ty
    self.shape, self.numel = _blocks[bare]
    self.name = _names[bare, element]


def init_tensor(self: Any, handle: Any, type: Any) -> None:
    """Replaces `tensor.__init__`."""
    try:
        parts = type._kerneltruth_parts
    except AttributeError:
        shape = tuple(type.shape.values) if type.is_block() else ()
        if shape not in _tensors:
            _tensors[shape] = (_CONSTEXPR(math.prod(shape)), _TUPLE([_CONSTEXPR(n) for n in shape]))
        type._kerneltruth_parts = parts = (type.scalar, *_tensors[shape])
    self.handle = handle
    self.type = type
    self.dtype, self.numel, self.shape = parts


def init_handle(self: Any, data: Any, dtype: Any, attr: Any = None) -> None:
    """Replaces `TensorHandle.__init__`: the check of the element's size is made once per type."""
    self.data = data
    self.dtype = dtype
    self.attr = {} if attr is None else attr
    try:
        fits = data.itemsize <= dtype._kerneltruth_itemsize
    except AttributeError:
        fits = False
    if not fits:
        self.__post_init__()
        pointer = isinstance(dtype, tl.pointer_type)
        dtype._kerneltruth_itemsize = 8 if pointer else max(1, dtype.primitive_bitwidth // 8)
