"""Which cases are wrong: what all failing cases share and the passing ones lack. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kerneltruth.cases.case import Case
from kerneltruth.explain.evidence import CHANCE, Evidence, Pattern, Sibling, luck
from kerneltruth.explain.simpler_cases import RECIPES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """Something that may be true of a case. `plain` strips the field that the claim is about."""

    tag: str
    clause: str
    holds: Callable[[Case], bool]
    plain: Callable[[Case], Case]


def when(evidence: Evidence) -> Pattern | None:
    """On which cases the candidate is wrong, if its other cases tell.

    A claim holds if every failing case has the property and some passing one lacks it; and either
    two cases that differ in nothing else went different ways, or chance does not explain it.
    """
    judged = [s for s in dict.fromkeys(evidence.siblings) if not s.case.literals]
    if not any(s.case.identity == evidence.case.identity for s in judged):
        judged.append(Sibling(case=evidence.case, failed=True))
    claims = (
        *_setting_claims(evidence, judged),
        *(c for symbol, _ in evidence.case.dims for c in _size_claims(symbol, evidence.blocks)),
    )
    standing = next((c for c in claims if _stands(c, judged)), None)
    found = None if standing is None else Pattern(tag=standing.tag, clause=standing.clause)
    if found is None or found.tag == "not_multiple":
        # A threshold says more: it speaks of all sizes tried.
        found = _threshold(evidence, judged) or found
    return found or _growth(evidence, judged)


def _stands(claim: _Claim, judged: list[Sibling]) -> bool:
    failed = [s.case for s in judged if s.failed]
    passed = [s.case for s in judged if not s.failed]
    lacking = [c for c in passed if not claim.holds(c)]
    if not lacking or not all(claim.holds(c) for c in failed):
        return False
    stripped = {_bare(claim.plain(c)).identity for c in failed}
    if any(_bare(claim.plain(c)).identity in stripped for c in lacking):
        return True
    having = sum(claim.holds(s.case) for s in judged)
    return luck(chosen=len(failed), offered=having, total=len(judged)) <= CHANCE


def _bare(case: Case) -> Case:
    """Without the seed: twins need not share it."""
    return replace(case, seed=0)


def _setting_claims(evidence: Evidence, judged: list[Sibling]) -> Iterator[_Claim]:
    failed = [s.case for s in judged if s.failed]
    layouts = sorted({c.layout for c in failed})
    yield _Claim(
        tag="layout",
        clause=f"Only a non-contiguous input shows it ({', '.join(layouts)}).",
        holds=lambda c: c.layout != "contiguous",
        plain=lambda c: replace(c, layout="contiguous"),
    )
    dtypes = sorted({c.dtype for c in failed})
    yield _Claim(
        tag="dtype",
        clause=f"Only {' and '.join(dtypes)} {'shows' if len(dtypes) == 1 else 'show'} it.",
        holds=lambda c: c.dtype in dtypes,
        plain=lambda c: replace(c, dtype=""),
    )
    for name, value in evidence.case.attributes:
        yield _Claim(
            tag="attribute",
            clause=f"Only {name}={value} shows it.",
            holds=lambda c, name=name, value=value: c.settings.get(name) == value,  # type: ignore[misc]
            plain=lambda c, name=name: c.with_attributes(**{name: None}),  # type: ignore[misc]
        )
    for name in evidence.case.absent:
        yield _Claim(
            tag="absent",
            clause=f"Only {name}=None shows it.",
            holds=lambda c, name=name: name in c.absent,  # type: ignore[misc]
            plain=lambda c: replace(c, absent=()),
        )
    recipes = sorted({c.recipe for c in failed})
    if not set(recipes) & set(RECIPES):
        # Zeros hide most faults, so passing on them says nothing about the others.
        yield _Claim(
            tag="values",
            clause=f"Ordinary values do not show it, only these do: {', '.join(recipes)}.",
            holds=lambda c: c.recipe in recipes or c.recipe in ("zeros", "ones"),
            plain=lambda c: replace(c, recipe=""),
        )


def _size_claims(symbol: str, blocks: tuple[int, ...]) -> Iterator[_Claim]:
    def any_size(case: Case) -> Case:
        return case.with_dims(**{symbol: 1})

    yield _Claim(
        tag="empty",
        clause=f"Only {symbol}=0 shows it.",
        holds=lambda c: c.sizes[symbol] == 0,
        plain=any_size,
    )
    yield _Claim(
        tag="size_one",
        clause=f"Only {symbol}=1 shows it.",
        holds=lambda c: c.sizes[symbol] == 1,
        plain=any_size,
    )
    for block in sorted({b for b in blocks if b > 1}, reverse=True):
        yield _Claim(
            tag="not_multiple",
            clause=f"Only sizes {symbol} that are no multiple of {block} show it.",
            holds=lambda c, block=block: c.sizes[symbol] % block != 0,  # type: ignore[misc]
            plain=any_size,
        )


def _threshold(evidence: Evidence, judged: list[Sibling]) -> Pattern | None:
    """A dim above a size fails, up to it passes: among cases that differ in that dim alone."""
    for symbol, size in evidence.case.dims:
        line = {
            s.case.sizes[symbol]: s.failed
            for s in judged
            if _bare(s.case.with_dims(**{symbol: size})).identity
            == _bare(replace(evidence.case, literals=())).identity
        }
        failed = sorted(n for n, bad in line.items() if bad)
        passed = sorted(n for n, bad in line.items() if not bad)
        if not failed or not passed or failed[0] < passed[-1]:
            continue
        if luck(chosen=len(failed), offered=len(failed), total=len(line)) <= 5 * CHANCE:
            clause = f"Only {symbol} > {passed[-1]} shows it."
            return Pattern(tag="size_threshold", clause=clause)
    return None


def _growth(evidence: Evidence, judged: list[Sibling]) -> Pattern | None:
    """The error over its bound rises with a reduced dim, in this dtype and layout."""
    for symbol in evidence.reduced:
        points = sorted(
            (s.case.sizes[symbol], s.ratio)
            for s in judged
            if s.ratio is not None
            and (s.case.dtype, s.case.layout, s.case.recipe)
            == (evidence.case.dtype, evidence.case.layout, evidence.case.recipe)
        )
        sizes = {n for n, _ in points}
        rising = all(b >= a for (_, a), (_, b) in itertools.pairwise(points))
        if len(sizes) >= 4 and rising and points[-1][1] >= 4 * max(points[0][1], 1e-300):
            return Pattern(tag="grows", clause=f"The error grows with {symbol}.")
    return None
