"""A reward for a trainer of models that write kernels.

    python examples/reward.py

`rewards` is called once for each batch of completions. The judge stays warm between batches, needs
no GPU of the trainer's own process, and changes nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import kerneltruth as kt

CODE = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)


def rewards(
    judge: kt.Judge, completions: Sequence[str], tasks: Sequence[str]
) -> list[float | None]:
    """Return a reward from 0 to 1 for each completion; None where none could be judged."""
    answers = [
        kt.NamedCandidate((CODE.findall(text) or [text])[-1] + "\n", task=task)
        for text, task in zip(completions, tasks, strict=True)
    ]
    found: list[float | None] = [None] * len(answers)
    for report in judge.check_many(answers, cases=16, explain="none"):
        if report.judged:
            found[report.index] = report.score
    return found


if __name__ == "__main__":
    right = "```python\ndef relu(x):\n    return x.clamp(min=0)\n```"
    wrong = "```python\ndef relu(x):\n    return x.abs()\n```"
    with kt.Judge(workers=2) as shared:
        print(rewards(shared, [right, wrong, "I cannot do that."], ["relu"] * 3))
