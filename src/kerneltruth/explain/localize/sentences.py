"""Say where and how an output is wrong, in one or two plain sentences. Pure over tensors.

A claim is made only if no wrong element contradicts it and chance would rarely show it. If no
pattern fits, the sentence gives the count and the worst element.
"""

from __future__ import annotations

from dataclasses import replace

from kerneltruth.documents.verdict import Cause
from kerneltruth.explain.localize.evidence import (
    FailureEvidence,
    LocalizedFault,
    Pattern,
    Values,
    number,
    place,
    worst_index,
)
from kerneltruth.explain.localize.how import how
from kerneltruth.explain.localize.when import when
from kerneltruth.explain.localize.where import where
from kerneltruth.oracle.judge import READS, WROTE, wrong_of
from kerneltruth.oracle.probes import shares_in_words

_FORM = ("count", "type", "shape", "dtype", "device")


def localize(evidence: FailureEvidence) -> LocalizedFault:
    """Explain a failure. The tags, in order: cause, on which cases, where, how."""
    fault = _localized(evidence)
    if evidence.output is None:
        return fault
    word, space, rest = fault.sentence.partition(" ")
    word = word.lower() if word.istitle() else word
    return replace(fault, sentence=f"In output `{evidence.output}`: {word}{space}{rest}")


def _localized(evidence: FailureEvidence) -> LocalizedFault:
    kind = evidence.verdict.kind
    if kind in _FORM:
        return LocalizedFault(tags=(kind,), sentence=_sentence(evidence.verdict.detail))
    cause = _cause(evidence)
    values = evidence.values
    wrong = values is not None and bool(values.wrong.any())
    place_of = where(evidence, values) if values is not None and wrong else None
    if cause is not None:
        # Faults that change from call to call do so on any case.
        cases = () if cause.tag == "nondeterministic" else when(evidence)
        clause = f"{cause.clause}; wrong {place_of.clause}" if place_of else cause.clause
        text = _sentence(clause) + _shares(evidence.verdict.causes) + _cases(cases)
        return LocalizedFault(tags=_tags(cause, *cases, place_of), sentence=text)
    cases = when(evidence)
    if values is None or not wrong:
        text = _sentence(evidence.verdict.detail) + _cases(cases)
        return LocalizedFault(tags=_tags(*cases) or (kind,), sentence=text)
    manner = None if values.several else how(evidence, values)
    if manner is not None and manner.everywhere:
        place_of = None
    tags = _tags(*cases, place_of, manner) or (kind,)
    text = _describe(evidence, values, manner, place_of, cases) + _shares(evidence.verdict.causes)
    claims = f" {_sentence(values.claims)}" if values.claims else ""
    return LocalizedFault(tags=tags, sentence=text + claims)


def _tags(*patterns: Pattern | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(p.tag for p in patterns if p is not None))


def _cases(patterns: tuple[Pattern, ...]) -> str:
    """Return the sentence on the cases, after a space; empty if there is none."""
    clauses = [p.clause.rstrip(".") for p in patterns]
    if not clauses:
        return ""
    first, *others = clauses
    return f" {first}{''.join(f', and {c[:1].lower()}{c[1:]}' for c in others)}."


def _shares(causes: tuple[Cause, ...]) -> str:
    """Return a sentence on the causes, after a space; empty if one explains all."""
    if not causes or causes[0].share == 1.0:
        return ""
    return f" {', '.join(shares_in_words(causes, ' of the wrong elements'))}."


def _sentence(clause: str) -> str:
    clause = clause.strip()
    return clause[:1].upper() + clause[1:] + ("" if clause.endswith((".", "!", "?")) else ".")


def _cause(evidence: FailureEvidence) -> Pattern | None:
    """Return what the guards and probes found: it explains any values that resulted."""
    detail = evidence.verdict.detail
    match evidence.verdict.kind:
        case "input_mutated":
            clause = f"it {detail}" if detail.startswith("wrote") else detail
            return Pattern(tag="input_mutated", clause=clause)
        case "aliased_output":
            return Pattern(tag="aliased_output", clause=detail)
        case "out_of_bounds" if detail.startswith(WROTE):
            clause = f"it writes out of bounds: it {detail}"
            return Pattern(tag="writes_out_of_bounds", clause=clause)
        case "out_of_bounds" if detail.startswith(READS):
            clause = f"it reads out of bounds: {detail.removeprefix(READS)}"
            return Pattern(tag="reads_out_of_bounds", clause=clause)
        case "out_of_bounds":
            clause = "it reads beyond the elements of a tensor, and the result depends on it"
            return Pattern(tag="reads_out_of_bounds", clause=clause)
        case "assumes_contiguous":
            names = " and ".join(f"`{name}`" for name in evidence.verdict.inputs)
            clause = f"it takes {names} for contiguous: it is {detail}"
            return Pattern(tag="assumes_contiguous", clause=clause)
        case "nondeterministic":
            clause = "it is nondeterministic: the same call gives different results"
            return Pattern(tag="nondeterministic", clause=clause)
        case "uninitialized":
            clause = "it reads uninitialized memory, or leaves part of its output unwritten"
            return Pattern(tag="uninitialized", clause=clause)
        case _:
            return None


def _describe(
    evidence: FailureEvidence,
    values: Values,
    manner: Pattern | None,
    place_of: Pattern | None,
    cases: tuple[Pattern, ...],
) -> str:
    if manner is not None:
        first = f"{manner.clause}, {place_of.clause}" if place_of else manner.clause
    else:
        first = _counted(evidence, values)
        first = f"wrong {place_of.clause}: {first}" if place_of else first
    text = _sentence(first)
    if cases:
        return text + _cases(cases)
    if manner is not None:
        return f"{text} {_sentence(_worst(evidence, values))}"
    return text


def _counted(evidence: FailureEvidence, values: Values) -> str:
    count = wrong_of(int(values.wrong.sum()), values.wrong.numel())
    return f"{count}; {_worst(evidence, values)}"


def _worst(evidence: FailureEvidence, values: Values) -> str:
    """Describe the worst element, with the inputs at the same place if there are any."""
    index = worst_index(values.output, values.reference, values.wrong)
    expected, got = float(values.reference[index]), float(values.output[index])
    shown = f"{expected:.6g}", f"{got:.6g}"
    if shown[0] == shown[1]:
        shown = f"{expected:.12g}", f"{got:.12g}"
    inputs = [
        f"{name}={number(float(x[index]))}"
        for name, x in evidence.inputs.items()
        if x.shape == values.output.shape
    ]
    at = f"at {place(index)} " if index else ""
    at += f"({', '.join(inputs)}) " if inputs else ""
    if values.several:
        return f"{at}got {shown[1]}, which is not an accepted answer"
    return f"{at}expected {shown[0]}, got {shown[1]}"
