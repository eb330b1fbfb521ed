"""Write a failing case as one standalone Python script that needs torch and triton alone."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kerneltruth.cases.layouts import Placed
from kerneltruth.documents.verdict import Failed, TimedOut, Verdict
from kerneltruth.explain.reproducer.calling import CALLING
from kerneltruth.explain.reproducer.judging import JUDGING
from kerneltruth.explain.reproducer.laying_out import LAYING_OUT
from kerneltruth.explain.reproducer.literals import LINE, CompressedText, as_python, coarse, data_of
from kerneltruth.explain.reproducer.loading import LOADING
from kerneltruth.oracle.dtypes import DTYPES
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput
from kerneltruth.oracle.gradients import differentiated
from kerneltruth.runner.bundle import source_literal
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.child.models import CONSTRUCTED
from kerneltruth.runner.child.pretrained import small_configs
from kerneltruth.tasks.spec import Task

# The text after a script's data; marks enclose parts that not all scripts need.
BODY = LAYING_OUT + LOADING + CALLING + JUDGING
_MOST_LINES = 4
# In the order of the script: first what a reader may want to change.
_SETTINGS = (
    *("CASE", "SCALARS", "TENSORS", "EXPECTED", "KIND", "SURE", "FOUND_ON", "CONFIG"),
    *("DEADLINE_S", "ENTRY", "ARRAYS", "ARGUMENTS", "LISTS", "WRITES", "MAY_WRITE", "GRADIENTS"),
    "NOTES",
)
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
    settings = {
        **_call(task, expectation, placed),
        "KIND": kind,
        # Memory that C++ allocates is not filled with a pattern.
        "SURE": kind not in _UNSURE and (kind, candidate.language) != ("uninitialized", "cuda"),
        "FOUND_ON": seen.device,
        "CONFIG": config,
        "DEADLINE_S": max(math.ceil(verdict.seconds), 1) if isinstance(verdict, TimedOut) else 60,
        "ENTRY": candidate.entry,
        "ARRAYS": candidate.language == "numpy",
        "NOTES": _notes(expectation),
        "MODELS": _models(task, expectation),
    }
    return "\n".join(
        (
            "#!/usr/bin/env python3",
            _docstring(expectation, verdict, explanation, seen.lines),
            "from math import inf, nan",
            "",
            f"CANDIDATE = {source_literal(candidate.source)}",
            "",
            *_reference(task),
            *(f"{name} = {as_python(settings[name])}" for name in _SETTINGS),
            *([f"MODELS = {as_python(settings['MODELS'])}"] if settings["MODELS"] else ()),
            body(needed(candidate, settings)),
        )
    )


def needed(candidate: Candidate, settings: Mapping[str, Any]) -> frozenset[str]:
    """Return which of the marked parts a script needs."""
    kind, arguments = settings["KIND"], settings["ARGUMENTS"]
    written = [s for s in (*settings["TENSORS"].values(), *settings["EXPECTED"]) if s is not None]
    bounds = [s["bound"] for s in settings["EXPECTED"] if isinstance(s["bound"], dict)]
    data = [*written, *bounds]
    model = "get_init_inputs()" in arguments
    found = {
        "arrays": candidate.language == "numpy",
        "autotune": "autotune" in candidate.source,
        "child": kind in ("crash", "timeout"),
        "complex": any("complex" in s["dtype"] for s in data)
        or any("complex" in s["output_dtype"] for s in settings["EXPECTED"]),
        "gradients": bool(settings["GRADIENTS"]),
        "interpreter": "triton" in candidate.source,
        "model": model,
        "optimizer": any(n.startswith("_gradients_of_") for n in arguments),
        "other_values": kind == "kept_state",
        "pretrained": bool(settings["MODELS"]),
        "packed": any(isinstance(s["data"], CompressedText) for s in data),
        "repeat": kind in ("nondeterministic", "other_bits", "uninitialized", "out_of_bounds"),
        "values": model or kind == "kept_state",
    }
    return frozenset(name for name, is_needed in found.items() if is_needed)


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


def _models(task: Task, expectation: Expectation) -> dict[str, Any]:
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


def _call(task: Task, expectation: Expectation, placed: Mapping[str, Placed]) -> dict[str, Any]:
    case, inputs = expectation.case, expectation.inputs
    backward = task.wants_gradients(case.settings)
    written = task.written(inputs.scalars, inputs.tensors)
    return {
        "CASE": f"{case.task} {case.summary()}",
        "ARGUMENTS": list(inputs.order),
        "LISTS": {name: list(members) for name, members in inputs.lists.items()},
        "WRITES": list(written),
        "MAY_WRITE": list(task.writable(inputs.scalars, inputs.tensors)),
        "GRADIENTS": [s.name for s in differentiated(task, case)] if backward else [],
        "SCALARS": {n: v for n, v in inputs.scalars.items() if not n.startswith("_")},
        "TENSORS": {
            name: None if value is None else _input(value, placed[name])
            for name, value in inputs.tensors.items()
        },
        "EXPECTED": [_expected(o, written) for o in expectation.outputs],
    }


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
    told = f"{verdict_line}. {said}".strip()
    parts = [head, *_wrapped(told), *_wrapped(explanation), "", *seen, "", *_wrapped(usage)]
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


def _input(value: Tensor, placed: Placed) -> dict[str, Any]:
    return {
        **data_of(value),
        "strides": placed.strides,
        "offset": placed.offset,
        "length": len(placed.buffer) // DTYPES[placed.dtype].itemsize,
    }


def _expected(output: ExpectedOutput, written: tuple[str, ...]) -> dict[str, Any]:
    """Return the expected output: float64 if it is bounded, otherwise in the output dtype.

    A complex output is split into its real and imaginary parts.
    """
    exact = output.bound is None
    bound: Any = None
    if output.bound is not None:
        bound = data_of(coarse(output.bound.to(torch.float64)))
        first = output.bound.reshape(-1)[:1]
        if not first.numel() or bool((output.bound == first).all()):
            bound = float(first) if first.numel() else 0.0
    value = output.rounded if exact else output.reference
    return {
        **data_of(value),
        "output_dtype": output.promised_dtype,
        "bound": bound,
        "in_place": output.spec.name if output.spec.name in written else None,
        "judged": output.spec.compare != "claims",
    }
