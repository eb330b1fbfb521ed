"""What the corpus declares is there, and hangs together."""

import ast
from dataclasses import replace

import pytest

from kerneltruth.corpus import ENTRIES, Entry, source
from kerneltruth.corpus.entry import filename
from kerneltruth.errors import InternalError
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS

BY_NAME = {entry.name: entry for entry in ENTRIES}
CONTROLS = [e.name for e in ENTRIES if e.role == "control"]
BUGS = [e.name for e in ENTRIES if e.role == "bug"]


def test_names_are_unique():
    assert len(BY_NAME) == len(ENTRIES)


def test_the_corpus_is_as_large_as_promised():
    assert len(CONTROLS) >= 45
    assert len(BUGS) >= 34


def test_every_kernel_is_a_candidate_for_its_task():
    for entry in ENTRIES:
        candidate = read_candidate(source(entry), filename(entry), task_names=tuple(TASKS))
        assert candidate.entry == entry.task, entry.name


def imports_of(text):
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    return imported


def test_a_kernel_imports_nothing_of_ours():
    for entry in ENTRIES:
        assert imports_of(source(entry)) <= {"torch", "triton", "numpy", "math"}, entry.name


def test_a_bug_has_a_control_that_differs():
    for name in BUGS:
        entry = BY_NAME[name]
        control = BY_NAME[entry.control]
        assert control.role == "control", name
        assert source(control) != source(entry), name


def test_every_file_is_declared():
    from importlib.resources import files

    declared = {filename(entry).removesuffix(".py") for entry in ENTRIES}
    root = files("kerneltruth.corpus")
    found = [
        f"{folder}/{path.name.rpartition('.')[0]}"
        for folder in ("controls", "bugs")
        for path in root.joinpath(folder).iterdir()
        if path.name.endswith((".py", ".patch"))
    ]
    assert sorted(found) == sorted(declared)


def test_a_bug_in_a_patch_is_its_control_with_the_fault():
    entry = BY_NAME["matmul_no_accumulate"]
    correct = source(BY_NAME["matmul"])
    assert source(entry) == correct.replace("acc += tl.dot(a, b)", "acc = tl.dot(a, b)")


def test_a_patch_of_another_control_is_refused():
    entry = replace(BY_NAME["matmul_no_accumulate"], control="relu")
    with pytest.raises(InternalError, match=r"matmul_no_accumulate.patch does not fit relu.py"):
        source(entry)


def test_a_bug_without_a_control_is_refused():
    with pytest.raises(InternalError, match="has a fault, a control"):
        Entry(name="x", task="relu", role="bug", fault="wrong", control=None, note="")


def test_a_bug_is_for_the_task_of_its_control():
    assert BY_NAME["relu_in_place"].task == BY_NAME["relu_strided"].task == "relu"
