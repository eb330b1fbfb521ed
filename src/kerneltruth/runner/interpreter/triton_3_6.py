"""Triton 3.6 and 3.7: the builder knows block pointers, and has no scaled product."""

from __future__ import annotations

from typing import Any

import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from kerneltruth.runner.interpreter.handles import Handle
from kerneltruth.runner.interpreter.memory import padding_values
from kerneltruth.runner.interpreter.versions import Adapter


def _block_load(
    self: Any, ptr: Any, boundary_check: Any, padding: Any, cache: Any, eviction: Any, volatile: Any
) -> Handle:
    pointers, masks = ptr.materialize_pointers(boundary_check)
    other = padding_values(padding, pointers.data.shape, pointers.get_element_ty())
    return self.create_masked_load(
        pointers, TensorHandle(masks, tl.int1), other, cache, eviction, volatile
    )


def _block_store(
    self: Any, ptr: Any, value: Handle, boundary_check: Any, cache: Any, eviction: Any
) -> Any:
    pointers, masks = ptr.materialize_pointers(boundary_check)
    return self.create_masked_store(pointers, value, TensorHandle(masks, tl.int1), cache, eviction)


ADAPTER = Adapter(
    methods={
        "create_tensor_pointer_load": _block_load,
        "create_tensor_pointer_store": _block_store,
    },
    added=frozenset(
        {"create_dot_scaled", "create_descriptor_reduce", "create_fneg", "get_bf16", "__getattr__"}
    ),
    handles=("TensorHandle", "TensorDescHandle", "BlockPointerHandle"),
    kept=frozenset({"create_make_block_ptr", "create_advance"}),
)
