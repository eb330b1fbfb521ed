"""Choose worked kernels of other operators for a prompt: few-shot examples.

They are controls of the corpus, which the judge accepts. None gives the answer away: an operator of
the asked task's category, or one that the task's text names, is not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

from kerneltruth.corpus import ENTRIES, source
from kerneltruth.errors import UserError
from kerneltruth.generate.brief import signature_of
from kerneltruth.generate.prompts import Prompts
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.model import Task
from kerneltruth.tasks.registry import find

_WORD = re.compile(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+(?![a-z])|[0-9]+")
# A shorter word of a name, such as `of`, says nothing of an operator.
_SHORTEST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """A worked kernel."""

    task: Task
    source: str


def shots_of(task: Task, count: int, prompts: Prompts, *, text: str) -> str:
    """Return `count` worked kernels in words, each of another category while these suffice.

    `text` is what the prompt says of the task beside its name.

    Raises:
        UserError: there are fewer that give nothing away.
    """
    if not count:
        return ""
    fitting = [shot for shot in _pool(prompts.language) if not _gives_away(shot, task, text)]
    if len(fitting) < count:
        raise UserError(
            f"--shots {count}: for {task.key} there are {len(fitting)} kernels in "
            f"{prompts.language} that do not give it away; ask for fewer"
        )
    shown = (
        prompts.fill(
            "shot",
            name=shot.task.name,
            description=shot.task.description,
            signature=signature_of(shot.task),
            source=shot.source.strip(),
        )
        for shot in fitting[:count]
    )
    return prompts.fill("shots", shots="\n\n".join(shown))


@cache
def _pool(language: str) -> tuple[Shot, ...]:
    """Return the corpus's kernels in a language: the first of each category, the second, ..."""
    by_category: dict[str, list[Shot]] = {}
    for shot in _controls(language):
        by_category.setdefault(shot.task.category, []).append(shot)
    return tuple(s for row in zip_longest(*by_category.values()) for s in row if s is not None)


def _controls(language: str) -> Iterator[Shot]:
    seen: set[str] = set()
    for entry in ENTRIES:
        if entry.role != "control" or entry.task in seen:
            continue
        task, text = find(entry.task), source(entry)
        found = read_candidate(
            text, entry.name, task_names=(task.name,), task=task.name, entry=task.entry
        )
        if found.language == language:
            seen.add(entry.task)
            yield Shot(task=task, source=text)


def _gives_away(shot: Shot, task: Task, text: str) -> bool:
    said = f"{task.name} {task.entry} {task.description} {text}"
    if shot.task.category == task.category or _joined(shot.task.name) in _joined(said):
        return True
    own = {word for word in _words(shot.task.name) if len(word) >= _SHORTEST}
    return bool(own & _words(said))


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _joined(text: str) -> str:
    """Return the letters and digits alone, in which `rms_norm` and `RMSNorm` are one name."""
    return re.sub(r"[^a-z0-9]", "", text.lower())
