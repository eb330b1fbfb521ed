"""A candidate's entry: import its source, and bind arguments to what it defines."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kerneltruth.runner import emulation
from kerneltruth.runner.child import binding, models
from kerneltruth.runner.protocol import Load

# The candidate's file while it is imported: calls in it of the library would judge it again.
IMPORTING: list[str] = []


class _NoEntry(Exception):
    """The source loaded but has no such entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateEntry:
    """A function, or a class whose instances are called.

    Attributes:
        device: where models lie, unless a GPU is emulated.
    """

    found: Callable[..., Any]
    device: torch.device

    def bound(
        self, rows: Sequence[Sequence[binding.Offered]], *, as_it_is: bool, reused: bool = False
    ) -> tuple[Callable[..., Any], list[tuple[Sequence[Any], dict[str, object]]]]:
        """Build the entry once, and bind each buffer's arguments to its signature.

        A `reused` model has been called with other values than those of the first buffer.
        """
        if models.is_described(rows[0]):
            if isinstance(self.found, type):
                entry, inputs = models.build(self.found, rows[0], self._home, reused=reused)
                return entry, [(inputs, {}), *((models.inputs_of(row), {}) for row in rows[1:])]
            rows = [models.for_function(self.found, row) for row in rows]
        entry, left = self._callable(rows[0], as_it_is=as_it_is)
        wanted, forward = {a.name for a in left}, getattr(entry, "forward", entry)
        bound: list[tuple[Sequence[Any], dict[str, object]]] = [
            binding.bind(forward, [a for a in row if a.name in wanted]) for row in rows
        ]
        if reused and isinstance(self.found, type) and not as_it_is:
            models.call_with_other_values(entry, *bound[0])
        return entry, bound

    @property
    def _home(self) -> str | torch.device:
        """Return the device of a model, as the candidate sees it."""
        return "cuda" if emulation.is_on() else self.device

    def _callable(
        self, arguments: Sequence[binding.Offered], *, as_it_is: bool
    ) -> tuple[Callable[..., Any], Sequence[binding.Offered]]:
        """Return the entry; a model is built from the attributes that its constructor takes."""
        if not isinstance(self.found, type) or as_it_is:
            return self.found, arguments
        own = [a for a in arguments if not a.tensor and binding.knows(self.found, a.name)]
        model = self.found(**{a.name: a.value for a in own})
        if isinstance(model, torch.nn.Module):
            model = model.to(self._home)
        return model, [a for a in arguments if a not in own]


def import_entry(load: Load, device: torch.device) -> CandidateEntry:
    """Import a candidate's source, and return its entry.

    Raises:
        Exception: whatever the source raises, or that it has no such entry.
    """
    IMPORTING.append(load.filename)
    try:
        module = _import(load)
    finally:
        IMPORTING.pop()
    found = getattr(module, load.entry, None)
    if not callable(found):
        raise _NoEntry(f"the source loads, and has no callable {load.entry!r}")
    return CandidateEntry(found=found, device=device)


def _import(load: Load) -> types.ModuleType:
    """Run the source as a module, from a file in the private folder (Triton reads it there)."""
    name = "candidate_" + "".join(c if c.isalnum() else "_" for c in Path(load.filename).stem)
    path = Path.cwd() / f"{name}.py"
    path.write_text(load.source, encoding="utf-8", errors="surrogatepass")
    code = compile(load.source, str(path), "exec", dont_inherit=True)
    linecache.cache[str(path)] = (
        len(load.source),
        None,
        load.source.splitlines(keepends=True),
        str(path),
    )
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module
