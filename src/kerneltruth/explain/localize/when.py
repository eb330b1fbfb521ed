"""Find which cases are wrong: what all failing cases share and the passing ones lack. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from kerneltruth.cases.layouts import effective_layout
from kerneltruth.documents.case import Case, setting_text
from kerneltruth.explain.localize.evidence import CHANCE, FailureEvidence, Pattern, Sibling, luck
from kerneltruth.explain.minimize.cases import SIMPLEST_FIRST
from kerneltruth.oracle.bounds import widening
from kerneltruth.tasks.model import BACKWARD, CALL, OUT
from kerneltruth.tasks.spec import Scalar

# Words for calls that are not plain.
_CALLS: dict[Scalar, str] = {
    BACKWARD: "in the gradients",
    OUT: "where the caller gives `out=`",
}
# Further values of a setting that do not show it are counted.
_MOST_NAMED = 3
# A twin differs in size and so in its drawn values: this many must agree.
SIZE_TWINS = 3
# Fewer sizes would rise by luck.
GROWING_SIZES = 5
MANY_SIZES = 8
CONSTANT_RECIPES = ("zeros", "ones")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A property that a case may have.

    Attributes:
        holds: returns whether a case has it.
        plain: strips the field that the claim is about, so that twins become the same.
        twins: how many passing twins of a failing case prove the claim; None if none do.
    """

    tag: str
    clause: str
    holds: Callable[[Case], bool]
    plain: Callable[[Case], Case]
    twins: int | None = 1


def when(evidence: FailureEvidence) -> tuple[Pattern, ...]:
    """Return which cases are wrong, if other cases show it; at most two patterns.

    A claim holds if every failing case has the property and some passing one lacks it; and either
    two cases that differ in nothing else have different results, or chance does not explain it.
    """
    judged = list(dict.fromkeys(evidence.siblings))
    if not any(s.case.identity == evidence.case.identity for s in judged):
        judged.append(Sibling(case=evidence.case, failed=True))
    claims = (
        *_setting_claims(evidence, judged),
        *(c for symbol, _ in evidence.case.dims for c in _size_claims(symbol, evidence.blocks)),
    )
    standing = next((c for c in claims if _stands(c, judged)), None)
    found = None if standing is None else Pattern(tag=standing.tag, clause=standing.clause)
    if found is None or found.tag == "not_multiple":
        # These patterns are more telling: they cover all sizes tried.
        found = _growth(evidence, judged) or _threshold(evidence, judged) or found
    elif found.tag == "dtype":
        # A dtype may show it only because its bound is the narrowest.
        growth = _growth(evidence, judged)
        return (found, growth) if growth is not None else (found,)
    return () if found is None else (found,)


def _stands(claim: _Claim, judged: list[Sibling]) -> bool:
    failed = [s.case for s in judged if s.failed]
    lacking = [s.case for s in judged if not s.failed and not claim.holds(s.case)]
    if not lacking or not all(claim.holds(c) for c in failed):
        return False
    if claim.twins is not None:
        stripped = {_bare(claim.plain(c)).identity for c in failed}
        agreeing = {c.identity for c in lacking if _bare(claim.plain(c)).identity in stripped}
        if len(agreeing) >= claim.twins:
            return True
    drawn = [s for s in judged if not s.sought]
    chosen = sum(s.failed for s in drawn)
    having = sum(claim.holds(s.case) for s in drawn)
    return chosen > 0 and luck(chosen=chosen, offered=having, total=len(drawn)) <= CHANCE


def _bare(case: Case) -> Case:
    """Drop the seed: twins need not share it."""
    return replace(case, seed=0)


def _setting_claims(evidence: FailureEvidence, judged: list[Sibling]) -> Iterator[_Claim]:
    failed = [s.case for s in judged if s.failed]
    passed = [s.case for s in judged if not s.failed]
    # A vector in a transposed layout is strided.
    shape = max((tuple(x.shape) for x in evidence.inputs.values()), key=len, default=(1, 1))
    layouts = {effective_layout(c.layout, shape) for c in failed}
    others = {effective_layout(c.layout, shape) for c in passed} - layouts
    yield _Claim(
        tag="layout",
        clause=f"It shows with {_and(layouts)} inputs, and not with {_or(others)} ones.",
        holds=lambda c: c.layout != "contiguous",
        plain=lambda c: replace(c, layout="contiguous"),
    )
    dtypes = {c.dtype for c in failed}
    others = {c.dtype for c in passed} - dtypes
    yield _Claim(
        tag="dtype",
        clause=f"It shows in {_and(dtypes)}, and not in {_or(others)}.",
        holds=lambda c: c.dtype in dtypes,
        plain=lambda c: replace(c, dtype=""),
    )
    for name, value in evidence.case.attributes:
        yield _Claim(
            tag="attribute",
            clause=_shown_by(name, value, passed),
            holds=lambda c, name=name, value=value: c.settings.get(name) == value,  # type: ignore[misc]
            plain=lambda c, name=name: c.with_attributes(**{name: None}),  # type: ignore[misc]
        )
    for name in evidence.case.left_out:
        yield _Claim(
            tag="absent",
            clause=f"Only {name}=None shows it.",
            holds=lambda c, name=name: name in c.absent,  # type: ignore[misc]
            plain=lambda c: replace(c, absent=()),
        )
    recipes = sorted({c.recipe for c in failed})
    if not set(recipes) & set(SIMPLEST_FIRST):
        # Zeros hide most faults, and so do values that were written to be simple, so passing on
        # them says nothing about the others.
        silent = (*recipes, *CONSTANT_RECIPES)
        yield _Claim(
            tag="values",
            clause=f"Ordinary values do not show it, only these do: {', '.join(recipes)}.",
            holds=lambda c: c.recipe in silent or bool(c.literals),
            plain=lambda c: replace(c, recipe=""),
        )


def _shown_by(name: str, value: Scalar, passed: list[Case]) -> str:
    """Say which setting shows it, and which others that were tried do not."""
    others = {str(c.settings.get(name, value)) for c in passed} - {str(value)}
    if name == CALL and value in _CALLS:
        return f"It shows only {_CALLS[value]}."
    if isinstance(value, bool) or not others:
        return f"Only {setting_text(name, value)} shows it."
    few = sorted(others)[:_MOST_NAMED]
    more = [f"{len(others) - len(few)} more"] if len(others) > len(few) else []
    named = _joined([setting_text(name, v) for v in few] + more, "or")
    return f"It shows with {setting_text(name, value)}, and not with {named}."


def _and(words: Iterable[str]) -> str:
    return _joined(sorted(words), "and")


def _or(words: Iterable[str]) -> str:
    return _joined(sorted(words), "or")


def _joined(found: list[str], by: str) -> str:
    """Join words to a list."""
    return f" {by} ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))


def _size_claims(symbol: str, blocks: tuple[int, ...]) -> Iterator[_Claim]:
    def any_size(case: Case) -> Case:
        return case.with_dims(**{symbol: 1})

    yield _Claim(
        tag="empty",
        clause=f"Only {symbol}=0 shows it.",
        holds=lambda c: c.sizes[symbol] == 0,
        plain=any_size,
        twins=SIZE_TWINS,
    )
    yield _Claim(
        tag="size_one",
        clause=f"Only {symbol}=1 shows it.",
        holds=lambda c: c.sizes[symbol] == 1,
        plain=any_size,
        twins=SIZE_TWINS,
    )
    for block in sorted({b for b in blocks if b > 1}, reverse=True):
        yield _Claim(
            tag="not_multiple",
            clause=f"Only sizes {symbol} that are no multiple of {block} show it.",
            holds=lambda c, block=block: c.sizes[symbol] % block != 0,  # type: ignore[misc]
            plain=any_size,
            twins=None,
        )


def _lines(symbol: str, judged: list[Sibling]) -> list[list[Sibling]]:
    """Group cases that differ only in the size of a symbol, and the seed."""
    groups: dict[str, list[Sibling]] = {}
    for s in judged:
        if not s.case.literals:
            groups.setdefault(_bare(s.case.with_dims(**{symbol: 1})).identity, []).append(s)
    return [sorted(group, key=lambda s: s.case.sizes[symbol]) for group in groups.values()]


def _threshold(evidence: FailureEvidence, judged: list[Sibling]) -> Pattern | None:
    found = threshold(evidence, judged)
    if found is None:
        return None
    return Pattern(tag="size_threshold", clause=f"Only {found[0]} > {found[1]} shows it.")


def threshold(evidence: FailureEvidence, judged: list[Sibling]) -> tuple[str, int] | None:
    """Match a size up to which cases pass and above which they fail, all else equal."""
    for symbol, _ in evidence.case.dims:
        found = [t for line in _lines(symbol, judged) if (t := _step(symbol, line)) is not None]
        least = min((s.case.sizes[symbol] for s in judged if s.failed), default=0)
        if found and max(found) < least:
            return symbol, max(found)
    return None


def _step(symbol: str, line: list[Sibling]) -> int | None:
    """Return the largest passing size of a line, if every larger one fails and not by luck."""
    # A search by size ends at such a step for any fault, unless the values stay much the same and
    # many sizes agree.
    many = sum(not s.failed for s in line) >= MANY_SIZES
    independent = [s for s in line if not s.sought or (many and s.case.recipe in CONSTANT_RECIPES)]
    failed = {s.case.sizes[symbol] for s in independent if s.failed}
    passed = {s.case.sizes[symbol] for s in independent if not s.failed}
    if not failed or not passed or min(failed) <= max(passed):
        return None
    total = len(failed | passed)
    likely = luck(chosen=len(failed), offered=len(failed), total=total)
    return max(passed) if likely <= 5 * CHANCE else None


def _growth(evidence: FailureEvidence, judged: list[Sibling]) -> Pattern | None:
    """Match an error over its bound that rises with a reduced dim, all else equal."""
    for symbol in evidence.reduced:
        lines = (_ratios(symbol, line) for line in _lines(symbol, judged))
        rising = [_rises(ratios) for ratios in lines if len(ratios) >= GROWING_SIZES]
        if rising and all(rising):
            return Pattern(tag="grows", clause=f"The error grows with {symbol}.")
    return None


def _ratios(symbol: str, line: list[Sibling]) -> list[float]:
    """Return errors over bounds by size, if they reach a failure; empty otherwise.

    A longer sum has a wider bound, in float32 up to a loop's rounding. A fault that adds up grows
    in the same way, and shows beside the bound of a shorter sum.
    """
    points = {
        s.case.sizes[symbol]: s.ratio * widening(s.case.sizes[symbol], s.case.dtype)
        for s in line
        if s.ratio is not None
    }
    return [points[n] for n in sorted(points)] if any(s.failed for s in line) else []


def _rises(ratios: list[float]) -> bool:
    """Return whether they rise to three times the first, neither by chance nor in one leap.

    The worst of a few random errors varies by itself, so a small fall is allowed.
    """
    steady = all(b >= 0.7 * a for a, b in itertools.pairwise(ratios))
    gradual = sum(r > 0.05 * ratios[-1] for r in ratios) >= 3
    return steady and gradual and ratios[-1] >= 3 * ratios[0]
