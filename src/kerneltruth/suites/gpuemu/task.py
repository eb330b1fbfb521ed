"""Turn a control of the corpus into a task: dims from its schema, their roles from its reference.

The schema names sizes and shapes. Which dims an output sums over is learned from the reference: an
element that changes with inputs elsewhere along a dim is a sum, or a search, over that dim.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.gpuemu.corpus import CorpusKernel, OpSchema, SchemaDim
from kerneltruth.suites.remote import Rejected, Remote
from kerneltruth.tasks.arguments import Role
from kerneltruth.tasks.promises import Promises
from kerneltruth.tasks.spec import Benchmark, Dim, Output, Task, TensorSpec

SUITE = "gpuemu"
CHILD = Path(__file__).with_name("child.py")
REFERENCE_S = 60.0
# The smallest sizes that show whether neighbours along a dim matter to each other.
_LEAST = 2


def _program(kernel: CorpusKernel, ending: str = "", entry: str = "answer") -> Candidate:
    text = CHILD.read_text("utf-8")
    return Candidate(
        source=f"{text}\nPROGRAM = {kernel.program!r}\nREFKIT = {kernel.refkit!r}\n{ending}",
        path="gpuemu_reference.py",
        sha256=kernel.sha256,
        language="torch",
        trusted=True,
        entry=entry,
    )


def own_function_of(kernel: CorpusKernel) -> Candidate:
    """Return the reference as a candidate for its task."""
    given, entry = kernel.meta.input_names, kernel.meta.name
    named = ", ".join(f"{name}={name}.cpu()" for name in given)
    call = f'    return answer("{{}}", {named}).to({given[0]}.device)'
    return _program(kernel, f"\n\ndef {entry}({', '.join(given)}):\n{call}\n", entry)


class ProgramReference:
    """The corpus's own program, unchanged and in a child, as the reference of a task."""

    def __init__(self, kernel: CorpusKernel, runner: Runner) -> None:
        self._names = kernel.meta.input_names
        self._remote = Remote(_program(kernel), runner)

    def __call__(self, **given: Any) -> torch.Tensor:
        """Return the output.

        Raises:
            Rejected: the program does not accept these inputs.
        """
        tensors = {name: given[name] for name in self._names}
        (made,) = self._remote.outputs({"narrow": True}, tensors, deadline_s=REFERENCE_S)
        return made

    def close(self) -> None:
        """End its child."""
        self._remote.close()


def task_of(kernel: CorpusKernel, runner: Runner) -> Task:
    """Return the task of a control; a few runs of its reference, in a child, show its dims' roles.

    A task whose reference fails says so.
    """
    schema, meta = kernel.meta.op_schema, kernel.meta
    reference = ProgramReference(kernel, runner)
    try:
        roles = roles_of(schema, reference)
        trouble = None
    except Rejected as error:
        roles, trouble = {}, f"the reference fails: {error}"
    finally:
        reference.close()
    largest = {d.name: max(d.candidates) for d in schema.dims}
    usual = {d.name: _usual(d) for d in schema.dims}
    shown = ", ".join(f"{t.name}[{', '.join(t.dims)}]" for t in schema.inputs)
    product = "*".join(d.name for d in schema.dims)
    return Task(
        name=meta.name,
        category=schema.name,
        suite=SUITE,
        signature=f"{meta.name}({shown})",
        description=said_of(kernel),
        dims=tuple(_dim(d, roles.get(d.name, "batch")) for d in schema.dims),
        arguments=tuple(TensorSpec(name=t.name, dims=t.dims) for t in schema.inputs),
        outputs=(Output(name=schema.output.name),),
        reference=reference,
        dtypes=meta.dtypes,
        extended_dtypes=(),
        constraints=(),
        flops=f"2*{product}" if "contracted" in roles.values() else product,
        bytes=None,
        benchmark=Benchmark(dims=usual, distribution="wide"),
        tolerance=meta.tolerances,
        perf=(usual,) if usual == largest else (usual, largest),
        # The corpus draws all values from [-10, 10].
        promises=Promises(values=False),
        # A schema states shapes; the kernels make their inputs contiguous themselves.
        layouts=False,
        entry=meta.name,
        unrefereeable=trouble,
        foreign=True,
    )


def said_of(kernel: CorpusKernel) -> str:
    """Return the first sentence of the reference's docstring."""
    said = ast.get_docstring(ast.parse(kernel.program)) or ""
    return said.split("\n\n")[0].replace("\n", " ")


def roles_of(schema: OpSchema, reference: ProgramReference) -> dict[str, Role]:
    """Return the role of each dim.

    Raises:
        Rejected: the reference does not accept inputs of the schema.
    """
    sizes = {d.name: _smallest(d) for d in schema.dims}
    draw = torch.Generator().manual_seed(0)

    def drawn(dims: tuple[str, ...]) -> torch.Tensor:
        shape = [sizes[d] for d in dims]
        return torch.randn(shape, generator=draw, dtype=torch.float64)

    inputs = {t.name: drawn(t.dims) for t in schema.inputs}
    usual = reference(**inputs)
    return {
        d.name: _summed(schema, d.name)
        if _mixes(schema, d.name, inputs, usual, reference)
        else "batch"
        for d in schema.dims
    }


def _mixes(
    schema: OpSchema,
    dim: str,
    inputs: Mapping[str, torch.Tensor],
    usual: torch.Tensor,
    reference: ProgramReference,
) -> bool:
    """Return whether an output depends on inputs elsewhere along a dim."""
    if dim not in schema.output.dims:
        return True
    changed = {name: tensor.clone() for name, tensor in inputs.items()}
    for spec in schema.inputs:
        if dim in spec.dims:
            changed[spec.name].select(spec.dims.index(dim), 0).add_(1.0)
    axis = schema.output.dims.index(dim)
    rest = usual.shape[axis] - 1
    apart = reference(**changed).narrow(axis, 1, rest) - usual.narrow(axis, 1, rest)
    return bool((apart != 0).any())


def _summed(schema: OpSchema, dim: str) -> Role:
    """Return whether products of two matrices are summed, or plain elements."""
    over = [{*t.dims} for t in schema.inputs if dim in t.dims]
    product = any(a - b and b - a for a in over for b in over)
    return "contracted" if product else "reduced"


def _smallest(dim: SchemaDim) -> int:
    return min((n for n in dim.candidates if n >= _LEAST), default=_LEAST)


def _usual(dim: SchemaDim) -> int:
    """Return the size of a benchmark: the largest power of two that the schema has."""
    powers = [n for n in dim.candidates if n & (n - 1) == 0]
    return max(powers or dim.candidates)


def _dim(dim: SchemaDim, role: Role) -> Dim:
    return Dim(symbol=dim.name, role=role, low=min(dim.candidates), high=max(dim.candidates))


def kernels_source(names: Sequence[str], source: str, entry: str) -> str:
    """Return a kernel's source with a function below it that takes and returns what a judge does.

    That is NumPy's arrays for a kernel of NumPy alone, else tensors.
    """
    given = ", ".join(f"{name!r}: {name}" for name in names)
    body = [f"    return run({{{given}}})"]
    if _language(source) != "numpy":
        given = ", ".join(f"{name!r}: {name}.cpu().numpy()" for name in names)
        made = f"torch.from_numpy(run({{{given}}}))"
        body = ["    import torch", "", f"    return {made}.to({names[0]}.device)"]
    return "\n".join([source.rstrip(), "", "", f"def {entry}({', '.join(names)}):", *body, ""])


def _language(source: str) -> str:
    try:
        return read_candidate(source, "kernel.py", task_names=("run",), task="run").language
    except UserError:
        return ""
