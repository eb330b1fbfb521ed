"""What a task is: a named operator over symbolic dims, with a float64 reference.

A task is declared by a call signature in a small notation, so that an ordinary operator takes
about ten lines:

    task(
        "rms_norm(x[M, N], weight[N], eps=1e-6)",
        category="Normalization",
        dims={"M": "batch", "N": "reduced"},
        reference=lambda x, weight, eps: F.rms_norm(x, x.shape[-1:], weight, eps),
        description="...",
        flops="4*M*N",
        benchmark={"M": 32, "N": 256},
    )

An argument is one of:

- `name[dims]`, a tensor; `name[dims]: kind`, of another kind (see `arguments.KINDS`);
  `name[dims]?`, one that may be None. Dims are symbols, integers or integer expressions of symbols
  and attributes, such as `C // groups`; `*name` stands for several at once, so that the rank may
  vary.
- `name=default`, an attribute; `_name=default`, a hidden one, which cases vary like any other and
  the candidate does not see. The reference gets it if it has a parameter of that name.
- `name:=expression`, a scalar that follows from dims and attributes.
- `name=[a[M, K], b[M, L]?]`, a list of tensors; optional members may be missing from it.

Names may stand for what follows from dims and attributes: `where` gives each a function with those
names for parameters, or a table of `Variants`, of which a hidden attribute chooses one:

    task(
        "relu(x[*shape])",
        where={"shape": Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 2, N"})},
        ...
    )

The reference is written once, in torch, generic over the dtype: the oracle calls it with float64
tensors for the exact result and with working-precision tensors for the error of correct kernels.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.arguments import (
    INDEX_KINDS,
    KEEPING_KINDS,
    KINDS,
    MATRIX_KINDS,
    ROW_KINDS,
    ArgumentSpec,
    Attribute,
    Benchmark,
    Derived,
    Dim,
    Mask,
    Output,
    Role,
    Scalar,
    Sizes,
    TensorSpec,
)
from kerneltruth.tasks.claims import Claim, Evidence
from kerneltruth.tasks.declaration import FLOATS, Declaration
from kerneltruth.tasks.expressions import Scope, Variants, evaluate
from kerneltruth.tasks.model import CORE, Task
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.signature import parse_signature
from kerneltruth.tasks.with_spread import WithSpread

__all__ = [
    "CORE",
    "FLOATS",
    "INDEX_KINDS",
    "KEEPING_KINDS",
    "KINDS",
    "MATRIX_KINDS",
    "ROW_KINDS",
    "ArgumentSpec",
    "Attribute",
    "Benchmark",
    "Claim",
    "Declaration",
    "Derived",
    "Dim",
    "Evidence",
    "Mask",
    "Output",
    "Promises",
    "Role",
    "Scalar",
    "Scope",
    "Sizes",
    "Task",
    "TensorSpec",
    "Variants",
    "WithSpread",
    "evaluate",
    "nonempty",
    "parse_signature",
    "task",
]

P = ParamSpec("P")


def nonempty(**roles: Role) -> dict[str, Role | Dim]:
    """Return dims of these roles that are never 0."""
    return {symbol: Dim(symbol=symbol, role=role, low=1) for symbol, role in roles.items()}


def _declaring(declaration: Callable[P, Declaration]) -> Callable[P, Task]:
    """Return the function that declares and gives the task at once."""

    def task(*given: P.args, **named: P.kwargs) -> Task:
        try:
            declared = declaration(*given, **named)
        except TypeError as error:
            said = str(error).replace("Declaration.__init__()", "task()")
            raise DeclarationError(
                f"{said}; docs/reference/api.md lists the arguments under `task`"
            ) from error
        return replace(declared.task(), declared_at=_caller())

    task.__doc__ = declaration.__doc__
    task.__signature__ = inspect.signature(declaration)  # type: ignore[attr-defined]
    return task


def _caller() -> tuple[str, int] | None:
    """Return the file or cell that declares a task, and the line of its top-level statement."""
    frame = sys._getframe(2)
    # As IPython names the code of a cell, besides Python's own name.
    while not frame.f_code.co_name.startswith(("<module>", "<cell line")):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


task = _declaring(Declaration)
