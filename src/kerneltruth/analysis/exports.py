"""Exports: attempts as CSV and Parquet, and the suite as a BibTeX entry."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from kerneltruth.analysis.illusions import checks_of
from kerneltruth.analysis.logistic import MissingPackage
from kerneltruth.analysis.reading import Study
from kerneltruth.analysis.results import Rates, Result
from kerneltruth.analysis.speeds import baselines_of, efficiency
from kerneltruth.documents.analysis import AnalyzedRun
from kerneltruth.documents.records import OBLIGATIONS
from kerneltruth.runs.files import write_whole, writing

CellScalar = str | int | float | bool | None
Columns = dict[str, Sequence[CellScalar]]

PARQUET_HINT = "--parquet needs pyarrow: pip install 'kerneltruth[study]'"

_TEXT = (
    *("suite", "task", "category", "method", "model", "key", "origin", "sha256", "same_as"),
    *("language", "call", "exe", "perf", "verdict", "kind"),
    *("quantization", "detail", "finding", "contract"),
)
_NUMBERS = ("sample", "round", "cases", "failed", "launches")
_SHARES = ("score", "own", "own_time")
_FLAGS = ("distinct", "answer")
# Without words where there is nothing to say.
_MAY_BE_EMPTY = ("detail", "contract")


def columns(study: Study) -> Columns:
    """Put every attempt into columns; None stands for an unmeasured value.

    `distinct` and `answer` say which attempts the tables count.
    """
    results = study.attempts
    distinct = {id(r) for r in study.distinct}
    answers = {id(r) for r in study.answers}
    found: Columns = {
        "run": [study.runs[r.run].path for r in results],
        "device": [study.device_of(r) for r in results],
        "distinct": [id(r) in distinct for r in results],
        "answer": [id(r) in answers for r in results],
    }
    for name in (*_TEXT, *_NUMBERS, *_SHARES):
        values = [getattr(r, name) for r in results]
        found[name] = [v or None for v in values] if name in _MAY_BE_EMPTY else values
    for baseline in baselines_of(results):
        against = [r.against(baseline) for r in results]
        found[f"speedup_{baseline}"] = [None if a is None else a.speedup for a in against]
        found[f"low_{baseline}"] = [None if a is None else a.low for a in against]
        found[f"high_{baseline}"] = [None if a is None else a.high for a in against]
        found[f"standing_{baseline}"] = [None if a is None else a.outcome for a in against]
    found["efficiency"] = [efficiency(r) for r in results]
    rates = [r.timing.rates if r.timing and r.correct else None for r in results]
    for name in Rates._fields:
        found[name] = [None if own is None else getattr(own, name) for own in rates]
    for check in checks_of(results):
        found[f"check_{check}"] = [r.checks.get(check) for r in results]
    for key in _obligations(results):
        ended = [r.profile.get(key) for r in results]
        found[f"obligation_{key}"] = [None if e is None else e.status for e in ended]
        found[f"held_{key}"] = [None if e is None else e.cases for e in ended]
    return found


def _obligations(results: Iterable[Result]) -> list[str]:
    names = {name for result in results for name in result.profile}
    places: dict[str, int] = {name: place for place, name in enumerate(OBLIGATIONS)}
    return sorted(names, key=lambda name: (places.get(name.partition(".")[0], len(places)), name))


def write_csv(table: Columns, path: Path) -> None:
    """Write the attempts as CSV with a head line; an empty cell was not measured."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(_cells(name, table[name]) for name in table), strict=True))
    with writing(path):
        write_whole(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _cells(name: str, column: Sequence[CellScalar]) -> Sequence[CellScalar]:
    return [str(value).lower() for value in column] if name in _FLAGS else column


def write_parquet(table: Columns, path: Path) -> None:
    """Write the attempts as Parquet.

    Raises:
        MissingPackage: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingPackage(PARQUET_HINT) from error
    arrays = {}
    for name, values in table.items():
        if name in _FLAGS:
            kind = pa.bool_()
        elif name in _NUMBERS or name.startswith("held_"):
            kind = pa.int64()
        elif name in (*_SHARES, "efficiency", *Rates._fields) or name.startswith(
            ("speedup_", "low_", "high_")
        ):
            kind = pa.float64()
        else:
            kind = pa.string()
            values = [None if v is None else _encodable(str(v)) for v in values]
        arrays[name] = pa.array(values, kind)
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink)
    with writing(path):
        write_whole(path, sink.getvalue())


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def bibtex(study: Study) -> str:
    """Return an entry for each version of a suite that the runs were judged on."""
    entries: dict[tuple[str, str, str], AnalyzedRun] = {}
    for result in study.attempts:
        run = study.runs[result.run]
        entries.setdefault((result.suite, run.version, run.suite_hash), run)
    return "\n\n".join(_entry(suite, run) for (suite, _, _), run in sorted(entries.items()))


def _entry(suite: str, run: AnalyzedRun) -> str:
    year, month = (run.started[:4], run.started[5:7]) if len(run.started) >= 7 else ("", "")
    key = re.sub(r"[^A-Za-z0-9.-]+", "-", f"kerneltruth-{suite}-{run.version}-{run.suite_hash[:8]}")
    fields = {
        "title": f"{{kerneltruth}}: the suite {_latex(suite)}, version {_latex(run.version)}",
        "author": "{The kerneltruth authors}",
        "year": _latex(year),
        "month": _latex(month),
        "howpublished": "Software",
        "note": f"Declarations of tasks with the SHA-256 {_latex(run.suite_hash)}",
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{key},", *lines, "}"])


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{c: f"\\{c}" for c in "&%$#_"},
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text)
