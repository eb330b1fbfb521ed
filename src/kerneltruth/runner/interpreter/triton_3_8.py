"""Triton 3.8: the language itself makes pointers of block pointers."""

from __future__ import annotations

from kerneltruth.runner.interpreter.versions import Adapter

ADAPTER = Adapter(
    methods={},
    added=frozenset({"create_descriptor_reduce", "get_bf16", "__getattr__"}),
)
