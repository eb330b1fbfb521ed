"""`analyze`: the statistics of runs, as tables and exports."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from msgspec import UNSET
from msgspec.structs import replace

from kerneltruth.analysis.deviance import deviance_of
from kerneltruth.analysis.dtype_rates import DtypeRates
from kerneltruth.analysis.exports import bibtex, columns, write_csv, write_parquet
from kerneltruth.analysis.groups import DEVICE, DTYPE, METHOD, check_dimensions
from kerneltruth.analysis.illusions import (
    audit_counts,
    contracts_of,
    illusion_rates,
    illusion_share,
    illusions,
)
from kerneltruth.analysis.logistic import MissingPackage
from kerneltruth.analysis.metrics import pass_rates, rates, unsolved
from kerneltruth.analysis.portability import portability
from kerneltruth.analysis.ranks import complexity
from kerneltruth.analysis.reading import KeptAnswer, Study, read_study
from kerneltruth.analysis.results import TORCH_ONLY
from kerneltruth.analysis.selection import Selection
from kerneltruth.analysis.speeds import baselines_of, efficiencies, fast_p, speedups
from kerneltruth.analysis.spending import spending
from kerneltruth.analysis.survival import illusion_places, survival
from kerneltruth.analysis.trajectories import trajectories
from kerneltruth.documents.analysis import AnalyzeDocument, TorchOnlyCount
from kerneltruth.documents.effects import DevianceTables
from kerneltruth.documents.rates import (
    IllusionRatesBy,
    IllusionTables,
    RateTables,
    SpeedupRow,
    StageRates,
    StageRatesBy,
    UnsolvedTables,
)
from kerneltruth.documents.survival import SurvivalCurvesBy, SurvivalTables
from kerneltruth.errors import UserError

T = TypeVar("T")
KEPT = ("best", "last")
CATEGORY = ("category",)
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
SURVIVAL_BY = (("method",), ("model",))
SPEED_BY = ((), METHOD, CATEGORY)
PS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
KS = (1, 5, 10)
NO_METHODS = "an audit judges the built-in corpus: there are no methods to compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeOptions:
    """The options of the command line.

    Attributes:
        by: break-downs of the rates, each of one or several dimensions; empty means `BY`.
        obligation: see `Selection`; likewise `without_torch_only`.
    """

    runs: tuple[Path, ...]
    by: tuple[str, ...] = ()
    ps: tuple[str, ...] = ()
    ks: tuple[str, ...] = ()
    kept: str = "best"
    obligation: str | None = None
    without_torch_only: bool = False
    csv: Path | None = None
    parquet: Path | None = None
    bibtex: bool = False
    seed: int = 0


def analyze(options: AnalyzeOptions) -> AnalyzeDocument:
    """Make the document of `analyze --json`, and write the exports.

    Raises:
        UserError: no such run, dimension, p, k, or kind of round to keep.
        EnvironmentFault: an export cannot be written.
    """
    crossings = crossings_of(options.by) or BY
    ps = numbers("--p", options.ps) or PS
    ks = tuple(int(k) for k in numbers("--k", options.ks, whole=True)) or KS
    if options.kept not in KEPT:
        raise UserError(f"--keep {options.kept}: must be {' or '.join(KEPT)}")
    with without_garbage_collection():
        only = Selection(
            obligation=options.obligation, without_torch_only=options.without_torch_only
        )
        study = read_study(options.runs, kept=cast(KeptAnswer, options.kept), only=only)
        made = tables(study, crossings=crossings, ps=ps, ks=ks, seed=options.seed)
        return _exported(study, options, made)


def tables(
    study: Study,
    *,
    crossings: Sequence[Sequence[str]] = BY,
    ps: Sequence[float] = PS,
    ks: Sequence[int] = KS,
    seed: int = 0,
) -> AnalyzeDocument:
    """Make every table of a study; those about methods are empty for an audit."""
    answers = study.answers
    methods = () if study.of_corpus else answers
    plain_torch = [r for r in answers if r.language == TORCH_ONLY]
    baselines = baselines_of(answers)
    return AnalyzeDocument(
        runs=study.runs,
        devices=study.devices,
        attempts=len(study.attempts),
        distinct=len(study.distinct),
        answers=len(answers),
        torch_only=TorchOnlyCount(
            answers=len(plain_torch), right=sum(r.correct for r in plain_torch)
        ),
        kept=study.kept,
        notes=study.notes,
        rates=RateTables(overall=rates(answers)[0], by=_breakdowns(study, crossings)),
        unsolved=UnsolvedTables(
            overall=unsolved(methods)[0], by_category=unsolved(methods, CATEGORY)
        ),
        pass_at_k=pass_rates(methods, ks),
        spending=() if study.of_corpus else spending(study.distinct, answers),
        fast_p=_chained(fast_p(answers, ps, b, by) for b in baselines for by in SPEED_BY),
        speedups=_chained(_speedups(study, b) for b in baselines),
        efficiency=_chained(
            [row for row in efficiencies(answers, by) if row.known] for by in SPEED_BY
        ),
        audit=audit_counts(study),
        illusions=IllusionTables(
            attempts=len(study.distinct),
            any_check=illusion_share(study),
            overall=illusion_rates(study),
            by=tuple(
                IllusionRatesBy(by=by, rows=illusion_rates(study, by)) for by in (CATEGORY, METHOD)
            ),
            findings=illusions(study),
            contracts=contracts_of(study),
        ),
        survival=SurvivalTables(
            overall=survival(study),
            by=tuple(SurvivalCurvesBy(by=by, rows=survival(study, by)) for by in SURVIVAL_BY),
        ),
        illusion_places=illusion_places(study),
        deviance=_deviance(study, seed),
        trajectories=trajectories(study.distinct),
        portability=portability(study),
        exports=(),
        missing=(),
    )


def _chained(parts: Iterable[Iterable[T]]) -> tuple[T, ...]:
    return tuple(itertools.chain.from_iterable(parts))


def crossings_of(by: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Read the break-downs of options, each of dimensions joined by commas.

    Raises:
        UserError: there is no such dimension.
    """
    named = (tuple(n.strip() for n in one.split(",") if n.strip()) for one in by)
    return tuple(check_dimensions(names) for names in named)


def numbers(option: str, values: Iterable[str], *, whole: bool = False) -> tuple[float, ...]:
    """Read the numbers of an option that takes several, joined by commas or repeated.

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
def without_garbage_collection() -> Iterator[None]:
    """Switch garbage collection off within.

    A large study makes hundreds of thousands of objects and no garbage; looking for it takes a
    third of the time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _exported(study: Study, options: AnalyzeOptions, made: AnalyzeDocument) -> AnalyzeDocument:
    exports, missing = [], []
    wanted = options.csv is not None or options.parquet is not None
    table = columns(study) if wanted else {}
    if options.csv is not None:
        write_csv(table, options.csv)
        exports.append(str(options.csv))
    if options.parquet is not None:
        try:
            write_parquet(table, options.parquet)
            exports.append(str(options.parquet))
        except MissingPackage as error:
            missing.append(str(error))
    cited = bibtex(study) if options.bibtex else UNSET
    return replace(made, exports=tuple(exports), missing=tuple(missing), bibtex=cited)


def _speedups(study: Study, baseline: str) -> Iterator[SpeedupRow]:
    """Yield speedups by each of `SPEED_BY`, and by device if there are several."""
    for by in SPEED_BY:
        yield from speedups(study.answers, baseline, by)
    if len(study.devices) > 1:
        for device in study.devices:
            (row,) = speedups(study.answers_on(device), baseline)
            yield replace(row, device=device)


def _rates(study: Study, by: Sequence[str]) -> tuple[StageRates, ...]:
    """Return rates by dimensions of which one may be the device."""
    if DEVICE not in by:
        return rates(study.answers, by, study.dtypes)
    others = [name for name in by if name != DEVICE]
    return tuple(
        replace(row, device=device)
        for device in study.devices
        for row in rates(study.answers_on(device), others, study.dtypes)
    )


def _breakdowns(study: Study, crossings: Sequence[Sequence[str]]) -> tuple[StageRatesBy, ...]:
    """Return rates by each of the crossings; those by dtype share their counts."""
    answers = study.answers
    with_dtype = [by for by in crossings if DTYPE in by and DEVICE not in by]
    dimensions = (name for by in with_dtype for name in by)
    dtypes = DtypeRates(answers if with_dtype else (), dimensions, study.dtypes)
    return tuple(
        StageRatesBy(by=tuple(by), rows=dtypes.rows(by) if by in with_dtype else _rates(study, by))
        for by in crossings
    )


def _deviance(study: Study, seed: int) -> DevianceTables:
    if study.of_corpus:
        return DevianceTables(unavailable=NO_METHODS, complexity=())
    found = deviance_of(study.answers, seed=seed)
    return replace(found, complexity=complexity(study.answers, study.facts))
