"""Write a failing case as one standalone Python script that needs torch and triton alone."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import torch
from torch import Tensor

from kerneltruth.cases.layouts import Placed
from kerneltruth.documents.verdict import Failed, TimedOut, Verdict
from kerneltruth.explain.reproducer.calling import CALLING
from kerneltruth.explain.reproducer.judging import JUDGING
from kerneltruth.explain.reproducer.laying_out import LAYING_OUT
from kerneltruth.explain.reproducer.literals import (
    LINE,
    CompressedText,
    WrittenInput,
    WrittenOutput,
    WrittenTensor,
    as_python,
    by_name,
    coarse,
    data_of,
)
from kerneltruth.explain.reproducer.loading import LOADING
from kerneltruth.oracle.dtypes import DTYPES
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput
from kerneltruth.oracle.gradients import differentiated
from kerneltruth.runner.bundle import source_literal
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.child.models import CONSTRUCTED
from kerneltruth.runner.child.pretrained import ModelConfig, small_configs
from kerneltruth.tasks.arguments import Scalar
from kerneltruth.tasks.spec import Task

# The text after a script's data; marks enclose parts that not all scripts need.
BODY = LAYING_OUT + LOADING + CALLING + JUDGING
_MOST_LINES = 4
# One run without a fault proves little for these kinds: they depend on chance, on surrounding
# memory, or on facts that a script does not check.
_UNSURE = frozenset(
    (
        *("nondeterministic", "other_bits", "same_draw", "out_of_bounds", "crash"),
        *("compile_error", "device", "no_kernel", "changed_later", "false_claim"),
        "kept_result",
    )
)
_MARK = re.compile(r"\s*# <(/?)(\w+)>\n?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Facts that a reader of a script needs first.

    Attributes:
        lines: the inputs, the expected and the returned values.
        device: where the kernel failed.
    """

    lines: tuple[str, ...] = ()
    device: str = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptData:
    """The names that a script states, in its order: first what a reader may want to change.

    Attributes:
        sure: whether one run without the fault proves that the kernel is right.
        config: which configuration of an autotuned kernel failed.
        arrays: whether the candidate takes and returns NumPy's arrays.
        lists: the members of each list of tensors.
        gradients: the inputs whose gradients are judged.
        models: the small models that stand for those that a call names; stated if there are any.
        as_found: sha256 of the source, where it is Triton; an edited source has another.
    """

    case: str
    scalars: dict[str, Scalar]
    tensors: dict[str, WrittenInput | None]
    expected: list[WrittenOutput]
    kind: str
    sure: bool
    found_on: str
    config: int
    deadline_s: int
    entry: str | None
    arrays: bool
    arguments: list[str]
    lists: dict[str, list[str]]
    writes: list[str]
    may_write: list[str]
    gradients: list[str]
    notes: list[str]
    models: dict[str, ModelConfig]
    as_found: str

    def lines(self) -> Iterator[str]:
        """Yield the assignments."""
        for name, value in by_name(self).items():
            if name not in ("models", "as_found") or value:
                yield f"{name.upper()} = {as_python(value)}"


def script(
    *,
    task: Task,
    candidate: Candidate,
    expectation: Expectation,
    placed: Mapping[str, Placed],
    verdict: Verdict,
    explanation: str = "",
    config: int = 0,
    seen: Seen = Seen(),
) -> str:
    """Return the script's text.

    The script exits with 1 if the kernel is wrong, 0 if right, 2 if it cannot tell here.

    The candidate is included verbatim. `config` says which configuration of an autotuned kernel
    failed.
    """
    kind = verdict.kind if isinstance(verdict, Failed) else verdict.word
    case, inputs = expectation.case, expectation.inputs
    written = task.written(inputs.scalars, inputs.tensors)
    backward = task.wants_gradients(case.settings)
    data = ScriptData(
        case=f"{case.task} {case.summary()}",
        scalars={n: v for n, v in inputs.scalars.items() if not n.startswith("_")},
        tensors={
            name: None if value is None else _input(value, placed[name])
            for name, value in inputs.tensors.items()
        },
        expected=[_expected(o, written) for o in expectation.outputs],
        kind=kind,
        # Memory that C++ allocates is not filled with a pattern.
        sure=kind not in _UNSURE and (kind, candidate.language) != ("uninitialized", "cuda"),
        found_on=seen.device,
        config=config,
        deadline_s=max(math.ceil(verdict.seconds), 1) if isinstance(verdict, TimedOut) else 60,
        entry=candidate.entry,
        arrays=candidate.language == "numpy",
        arguments=list(inputs.order),
        lists={name: list(members) for name, members in inputs.lists.items()},
        writes=list(written),
        may_write=list(task.writable(inputs.scalars, inputs.tensors)),
        gradients=[s.name for s in differentiated(task, case)] if backward else [],
        notes=_notes(expectation),
        models=_models(task, expectation),
        as_found=sha256(candidate.source.encode()).hexdigest() if _is_triton(candidate) else "",
    )
    return "\n".join(
        (
            "#!/usr/bin/env python3",
            _docstring(expectation, verdict, explanation, seen.lines),
            "from math import inf, nan",
            "",
            f"CANDIDATE = {source_literal(candidate.source)}",
            "",
            *_reference(task),
            *data.lines(),
            body(needed(candidate, data)),
        )
    )


def needed(candidate: Candidate, data: ScriptData) -> frozenset[str]:
    """Return which of the marked parts a script needs."""
    given = [t for t in data.tensors.values() if t is not None]
    bounds = [o.bound for o in data.expected if isinstance(o.bound, WrittenTensor)]
    written: list[WrittenTensor] = [*given, *data.expected, *bounds]
    model = "get_init_inputs()" in data.arguments
    found = {
        "arrays": candidate.language == "numpy",
        "autotune": "autotune" in candidate.source,
        "child": data.kind in ("crash", "timeout"),
        "complex": any("complex" in t.dtype for t in written)
        or any("complex" in o.output_dtype for o in data.expected),
        "gradients": bool(data.gradients),
        "interpreter": _is_triton(candidate),
        "model": model,
        "optimizer": any(n.startswith("_gradients_of_") for n in data.arguments),
        "other_values": data.kind == "kept_state",
        "pretrained": bool(data.models),
        "packed": any(isinstance(t.data, CompressedText) for t in written),
        "repeat": data.kind in ("nondeterministic", "other_bits", "uninitialized", "out_of_bounds"),
        "values": model or data.kind == "kept_state",
    }
    return frozenset(name for name, is_needed in found.items() if is_needed)


def _is_triton(candidate: Candidate) -> bool:
    return "triton" in candidate.source


def body(parts: frozenset[str]) -> str:
    """Return the text after a script's data, with these marked parts."""
    kept: list[str] = []
    within: list[str] = []
    for line in BODY.splitlines(keepends=True):
        mark = _MARK.fullmatch(line)
        if mark is None:
            kept += [line] if parts >= frozenset(within) else []
        elif mark[1]:
            within.remove(mark[2])
        else:
            within.append(mark[2])
    return "".join(kept)


def _models(task: Task, expectation: Expectation) -> dict[str, ModelConfig]:
    """Return the small models that stand for those that a call names, by name."""
    called = str(expectation.inputs.scalars.get(CONSTRUCTED, ""))
    small = small_configs() if task.pretrained else {}
    return {name: config for name, config in small.items() if repr(name) in called}


def _reference(task: Task) -> Iterator[str]:
    """Yield what the kernel must compute, for a reader, if a file of the user's own says it."""
    if task.source is not None:
        yield "# What it must compute; EXPECTED holds the result in float64 on the inputs below."
        yield f"REFERENCE = {source_literal(task.source)}"
        yield ""


def _docstring(
    expectation: Expectation, verdict: Verdict, explanation: str, seen: Sequence[str]
) -> str:
    case = expectation.case
    said = getattr(verdict, "detail", "") or getattr(verdict, "reason", "")
    head = f"A wrong kernel for {case.task}, on {case.summary()}."
    kind = verdict.kind if isinstance(verdict, Failed) else ""
    verdict_line = " ".join(w for w in (f"Verdict: {verdict.word}", kind) if w)
    usage = (
        "Run it where torch and triton are: it prints RIGHT (exit code 0), WRONG (1) or NOT JUDGED "
        "(2)."
    )
    conclusion = f"{verdict_line}. {said}".strip()
    parts = [head, *_wrapped(conclusion), *_wrapped(explanation), "", *seen, "", *_wrapped(usage)]
    text = "\n".join(parts)
    return '"""' + text.replace("\\", "\\\\").replace('"""', "'''").replace("\0", "") + '\n"""'


def _wrapped(text: str) -> list[str]:
    """Return a text as few lines; compilers' messages are long."""
    lines = textwrap.wrap(text, LINE)
    return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "..."]


def _notes(expectation: Expectation) -> list[str]:
    notes = []
    several = [o.spec.name for o in expectation.outputs if o.spec.compare == "accept"]
    if several:
        names = ", ".join(several)
        notes.append(f"several answers are right for {names}; one of them is expected here")
    if any(o.spec.compare == "claims" for o in expectation.outputs):
        notes.append("what was returned broke a claim that only kerneltruth can check: replay it")
    return notes


def _input(value: Tensor, placed: Placed) -> WrittenInput:
    return WrittenInput(
        **by_name(data_of(value)),
        strides=placed.strides,
        offset=placed.offset,
        length=len(placed.buffer) // DTYPES[placed.dtype].itemsize,
    )


def _expected(output: ExpectedOutput, written: tuple[str, ...]) -> WrittenOutput:
    """Return the expected output: float64 if it is bounded, otherwise in the output dtype.

    A complex output is split into its real and imaginary parts.
    """
    exact = output.bound is None
    bound: WrittenTensor | float | None = None
    if output.bound is not None:
        bound = data_of(coarse(output.bound.to(torch.float64)))
        first = output.bound.reshape(-1)[:1]
        if not first.numel() or bool((output.bound == first).all()):
            bound = float(first) if first.numel() else 0.0
    value = output.rounded if exact else output.reference
    return WrittenOutput(
        **by_name(data_of(value)),
        output_dtype=output.promised_dtype,
        bound=bound,
        in_place=output.spec.name if output.spec.name in written else None,
        judged=output.spec.compare != "claims",
    )
