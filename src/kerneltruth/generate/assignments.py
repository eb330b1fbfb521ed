"""Choose the tasks of a generation, and write the brief of each."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from importlib.resources import files

from kerneltruth.errors import UserError
from kerneltruth.generate.brief import brief_of
from kerneltruth.generate.chat import ChatModel
from kerneltruth.generate.example import example_of
from kerneltruth.generate.gpus import GPUS
from kerneltruth.generate.prompts import Prompts
from kerneltruth.generate.recording import Recording
from kerneltruth.generate.requests import TaskSelection
from kerneltruth.generate.shots import shots_of
from kerneltruth.suites.catalog import open_tasks
from kerneltruth.suites.suite import TaskSource
from kerneltruth.tasks.model import Task
from kerneltruth.tasks.registry import Listed, eager_modules, find, key_of, listed_of


def tasks_chosen(suite: str, asking: TaskSelection) -> list[Listed]:
    """Return the tasks of a suite that the options choose, in the suite's order.

    Raises:
        UserError: a task is unknown, or none is left.
    """
    listed = listed_of(suite)
    wanted = {key_of(name, suite) for name in asking.tasks}
    known = {t.category for t in listed.values()}
    for category in asking.categories:
        if category not in known:
            raise UserError(f"--category {category!r}: must be one of {', '.join(sorted(known))}")
    found = [
        t
        for t in listed.values()
        if (not wanted or t.key in wanted)
        and (not asking.categories or t.category in asking.categories)
    ]
    if not found:
        raise UserError(
            f"no task of {suite} is left with these --task and --category; drop one of them"
        )
    return found


def keys_for(suite: str, asking: TaskSelection, model: ChatModel) -> list[str]:
    """Return the keys of the chosen tasks; by default, those that a recording has.

    Raises:
        UserError: a task is unknown, or none is left.
    """
    chosen = tasks_chosen(suite, asking)
    if not isinstance(model, Recording) or asking.tasks:
        return [t.key for t in chosen]
    keys = [t.key for t in chosen if {t.name, t.key} & model.tasks]
    if not keys:
        raise UserError(f"no task of {suite} has a recorded reply; name another --suite or file")
    return keys


def briefs_of(keys: Iterable[str], asking: TaskSelection, prompts: Prompts) -> dict[str, str]:
    """Write the brief of each task.

    Raises:
        UserError: only a task's reference states it, and the options hide references.
    """
    return {key: _brief(find(key), asking, prompts) for key in keys}


def _brief(task: Task, asking: TaskSelection, prompts: Prompts) -> str:
    said = _statement(task)
    if not asking.show_reference and said is not None and said.alone:
        raise UserError(
            f"{task.key}: only its reference says what it computes; pass --show-reference"
        )
    source = reference_source(task) if asking.show_reference else ""
    text = "" if said is None else said.source
    shots = shots_of(task, asking.shots, prompts, text=text)
    device = _device(asking.gpu, prompts)
    if said is not None and said.whole:
        words = {"name": task.name, "description": task.description, "source": source}
        return prompts.fill("problem", **words, device=device, shots=shots)
    example = example_of(task, prompts) if asking.show_example else ""
    return brief_of(task, prompts, example=example, reference=source, device=device, shots=shots)


def _device(key: str | None, prompts: Prompts) -> str:
    if key is None:
        return ""
    return prompts.fill("device", name=GPUS[key].title, facts=GPUS[key].in_words)


def _statement(task: Task) -> TaskSource | None:
    known = open_tasks(task.suite)
    return None if known is None else known.suite.statement(task.name)


def reference_source(task: Task) -> str:
    """Return the reference as source: a problem's own, plain PyTorch for the entry, or the formula.

    Raises:
        UserError: the task has no reference that can be shown.
    """
    said = _statement(task)
    if said is not None:
        return said.source.strip()
    module = eager_modules(task.suite).get(task.key)
    if module is not None:
        folder = files("kerneltruth.corpus").joinpath("eager")
        return _function(folder.joinpath(*f"{module}.py".split("/")).read_text("utf-8"), task.entry)
    try:
        return _formula(inspect.getsource(task.reference))
    except (OSError, TypeError) as error:
        raise UserError(
            f"--show-reference: {task.key}: its reference has no source that can be shown; "
            "leave the option or the task out"
        ) from error


def _function(source: str, name: str) -> str:
    tree = ast.parse(source)
    definitions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    if name not in definitions:
        return source.strip()
    needed = [name]
    for current in needed:
        used = {n.id for n in ast.walk(definitions[current]) if isinstance(n, ast.Name)}
        needed += [u for u in definitions if u in used and u not in needed]
    kept = [
        n
        for n in tree.body
        if isinstance(n, ast.Import | ast.ImportFrom | ast.Assign)
        or getattr(n, "name", None) in needed
    ]
    return "\n\n".join(ast.unparse(n) for n in kept)


def _formula(lines: str) -> str:
    if "lambda" not in lines:
        return inspect.cleandoc(lines).strip()
    start = lines.index("lambda")
    for end in range(len(lines), start, -1):
        try:
            tree = ast.parse(lines[start:end].strip().rstrip(","), mode="eval")
        except SyntaxError:
            continue
        return f"reference = {ast.unparse(tree)}"
    return lines.strip()
