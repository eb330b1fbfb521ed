"""A cache bounded by the bytes of its contents."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import torch

V = TypeVar("V")

# What an entry costs beside its bytes.
_OVERHEAD = 4096


class Recent(Generic[V]):
    """Values by key, made on first use; the least recently used go first.

    The newest value stays even where it alone is over the limit.
    """

    def __init__(self, size_of: Callable[[V], int], *, limit_bytes: int) -> None:
        self._size_of = size_of
        self._limit = limit_bytes
        self._held = 0
        self._entries: OrderedDict[str, tuple[V, int]] = OrderedDict()

    def get(self, key: str, make: Callable[[], V]) -> V:
        """The value of that key, from the cache if it is there."""
        if key in self._entries:
            self._entries.move_to_end(key)
            return self._entries[key][0]
        made = make()
        size = _OVERHEAD + self._size_of(made)
        self._entries[key] = (made, size)
        self._held += size
        while self._held > self._limit and len(self._entries) > 1:
            _, (_, freed) = self._entries.popitem(last=False)
            self._held -= freed
        return made


def tensor_bytes(tensors: Iterable[torch.Tensor | None]) -> int:
    """The bytes of all elements; an absent tensor has none."""
    return sum(t.nbytes for t in tensors if t is not None)
