"""`analyze`: the statistics of runs, as tables and exports. Reads runs only, without torch."""

from __future__ import annotations

import gc
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from kerneltruth.analysis.audited import audited
from kerneltruth.analysis.complexity import complexity
from kerneltruth.analysis.deviance import Unavailable, deviance_of
from kerneltruth.analysis.dtype_rates import DtypeRates
from kerneltruth.analysis.exports import bibtex, columns, write_csv, write_parquet
from kerneltruth.analysis.groups import DTYPE, check_dimensions
from kerneltruth.analysis.illusions import illusion_rates, illusion_share, illusions
from kerneltruth.analysis.logistic import MissingPackage
from kerneltruth.analysis.metrics import pass_rates, rates, unsolved
from kerneltruth.analysis.portability import portability
from kerneltruth.analysis.reading import Kept, Study, read_study
from kerneltruth.analysis.results import TORCH_ONLY, Result
from kerneltruth.analysis.speeds import baselines_of, efficiencies, fast_p, speedups
from kerneltruth.analysis.trajectories import trajectories
from kerneltruth.documents.analysis import AnalyzeDocument
from kerneltruth.documents.model import parse
from kerneltruth.errors import UserError

KEPT = ("best", "last")
BY = (
    ("category",),
    ("method",),
    ("dtype",),
    ("method", "model"),
    ("category", "method"),
    ("category", "dtype"),
    ("method", "dtype"),
    ("category", "method", "dtype"),
)
PS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
KS = (1, 5, 10)
NO_METHODS = "an audit judges the built-in corpus: there are no methods to compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeOptions:
    """What the command line says.

    Attributes:
        by: break-downs of the rates, each of one or several dimensions; empty means `BY`.
        ps: of fast_p.
        ks: of pass@k.
        kept: which round of an answer counts.
    """

    runs: tuple[Path, ...]
    by: tuple[str, ...] = ()
    ps: tuple[str, ...] = ()
    ks: tuple[str, ...] = ()
    kept: str = "best"
    csv: Path | None = None
    parquet: Path | None = None
    bibtex: bool = False
    seed: int = 0


def analyze(options: AnalyzeOptions) -> AnalyzeDocument:
    """The document of `analyze --json`; exports are written on the way.

    Raises:
        UserError: no such run, dimension, p, k, or kind of round to keep.
        EnvironmentFault: an export cannot be written.
    """
    crossings = crossings_of(options.by) or BY
    ps = numbers("--p", options.ps) or PS
    ks = tuple(int(k) for k in numbers("--k", options.ks, whole=True)) or KS
    if options.kept not in KEPT:
        raise UserError(f"--keep {options.kept}: must be {' or '.join(KEPT)}")
    with _no_collections():
        study = read_study(options.runs, kept=cast(Kept, options.kept))
        document = tables(study, crossings=crossings, ps=ps, ks=ks, seed=options.seed)
        document |= _exported(study, options)
        return parse(AnalyzeDocument, document)


def tables(
    study: Study,
    *,
    crossings: Sequence[Sequence[str]] = BY,
    ps: Sequence[float] = PS,
    ks: Sequence[int] = KS,
    seed: int = 0,
) -> dict[str, Any]:
    """Every table of a study; of an audit none that speaks of methods."""
    answers = study.answers
    methods = () if study.of_corpus else answers
    plain_torch = [r for r in answers if r.language == TORCH_ONLY]
    return {
        "schema": 1,
        "runs": [_plain(run) for run in study.runs],
        "devices": list(study.devices),
        "attempts": len(study.attempts),
        "distinct": len(study.distinct),
        "answers": len(answers),
        "torch_only": {"answers": len(plain_torch), "pass": sum(r.correct for r in plain_torch)},
        "kept": study.kept,
        "notes": list(study.notes),
        "rates": {
            "overall": _rows(rates(answers), ())[0],
            "by": _breakdowns(study, crossings),
        },
        "unsolved": {
            "overall": _rows(unsolved(methods), ())[0],
            "by_category": _rows(unsolved(methods, ("category",)), ("category",)),
        },
        "pass_at_k": _rows(pass_rates(methods, ks), ("method", "model")),
        **_speeds(answers, ps),
        "audit": _plain(audited(study)),
        "illusions": _illusions(study),
        "deviance": _deviance(study, seed),
        "trajectories": _trajectories(study),
        "portability": _portability(study),
    }


def _speeds(answers: Sequence[Result], ps: Sequence[float]) -> dict[str, Any]:
    """What is known of times: fast_p and speedups against each baseline, and efficiency."""
    method = ("method", "model")
    baselines = baselines_of(answers)
    return {
        "fast_p": [
            row
            for baseline in baselines
            for by in ((), method)
            for row in _rows(fast_p(answers, ps, baseline, by), by)
        ],
        "speedups": [
            row
            for baseline in baselines
            for by in ((), method, ("category",))
            for row in _rows(speedups(answers, baseline, by), by)
        ],
        "efficiency": [
            row
            for by in ((), method, ("category",))
            for row in _rows(efficiencies(answers, by), by)
            if row["known"]
        ],
    }


def crossings_of(by: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The break-downs that options name, each of dimensions joined by commas.

    Raises:
        UserError: there is no such dimension.
    """
    named = (tuple(n.strip() for n in one.split(",") if n.strip()) for one in by)
    return tuple(check_dimensions(names) for names in named)


def numbers(option: str, values: Iterable[str], *, whole: bool = False) -> tuple[float, ...]:
    """The numbers of an option that takes several, joined by commas or given again and again.

    Raises:
        UserError: one is no number, or not in range: p from 0, k from 1.
    """
    found = []
    for text in (part.strip() for value in values for part in value.split(",")):
        try:
            number = int(text) if whole else float(text)
        except ValueError:
            number = -1
        if not (1 if whole else 0) <= number < float("inf"):
            rule = "whole numbers from 1" if whole else "numbers from 0"
            raise UserError(f"{option} {text}: must be {rule}, joined by commas")
        found.append(number)
    return tuple(sorted(set(found)))


@contextmanager
def _no_collections() -> Iterator[None]:
    """Some hundred thousand objects are made and none is garbage: looking for it costs a third."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _exported(study: Study, options: AnalyzeOptions) -> dict[str, Any]:
    said: dict[str, Any] = {"exports": [], "missing": []}
    wanted = options.csv is not None or options.parquet is not None
    table = columns(study) if wanted else {}
    if options.csv is not None:
        write_csv(table, options.csv)
        said["exports"].append(str(options.csv))
    if options.parquet is not None:
        try:
            write_parquet(table, options.parquet)
            said["exports"].append(str(options.parquet))
        except MissingPackage as missing:
            said["missing"].append(str(missing))
    if options.bibtex:
        said["bibtex"] = bibtex(study)
    return said


def _rows(rows: Iterable[Any], by: Sequence[str]) -> list[dict[str, Any]]:
    """Rows in JSON's types, the values of their group under the names of the dimensions."""
    return [{**dict(zip(by, row.group, strict=True)), **_plain(row, but="group")} for row in rows]


def _plain(value: Any, *, but: str = "") -> Any:
    """JSON's own types of a tree of dataclasses."""
    names = _names(cast(Hashable, type(value)))
    if names:
        return {name: _plain(getattr(value, name)) for name in names if name != but}
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


@cache
def _names(kind: Hashable) -> tuple[str, ...]:
    """The fields of a dataclass or a named tuple; of others none."""
    named: tuple[str, ...] = getattr(kind, "_fields", ())
    return named or tuple(getattr(kind, "__dataclass_fields__", ()))


def _breakdowns(study: Study, crossings: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Rates by each of the crossings; what those by dtype share is counted once."""
    answers = study.answers
    with_dtype = [by for by in crossings if DTYPE in by]
    dimensions = (name for by in with_dtype for name in by)
    dtypes = DtypeRates(answers if with_dtype else (), dimensions, study.dtypes)
    return [
        {
            "by": list(by),
            "rows": _rows(dtypes.rows(by) if DTYPE in by else rates(answers, by), by),
        }
        for by in crossings
    ]


def _illusions(study: Study) -> dict[str, Any]:
    found = [_plain(i) for i in illusions(study.distinct)]
    for illusion in found:
        run = study.runs[illusion["run"]].path
        illusion["run"] = run
        if illusion["finding"] is not None:
            illusion["finding"] = f"{run}/findings/{illusion['finding']}"
    return {
        "attempts": len(study.distinct),
        "any_check": _plain(illusion_share(study)),
        "overall": _rows(illusion_rates(study), ()),
        "by": [
            {"by": list(by), "rows": _rows(illusion_rates(study, by), by)}
            for by in (("category",), ("method", "model"))
        ],
        "findings": found,
    }


def _deviance(study: Study, seed: int) -> dict[str, Any]:
    if study.of_corpus:
        return {"unavailable": NO_METHODS, "complexity": []}
    found = deviance_of(study.answers, seed=seed)
    about: dict[str, Any]
    if isinstance(found, Unavailable):
        about = {"unavailable": found.reason}
    else:
        about = cast(dict[str, Any], _plain(found))
    rows = complexity(study.answers, study.facts)
    about["complexity"] = [_plain(row) for row in rows]
    return about


def _trajectories(study: Study) -> dict[str, Any]:
    found = trajectories(study.distinct)
    by = ("method", "model")
    return {
        "rounds": _rows(found.rounds, by),
        "fates": _rows(found.fates, by),
        "changes": _rows(found.changes, by),
    }


def _portability(study: Study) -> dict[str, Any] | None:
    found = portability(study)
    return None if found is None else cast(dict[str, Any], _plain(found))
