"""List a task's promises, and the cases that try each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from kerneltruth.cases.recipes import RECIPES, benchmark_recipe
from kerneltruth.documents.case import Case, Domain
from kerneltruth.tasks.arguments import PARTS, alike
from kerneltruth.tasks.spec import Scalar, Task, evaluate

PromiseKind = Literal["dtype", "attribute", "absent", "layout", "recipe", "empty"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Something that a kernel may not refuse.

    Attributes:
        name: the dtype, attribute, absent tensor, layout or recipe.
        value: of an attribute: the value; of an absent tensor: the dtype.
    """

    kind: PromiseKind
    name: str = ""
    value: Scalar = None

    def __str__(self) -> str:
        match self.kind:
            case "attribute":
                return f"{self.name}={self.value!r}"
            case "absent":
                return f"{self.name}=None in {self.value}"
            case _:
                return " ".join(filter(None, (self.kind, self.name)))

    def tried_by(self, case: Case) -> bool:
        """Return whether a kernel that refuses this, or gets it wrong, fails the case."""
        if case.domain != "core":
            return False
        match self.kind:
            case "dtype":
                return case.dtype == self.name
            case "attribute":
                return alike(case.settings.get(self.name), self.value)
            case "absent":
                return self.name in case.absent and case.dtype == self.value
            case "layout":
                return case.layout == self.name
            case "recipe":
                return case.recipe == self.name
            case "empty":
                return 0 in case.sizes.values()


def promises_of(task: Task) -> tuple[Promise, ...]:
    """Return everything that a task promises."""
    dtypes = task.promised_dtypes
    found = [Promise(kind="dtype", name=dtype) for dtype in dtypes]
    for a in task.attributes:
        promised = [v for v in a.values if task.is_core({a.name: v})]
        found += [Promise(kind="attribute", name=a.name, value=v) for v in promised]
    optional = [spec.name for spec in task.tensors if spec.optional]
    found += [Promise(kind="absent", name=n, value=d) for n in optional for d in dtypes]
    found += [Promise(kind="layout", name=layout) for layout in task.promises.layouts]
    found += [Promise(kind="recipe", name=recipe) for recipe in task.promises.recipes]
    if task.promises.empty:
        found.append(Promise(kind="empty"))
    return tuple(found)


def why_untried(
    task: Task, dtype: str, recipe: str, sizes: Mapping[str, int], settings: Mapping[str, Scalar]
) -> str | None:
    """Return why no case has this dtype, recipe, sizes and attributes' values together."""
    if dtype in PARTS and RECIPES[recipe].domain != "core":
        return "what complex infinities and NaN give, no standard says"
    if dtype in PARTS and task.asked_dtype(settings) not in (None, *PARTS):
        return "a complex number is none of a real dtype"
    if evaluate(task.promises.never.get(dtype, "False"), task.scope(sizes, settings)):
        return f"not tried in {dtype}"
    return None


def domain_of(task: Task, case: Case) -> Domain:
    """Return `core` if the task promises everything about the case, whatever its origin."""
    promised = (
        case.dtype in task.promised_dtypes
        and case.layout in ("contiguous", *task.promises.layouts)
        and (task.promises.empty or prod(n for _, n in case.dims) > 0)
        and task.is_core(case.settings)
        and RECIPES[case.recipe].domain == "core"
        and (task.promises.values or case.recipe == benchmark_recipe(task.benchmark.distribution))
    )
    return "core" if promised else "extended"
