"""A cache bounded by the bytes of the tensors in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import torch

V = TypeVar("V")

# What an entry costs beside its tensors.
_OVERHEAD = 4096


class Recent(Generic[V]):
    """Values by key, made on first use; the least recently used go first.

    The newest value stays even where it alone is over the limit.
    """

    def __init__(
        self, tensors_of: Callable[[V], Iterable[torch.Tensor]], *, limit_bytes: int
    ) -> None:
        self._tensors_of = tensors_of
        self._limit = limit_bytes
        self._held = 0
        self._entries: OrderedDict[str, tuple[V, int]] = OrderedDict()

    def get(self, key: str, make: Callable[[], V]) -> V:
        """The value of that key, from the cache if it is there."""
        if key in self._entries:
            self._entries.move_to_end(key)
            return self._entries[key][0]
        made = make()
        tensors = self._tensors_of(made)
        size = _OVERHEAD + sum(t.numel() * t.element_size() for t in tensors)
        self._entries[key] = (made, size)
        self._held += size
        while self._held > self._limit and len(self._entries) > 1:
            _, (_, freed) = self._entries.popitem(last=False)
            self._held -= freed
        return made
