"""The operators of the audit's corpus, by name: the tuples of this folder's files, concatenated."""

from __future__ import annotations

from kerneltruth.tasks.collection import by_key
from kerneltruth.tasks.core import (
    activation,
    attention,
    index,
    loss,
    math,
    matrix_multiply,
    normalization,
    pooling,
    quantization,
    reduce,
    spatial,
)
from kerneltruth.tasks.spec import Task

TASKS: dict[str, Task] = by_key(
    (
        *activation.TASKS,
        *normalization.TASKS,
        *reduce.TASKS,
        *matrix_multiply.TASKS,
        *attention.TASKS,
        *index.TASKS,
        *loss.TASKS,
        *pooling.TASKS,
        *spatial.TASKS,
        *quantization.TASKS,
        *math.TASKS,
    )
)
