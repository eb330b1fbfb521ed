"""Make the drafts of each strategy: the k-th request for a case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kerneltruth.cases import shapes
from kerneltruth.cases.fitting import fit_anywhere
from kerneltruth.cases.recipes import OWN
from kerneltruth.cases.scene import Draft, Scene
from kerneltruth.cases.shapes import Axis, Device, DimSizes
from kerneltruth.cases.singles import Single, grouped, singles_of
from kerneltruth.tasks.spec import Scalar, Task

Strategy = Callable[[Scene, int], Draft | None]

# The largest size of a window's dim, such as a convolution's.
_WINDOW = 5
# If there are more departures than this, each case tries several: otherwise few cases would reach
# the last one.
MANY_SINGLES = 6


def _ordinary(scene: Scene, k: int, *purpose: str) -> DimSizes:
    """Choose odd sizes up to the cap, and few rows.

    The `default` strategy spreads them evenly over the octaves. Other strategies are not about
    sizes, so their sizes stay within one octave: a kernel whose block is the next power of two
    compiles once per dtype there, instead of once per case.
    """
    home = purpose != ("default",)
    sizes = {}
    for axis in scene.axes:
        if axis.kind == "batch":
            choices = [n for n in shapes.FEW if axis.low <= n <= axis.cap] or [axis.low]
            sizes[axis.symbol] = choices[scene.pick(len(choices), *purpose, axis.symbol, k)]
            continue
        reach = axis.cap if axis.kind != "wide" or not scene.task.contracted() else 100
        octaves = max(min(reach, axis.cap, 700).bit_length() - 4, 1)
        spread = scene.pick(octaves, *purpose, "octave", axis.symbol, k)
        base = 2 ** (3 + (octaves // 2 if home else spread))
        size = base + scene.pick(base, *purpose, "size", axis.symbol, k) | 1
        sizes[axis.symbol] = min(max(size, axis.low), axis.cap)
    return sizes


def _focus(scene: Scene, k: int) -> tuple[Axis | None, int]:
    """Return the axis of this turn, starting with the last, and how often it has had a turn."""
    if not scene.axes:
        return None, k
    count = len(scene.axes)
    return scene.axes[count - 1 - k % count], k // count


def _default(scene: Scene, k: int) -> Draft | None:
    if k == 0 and scene.task.first:
        return Draft(sizes={}, recipe=OWN, dtype=0, settings=dict(scene.task.first))
    if k == 0:
        first = {"batch": 3, "wide": 257, "inner": 33, "deep": 9, "contracted": 33}
        sizes = {a.symbol: min(max(first[a.kind], a.low), a.cap) for a in scene.axes}
        return Draft(sizes=sizes, dtype=0)
    recipe = "uniform" if scene.task.own is None else OWN
    return Draft(sizes=_ordinary(scene, k, "default"), recipe=recipe, settings=_sometimes(scene, k))


def _boundary(scene: Scene, k: int) -> Draft | None:
    large = tuple(shapes.large_sizes(scene.task, scene.axes, scene.device))[::-1]
    turns = len(large) * max(len(scene.dtypes), 1)
    if k and k % 3 == 0 and k // 3 <= turns:
        return _large(scene, large, k // 3 - 1)
    k -= min(k // 3, turns)
    axis, own = _focus(scene, k)
    sizes = {}
    for turn, other in enumerate(scene.axes):
        first, rest = shapes.boundary_sizes(other)
        deck = scene.shuffled(first, "boundary", other.symbol)
        deck += scene.shuffled(rest, "boundary", other.symbol)
        at = own if other is axis else scene.pick(len(deck), "boundary", turn, k)
        sizes[other.symbol] = deck[at % len(deck)] if deck else other.low
    recipe = ("uniform", "normal", "negative")[k % 3] if k > 1 else "uniform"
    return Draft(
        sizes=sizes,
        keep=axis.symbol if axis else None,
        recipe=recipe,
        settings=_sometimes(scene, k),
    )


def _large(scene: Scene, large: tuple[DimSizes, ...], turn: int) -> Draft:
    """Make a dim long; half precision and one sign first, where long sums go wrong."""
    sizes = large[turn % len(large)]
    keep = max(sizes, key=lambda s: sizes[s])
    sums = scene.task.dim(keep).role in ("reduced", "contracted")
    # The last main dtype has the fewest bits.
    dtype = (2 if sums else 1) + turn % len(large) + turn // len(large)
    recipe = "fading" if sums and turn % 2 == 0 else "uniform"
    return Draft(sizes=sizes, keep=keep, recipe=recipe, dtype=dtype, exact=True)


def _regular(scene: Scene, k: int) -> Draft | None:
    sizes = {}
    for axis in scene.axes:
        deck = shapes.regular_sizes(axis)
        sizes[axis.symbol] = deck[scene.pick(len(deck), "regular", axis.symbol, k)]
    return Draft(sizes=sizes, odd=False)


def _single_dtype(scene: Scene, k: int) -> Draft | None:
    recipe = ("uniform", "normal")[k % 2]
    return Draft(sizes=_ordinary(scene, k, "single"), recipe=recipe, dtype=0)


def _nan_injected(scene: Scene, k: int) -> Draft | None:
    return Draft(sizes=_ordinary(scene, k, "nan"), recipe="nan_injected")


def _adversarial(scene: Scene, k: int) -> Draft | None:
    return Draft(sizes=_ordinary(scene, k, "adversarial"), recipe="adversarial")


def _tiles(scene: Scene, k: int) -> Draft | None:
    axis, turn = _focus(scene, k)
    if axis is None:
        return None
    deck = shapes.tile_sizes(axis, scene.blocks, scene.task)
    if turn >= 3 * len(deck):
        return None
    sizes = {}
    for other in scene.axes:
        few = (1, 3) if other.kind == "batch" else (17, 5, 33)
        size = few[turn % len(few)]
        sizes[other.symbol] = min(max(size, other.low), other.cap)
    sizes[axis.symbol] = deck[turn % len(deck)]
    recipes = ("uniform", "negative", "normal", "large_same_sign")
    return Draft(sizes=sizes, keep=axis.symbol, recipe=recipes[turn % 4])


def _thresholds(scene: Scene, k: int) -> Draft | None:
    """Try each number that the source compares with: one more, then the number, then less."""
    turns = [
        (axis, number + step)
        for step in (1, 0, -1)
        for number in scene.thresholds
        for axis in scene.axes
        if axis.low <= number + step <= shapes.reach(axis, scene.task, scene.device)
    ]
    if k >= len(turns):
        return None
    axis, size = turns[k]
    sizes = {a.symbol: min(max(1 if a.kind == "batch" else 3, a.low), a.cap) for a in scene.axes}
    return Draft(
        sizes=sizes | {axis.symbol: size}, keep=axis.symbol, dtype=_first(scene), exact=True
    )


def _first(scene: Scene) -> str:
    """Return the first dtype that the task promises, among the requested ones."""
    known = (*scene.dtypes, *scene.extended_dtypes)
    return next((d for d in scene.task.promised_dtypes if d in known), known[0])


_LAYOUTS = ("transposed", "strided", "row_gaps", "expanded", "misaligned", "offset")


def layouts_of(task: Task) -> tuple[str, ...]:
    """Return the layouts that cases of a task have; for images, channels last comes first."""
    if not task.layouts:
        return ()
    has_images = any(len(spec.usual) == 4 for spec in task.tensors)
    found = ("channels_last", *_LAYOUTS) if has_images else _LAYOUTS
    promised = task.promises.layouts
    every = (*promised, *(layout for layout in found if layout not in promised))
    return every if _may_expand(task) else tuple(n for n in every if n != "expanded")


def _may_expand(task: Task) -> bool:
    batch = {d.symbol for d in task.dims if d.role == "batch"}
    reached = any(batch & set(spec.usual) for spec in task.tensors)
    return reached and not task.mutates and not task.may_overwrite


def _layouts(scene: Scene, k: int) -> Draft | None:
    layouts = layouts_of(scene.task)
    if not layouts:
        return None
    layout = layouts[k % len(layouts)]
    sizes = {
        s: max(n, min(3, a.cap))
        for (s, n), a in zip(_ordinary(scene, k, "layouts").items(), scene.axes, strict=True)
    }
    sizes |= _of_several_windows(scene.task, sizes)
    promised = layout in scene.task.promises.layouts and k < len(layouts)
    return Draft(
        sizes=sizes,
        layout=layout,
        dtype=_first(scene) if promised else k + k // len(layouts),
        settings=_one_dimensional(scene.task) if layout == "strided" else {},
    )


def _of_several_windows(task: Task, sizes: DimSizes) -> DimSizes:
    """Use small windows, and images that hold several of them.

    A window as large as the image sums all its elements. That hides a wrong order if image and
    weights share it.
    """
    windows = [
        d for d in task.dims if d.role == "contracted" and (d.high or _WINDOW + 1) <= _WINDOW
    ]
    images = [d for d in task.dims if d.role == "spatial"] if windows else []
    return {d.symbol: max(d.low, 2) for d in windows} | {
        d.symbol: max(sizes[d.symbol], _WINDOW) for d in images
    }


def _one_dimensional(task: Task) -> dict[str, Scalar]:
    """Return the form of the task in which its first tensor has one dim, if there is one.

    A kernel is more likely to assume a contiguous tensor if it has a single dim.
    """
    if not task.tensors:
        return {}
    defaults = {a.name: a.default for a in task.attributes}
    hidden = (a for a in task.attributes if a.hidden and task.tensors)
    forms = ({a.name: value} for a in hidden for value in a.values)
    return next((f for f in forms if len(task.axes(task.tensors[0], defaults | f)) == 1), {})


# The recipe and the dtype that tell the most come first; later rounds shift the dtypes.
_STRUCTURED = (
    ("exp_edge", 0),
    ("large_same_sign", 0),
    ("zero_rows", 0),
    ("ties", 0),
    ("negative", 1),
    ("exp_edge", 1),
    ("large", 0),
    ("mixed_amplitude", 0),
    ("signed_zeros", 0),
    ("far_from_zero", 0),
    ("constant_rows", 2),
    ("cancelling_pairs", 0),
    ("large", 1),
    ("sorted", 0),
    ("fading", 1),
    ("uniform01", 1),
    ("ones", 2),
    ("one_hot", 0),
    ("exp_edge", 2),
    ("large_same_sign", 1),
    ("small", 0),
    ("rank_one", 0),
    ("zeros", 0),
    ("normal", 1),
)


def recipes_of(task: Task) -> tuple[str, ...]:
    """Return the recipes that `structured` draws values by, those in the task's prompt first."""
    return tuple(dict.fromkeys((*task.promises.recipes, *(recipe for recipe, _ in _STRUCTURED))))


def _structured(scene: Scene, k: int) -> Draft | None:
    """Use each recipe in turn and in each mode; those in the task's prompt come first."""
    promised = scene.task.promises.recipes
    first = [(recipe, mode) for mode in _modes(scene.task) for recipe in promised]
    deck = [(recipe, 0) for recipe, _ in first]
    deck += [(recipe, dtype) for recipe, dtype in _STRUCTURED if recipe not in promised]
    recipe, dtype = deck[k % len(deck)]
    return Draft(
        sizes=_ordinary(scene, k, "structured"),
        recipe=recipe,
        dtype=dtype + k // len(deck),
        settings=first[k][1] if k < len(first) else _sometimes(scene, k),
    )


def _modes(task: Task) -> list[dict[str, Scalar]]:
    """Return the defaults, then each value of a switch or of an attribute that names a formula."""
    found: list[dict[str, Scalar]] = [{}]
    for a in task.attributes:
        if isinstance(a.default, bool | str) and not a.hidden:
            others = ({a.name: value} for value in a.values if value != a.default)
            found += [mode for mode in others if task.is_core(mode)]
    return found


def _sometimes(scene: Scene, k: int) -> dict[str, Scalar]:
    """Use other attribute values in one case of three, so that they meet other faults."""
    if k % 3 != 2:
        return {}
    return {
        a.name: a.values[scene.pick(len(a.values), "sometimes", a.name, k)]
        for a in scene.task.attributes
        if a.name not in scene.task.further
    }


def departures_of(task: Task, axes: tuple[Axis, ...], device: Device) -> tuple[Single, ...]:
    """Return the departures that cases try at least once: values, absences, dtypes."""
    defaults = {a.name: a.default for a in task.attributes}

    def fits(single: Single) -> bool:
        return fit_anywhere(task, axes, device, {**defaults, **single.settings}) is not None

    singles = singles_of(task)
    return tuple(grouped(singles, fits, most=-(-len(singles) // MANY_SINGLES)))


def _attributes(scene: Scene, k: int) -> Draft | None:
    """Use each value of each attribute and each absent tensor, then random combinations."""
    departures = scene.departures
    if not departures:
        return None
    recipe = ("uniform", "ties", "normal", "zero_rows")[k // len(departures) % 4]
    sizes = _ordinary(scene, k, "attributes")
    if k < len(departures):
        one = departures[k]
        dtype = one.dtype or _first(scene)
        if dtype not in (*scene.dtypes, *scene.extended_dtypes):
            return None
        settings = dict(one.settings)
        if scene.task.wants_gradients(settings):
            # Where an activation saturates, its gradient is 0.
            recipe = "small"
        return Draft(sizes=sizes, recipe=recipe, settings=settings, absent=one.absent, dtype=dtype)
    settings = {
        a.name: a.values[scene.pick(len(a.values), "attributes", a.name, k)]
        for a in scene.task.attributes
    }
    optional = tuple(spec.name for spec in scene.task.tensors if spec.optional)
    absent = tuple(name for name in optional if scene.pick(2, "attributes", name, k))
    return Draft(sizes=sizes, recipe=recipe, settings=settings, absent=absent)


def _empty(scene: Scene, k: int) -> Draft | None:
    """Use all dims 1, then each dim 0 and each dim 1 in turn, the others ordinary."""
    ones = {a.symbol: a.low for a in scene.axes}
    variants: list[tuple[DimSizes, str | None]] = [(ones, None)]
    for axis in scene.axes:
        if axis.low == 1:
            variants.append(({axis.symbol: 1}, axis.symbol))
        if axis.may_be_empty:
            variants.append(({axis.symbol: 0}, axis.symbol))
    if k >= len(variants) * max(len(scene.dtypes), 1):
        return None
    sizes, keep = variants[k % len(variants)]
    return Draft(
        sizes=_ordinary(scene, k, "empty") | sizes,
        keep=keep,
        dtype=k // len(variants),
        exact=keep is None or 0 in sizes.values(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """When a strategy first has its turn, and how long it then waits.

    The more departures from the defaults there are, the sooner `attributes` has its next turn.
    """

    draft: Strategy
    start: float
    pause: float

    def step(self, scene: Scene) -> float:
        """Return how long the strategy waits for its next turn."""
        if self.draft is not _attributes:
            return self.pause
        return max(1.0, min(self.pause, 12.0 / max(len(scene.departures), 1)))


TURNS = {
    "default": Cadence(draft=_default, start=0.0, pause=7.0),
    "boundary": Cadence(draft=_boundary, start=0.5, pause=4.0),
    "structured": Cadence(draft=_structured, start=1.0, pause=2.4),
    "tiles": Cadence(draft=_tiles, start=1.5, pause=4.0),
    "attributes": Cadence(draft=_attributes, start=2.0, pause=3.5),
    "layouts": Cadence(draft=_layouts, start=2.5, pause=5.0),
    "nan_injected": Cadence(draft=_nan_injected, start=4.0, pause=9.0),
    "adversarial": Cadence(draft=_adversarial, start=5.0, pause=9.0),
    "empty": Cadence(draft=_empty, start=6.0, pause=8.0),
    "regular": Cadence(draft=_regular, start=10.0, pause=12.0),
    "single_dtype": Cadence(draft=_single_dtype, start=12.0, pause=16.0),
    "thresholds": Cadence(draft=_thresholds, start=1.75, pause=3.0),
}
