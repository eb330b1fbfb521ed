"""List departures from a task's defaults in one point, in the order to try them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kerneltruth.tasks.spec import Scalar, Task

# These switch off what other attributes control, such as the share that dropout drops.
_SWITCHES = frozenset({"training"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """A departure from the defaults.

    Attributes:
        absent: optional tensors that are None.
        dtype: None leaves it to the first promised one.
    """

    settings: Mapping[str, Scalar] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    dtype: str | None = None
    promised: bool = True

    def agrees(self, other: Single) -> bool:
        """Return whether one case can have both, each on its own terms."""
        return (
            self.dtype == other.dtype
            and self.promised == other.promised
            and not set(self.settings) & set(other.settings)
        )

    def and_also(self, other: Single) -> Single:
        """Combine both departures."""
        return Single(
            settings={**self.settings, **other.settings},
            absent=tuple(dict.fromkeys((*self.absent, *other.absent))),
            dtype=self.dtype,
            promised=self.promised,
        )


def singles_of(task: Task) -> list[Single]:
    """Return one attribute's value, one absent tensor, or one promised dtype at a time.

    Promised departures come first. Then the first further value of every attribute comes before the
    second of any.
    """
    found: list[Single] = []
    optional = [spec.name for spec in task.tensors if spec.optional]
    rounds = max((len(a.values) for a in task.attributes), default=1)
    for turn in range(1, max(rounds, 2)):
        for a in (a for a in task.attributes if turn < len(a.values)):
            settings = {a.name: a.values[turn]}
            found.append(Single(settings=settings, promised=task.is_core(settings)))
        if turn == 1:
            found += [Single(absent=(name,)) for name in optional]
    first, *others = task.promised_dtypes
    found += [Single(dtype=dtype) for dtype in others]
    for dtype in (d for d in dict.fromkeys((*task.dtypes, *others)) if d != first):
        promised = dtype in others
        found += [Single(absent=(n,), dtype=dtype, promised=promised) for n in optional]
    return sorted(found, key=lambda single: not single.promised)


def grouped(alone: Iterable[Single], fits: Callable[[Single], bool], *, most: int) -> list[Single]:
    """Combine up to `most` independent departures that fit together in one case.

    A departure that does not fit alone, such as a dim of a higher rank, brings another along.
    """
    singles = list(alone)
    groups: list[tuple[Single, int]] = []
    for single in singles:
        for i, (group, size) in enumerate(groups):
            together = group.and_also(single)
            apart = _SWITCHES & set(single.settings)
            if size < most and not apart and group.agrees(single) and fits(together):
                groups[i] = (together, size + 1)
                break
        else:
            if fits(single):
                groups.append((single, most if _SWITCHES & set(single.settings) else 1))
            else:
                groups += [(found, most) for found in _accompanied(single, singles, fits)]
    return [group for group, _ in groups]


def _accompanied(
    single: Single, singles: list[Single], fits: Callable[[Single], bool]
) -> list[Single]:
    """Return the departure with the first other one that makes it fit, if any."""
    others = (single.and_also(o) for o in singles if o is not single and single.agrees(o))
    found = next((pair for pair in others if fits(pair)), None)
    return [] if found is None else [found]
