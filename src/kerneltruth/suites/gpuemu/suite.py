"""The gpuemu corpus as a suite: its controls are tasks, and all of its kernels submissions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from kerneltruth.runner.candidate import Candidate, read_source
from kerneltruth.runner.host import Runner
from kerneltruth.suites.gpuemu.corpus import (
    KERNEL,
    META,
    CorpusKernel,
    read_corpus,
    read_kernel,
)
from kerneltruth.suites.gpuemu.task import SUITE, kernels_source, own_function_of, said_of, task_of
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.submission import Read, Submission
from kerneltruth.suites.suite import Opening, Suite
from kerneltruth.suites.terms import Terms
from kerneltruth.tasks.registry import Listed
from kerneltruth.tasks.spec import Task


class Gpuemu(Suite):
    """The published kernels of a checkout of gpuemu-corpus.

    A kernel that its author calls a bug is a submission to the task of its control.
    """

    terms = Terms(
        check="30 cases of sizes from its schema, drawn from [-10, 10]: an absolute error for each "
        "operator and dtype, and no NaN",
        checked_by="meta.json of the kernel, in sarkar-dipankar/gpuemu-corpus",
        prompt="the sizes and dtypes of the kernel's meta.json, and this project",
    )

    def __init__(self, kernels: Iterable[CorpusKernel], runner: Runner) -> None:
        self._runner = runner
        self._all = tuple(k for k in kernels if not k.is_wrong)
        self._controls = {k.meta.name: k for k in self._all}

    @classmethod
    def open(cls, path: Path, opening: Opening) -> Self:
        """Return the corpus of a checkout.

        Raises:
            UserError: there is none, or one of its files is missing or wrong.
        """
        return cls(read_corpus(path), opening.runner)

    def listed(self) -> Iterator[Listed]:
        """Return what the schema of each control states."""
        for kernel in self._all:
            yield Listed(
                name=kernel.meta.name,
                key=f"{SUITE}/{kernel.meta.name}",
                category=kernel.meta.op_schema.name,
                entry=kernel.meta.name,
                description=said_of(kernel),
                sha256=kernel.sha256,
                signature=f"{kernel.meta.name}({', '.join(kernel.meta.input_names)})",
            )

    def task(self, name: str) -> Task:
        """Make the task of a control; its reference runs a few times."""
        return task_of(self._controls[name], self._runner)

    def own_function(self, name: str) -> Candidate:
        """Return the reference as a candidate."""
        return own_function_of(self._controls[name])

    def submission(self, file: Path, source: str, task: str | None = None) -> Submission | None:
        """Return the kernel in a file of the corpus, with a function that takes tensors."""
        if file.name != KERNEL or not (file.parent / META).is_file():
            return None
        kernel = read_kernel(file.absolute().parent)
        name = kernel.of_control({*self._controls}) if kernel.is_wrong else kernel.meta.name
        return Submission(
            origin=f"{kernel.folder.name}/{KERNEL}",
            name=name,
            source=kernels_source(kernel.meta.input_names, source, name),
            entry=name,
        )

    def submissions(self, path: Path) -> Iterator[Read]:
        """Return the kernels below a folder of the corpus; else all usual submissions."""
        files = sorted(path.rglob(KERNEL)) if path.is_dir() else [path]
        own = (self.submission(file, read_source(file)) for file in files if file.name == KERNEL)
        found = [item for item in own if item is not None]
        yield from found or read_submissions(path)
