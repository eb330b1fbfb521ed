"""Choose which cases of a task to try, and in which order.

A strategy turns a count into a draft (see `drafts`): the sizes that it requests, and how the case
departs from the ordinary. `generate` fits drafts to the task and interleaves the strategies, so
that contiguous cases at odd sizes come first and every strategy has an early turn. A case depends
only on the seed, the task, its strategy and its number there. Candidates of one task therefore
share cases (but the sizes of `tiles` also depend on the block sizes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from msgspec.structs import replace

from kerneltruth.cases import shapes
from kerneltruth.cases.drafts import TURNS, departures_of
from kerneltruth.cases.fitting import fit, fit_anywhere
from kerneltruth.cases.philox import derive
from kerneltruth.cases.promised import domain_of, why_untried
from kerneltruth.cases.scene import Draft, Scene
from kerneltruth.cases.shapes import Device, DimSizes
from kerneltruth.documents.case import Case, Domain
from kerneltruth.errors import UserError
from kerneltruth.tasks.spec import Scalar, Task

# A strategy that fails this often in a row is exhausted.
_PATIENCE = 24

STRATEGIES = tuple(TURNS)


def _case(scene: Scene, strategy: str, k: int, draft: Draft, *, only_core: bool) -> Case | str:
    """Fit a draft to the task: return a case, or the reason why there is none."""
    task = scene.task
    defaults = {a.name: a.default for a in task.attributes}
    # A task without dims has its shapes in hidden attributes: every case takes other ones.
    shapes_ = {} if scene.axes else scene.forms(strategy, k)
    settings = defaults | shapes_ | draft.settings
    sizes = _fitted(scene, draft, settings)
    promised = draft.recipe in task.promises.recipes
    if sizes is None and (strategy == "attributes" or promised):
        # The attributes' values are to be tried, at any sizes.
        sizes = fit_anywhere(task, scene.axes, scene.device, settings)
    if sizes is None and strategy != "attributes" and draft.settings:
        settings = defaults
        sizes = _fitted(scene, draft, settings)
    if sizes is None:
        return "no sizes satisfy the task's constraints"
    dtype = _dtype(scene, strategy, k, draft)
    reason = why_untried(task, dtype, draft.recipe, sizes, settings)
    if reason:
        return reason
    case = Case(
        task=task.key,
        dims=tuple((d.symbol, sizes[d.symbol]) for d in task.dims),
        attributes=tuple(settings.items()),
        dtype=dtype,
        layout=draft.layout,
        recipe=draft.recipe,
        seed=derive(scene.seed, task.name, strategy, str(k)),
        absent=draft.absent,
        strategy=strategy,
    )
    domain = domain_of(task, case)
    if domain == "extended" and only_core:
        return "extended domain"
    return replace(case, domain=domain)


def _fitted(scene: Scene, draft: Draft, settings: dict[str, Scalar]) -> DimSizes | None:
    return fit(
        scene.task,
        scene.axes,
        scene.device,
        draft.sizes,
        settings,
        keep=draft.keep,
        exact=draft.exact,
        odd=draft.odd,
    )


def _dtype(scene: Scene, strategy: str, k: int, draft: Draft) -> str:
    """Rotate dtypes; every fourth case takes one of the further ones."""
    if isinstance(draft.dtype, str):
        return draft.dtype
    index = k + STRATEGIES.index(strategy) if draft.dtype is None else draft.dtype
    more = scene.extended_dtypes
    if more and (k % 4 == 3 or not scene.dtypes) and strategy != "single_dtype":
        return more[(k // 4 + STRATEGIES.index(strategy)) % len(more)]
    return scene.dtypes[index % len(scene.dtypes)] if scene.dtypes else more[index % len(more)]


class Cases(Iterator[Case]):
    """The cases that `generate` yields; `skipped` counts the drafts that gave none, by reason."""

    def __init__(
        self, scene: Scene, strategies: Sequence[str], count: int, *, only_core: bool
    ) -> None:
        self.skipped: Counter[str] = Counter()
        self._scene = scene
        self._only_core = only_core
        self._left = count
        self._turns = {name: (TURNS[name].start, i) for i, name in enumerate(strategies)}
        self._drafted: Counter[str] = Counter()
        self._seen: set[tuple[object, ...]] = set()

    def __next__(self) -> Case:
        """Return the next case in turn.

        Raises:
            StopIteration: the count is reached, or no strategy has more to offer.
        """
        if self._left <= 0:
            raise StopIteration
        while self._turns:
            name = min(self._turns, key=lambda n: self._turns[n])
            when, order = self._turns[name]
            case = self._next_of(name)
            if case is None:
                del self._turns[name]
                continue
            self._turns[name] = (when + TURNS[name].step(self._scene), order)
            self._left -= 1
            return case
        raise StopIteration

    def _next_of(self, name: str) -> Case | None:
        """Return the strategy's next case that differs from all before in more than its seed."""
        for _ in range(_PATIENCE):
            k = self._drafted[name]
            self._drafted[name] += 1
            draft = TURNS[name].draft(self._scene, k)
            if draft is None:
                continue
            case = _case(self._scene, name, k, draft, only_core=self._only_core)
            if isinstance(case, str):
                self.skipped[f"{name}: {case}"] += 1
                continue
            key = (case.dims, case.attributes, case.dtype, case.layout, case.recipe, case.absent)
            if key in self._seen:
                self.skipped[f"{name}: the same sizes, dtype and recipe again"] += 1
                continue
            self._seen.add(key)
            return case
        return None


def generate(  # noqa: PLR0913 - what restricts the cases, and what the candidate suggests
    task: Task,
    *,
    strategies: Sequence[str] = (),
    seed: int,
    count: int,
    device: str = "cpu",
    dtypes: Sequence[str] | None = None,
    domain: Domain = "extended",
    blocks: Sequence[int] = (),
    thresholds: Sequence[int] = (),
) -> Cases:
    """Cases of a task, the simplest and most telling ones first.

    Args:
        task: what kernels compute.
        strategies: names from `STRATEGIES`; empty means all.
        seed: master seed; the same seed gives the same cases.
        count: how many cases at most; fewer come if the strategies have no more to offer.
        device: "cpu" keeps launches small; anything else is taken for a GPU.
        dtypes: restriction of the task's dtypes.
        domain: "core" leaves out what the task does not promise.
        blocks: block sizes of the candidate, for `tiles`.
        thresholds: sizes at which the candidate may branch, for `thresholds`.

    Raises:
        UserError: an unknown strategy, or none of the dtypes is the task's.
    """
    names = strategies_of(strategies)
    main, more = _dtypes_to_try(task, domain, dtypes)
    kind: Device = "cpu" if device == "cpu" else "cuda"
    axes = shapes.axes(task, kind)
    scene = Scene(
        task=task,
        seed=seed,
        device=kind,
        axes=axes,
        dtypes=main,
        extended_dtypes=more,
        departures=departures_of(task, axes, kind),
        blocks=tuple(blocks),
        thresholds=tuple(thresholds),
    )
    return Cases(scene, names, count, only_core=domain == "core")


def _dtypes_to_try(
    task: Task, domain: Domain, restriction: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return those of the task's main and of its further dtypes that cases may have."""
    known = dtypes_of(task, domain)
    tried = {d for d in known if restriction is None or d in restriction}
    if not tried:
        raise UserError(
            f"{task.name} has none of the dtypes {sorted({*(restriction or ())})}; "
            f"it has {', '.join(known)}"
        )
    further = (d for d in known if d not in task.dtypes)
    return tuple(d for d in task.dtypes if d in tried), tuple(d for d in further if d in tried)


def dtypes_of(task: Task, domain: Domain) -> tuple[str, ...]:
    """Return the dtypes of a domain's cases: in the core domain, those that the task promises."""
    every = (*task.dtypes, *task.extended_dtypes)
    return tuple(d for d in every if domain == "extended" or d in task.promised_dtypes)


def strategies_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return the strategies of these names; none means all.

    Raises:
        UserError: a name is unknown.
    """
    return tuple(dict.fromkeys(_strategy(name) for name in names)) or STRATEGIES


def _strategy(name: str) -> str:
    plain = name.strip().replace(" ", "_").replace("-", "_")
    if plain in TURNS:
        return plain
    near = get_close_matches(plain, STRATEGIES, n=1)
    hint = f"nearest: {near[0]}; " if near else ""
    raise UserError(f"unknown strategy {name!r}; {hint}there are {', '.join(STRATEGIES)}")
