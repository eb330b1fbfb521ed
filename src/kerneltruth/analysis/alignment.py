"""Align runs: give each kernel one name in all of them, even if its file or source changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import PurePath

from kerneltruth.analysis.results import Result

# The results of each run by name.
Known = list[dict[str, Result]]


def aligned(runs: Sequence[dict[str, Result]]) -> Known:
    """Return the results of each run, in which the same name means the same kernel.

    Names hold the place of a submission in its file and the hash of its source. A kernel whose name
    occurs in one run only is therefore searched for in the others: by task and file, because an
    edit leaves the file; by task and source, because a method that asks again writes other files;
    then by as much of the end of the file's path as tells it from others, because an edited file
    may lie elsewhere.
    """
    everywhere = set(runs[0]).intersection(*runs[1:])
    found = [{n: r for n, r in known.items() if n in everywhere} for known in runs]
    left = [{n: r for n, r in known.items() if n not in everywhere} for known in runs]
    _join(found, left, _file(None))
    compared = {_source(r) for known in found for r in known.values()}
    _join(found, left, lambda r: _once(_source(r), compared), first=True)
    compared = {_source(r) for known in found for r in known.values()}
    depths = [len(PurePath(r.origin).parts) for known in left for r in known.values()]
    for depth in range(max(depths, default=0), 0, -1):
        _join(found, left, _file(depth))
    for known, rest in zip(found, left, strict=True):
        known |= {n: r for n, r in rest.items() if _source(r) not in compared}
    return found


def _join(
    found: Known, left: Known, key: Callable[[Result], Hashable], *, first: bool = False
) -> None:
    """Move results with the same `key` in several runs from `left` to `found`, under one name.

    Results without a key stay. If a run has several results of a key, `first` takes one of them;
    otherwise they stay.
    """
    by_key: list[dict[Hashable, str]] = []
    for rest in left:
        counts = Counter(map(key, rest.values()))
        named = {key(r): n for n, r in sorted(rest.items(), reverse=True)}
        single = {k: n for k, n in named.items() if first or counts[k] == 1}
        by_key.append({k: n for k, n in single.items() if k is not None})
    shared = Counter(k for names in by_key for k in names)
    for each in [k for k, runs in shared.items() if runs > 1]:
        *_, name = (r[n[each]].origin for r, n in zip(left, by_key, strict=True) if each in n)
        if first or any(name in known for known in (*found, *left)):
            name = min(names[each] for names in by_key if each in names)
        for known, rest, names in zip(found, left, by_key, strict=True):
            if each in names:
                known[name] = rest.pop(names[each])


def _file(depth: int | None) -> Callable[[Result], Hashable]:
    """Return a kernel's task and the last parts of its file's path; None means all parts."""

    def key(result: Result) -> Hashable:
        path = PurePath(result.origin)
        parts = path.parts if depth is None else path.parts[-depth:]
        # Another origin is a place within a file of many answers.
        return (result.task, parts) if path.suffix == ".py" else None

    return key


def _source(result: Result) -> tuple[str, str]:
    return result.task, result.sha256


def _once(source: tuple[str, str], compared: set[tuple[str, str]]) -> Hashable:
    return None if source in compared else source
