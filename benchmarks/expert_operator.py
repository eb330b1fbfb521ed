"""How `expert_kernels.py` declares a function of a published library, and what it must compute."""

from __future__ import annotations

from typing import NamedTuple

# Libraries import it for references of their own.
EINOPS = """
def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
"""


class Operator(NamedTuple):
    """A function, and what it is held to.

    Attributes:
        parameters: of the reference and of the function that calls the library's.
        call: of the library's function, by these parameters.
        by: the reference's result by PyTorch; empty where a task of ours has the name.
        inputs: the body of the reference's `inputs`.
        imports: what the call needs beside the collection's head.
    """

    name: str
    parameters: str
    call: str
    by: str = ""
    inputs: str = ""
    imports: str = ""


class Collection(NamedTuple):
    """A library whose functions are judged.

    Attributes:
        folder: the package, or a part of it, within a checkout.
        package: where the folder is imported from, as a path.
        operators: its functions.
        head: begins every source that calls one.
        formulas: functions that references use, each by its name.
        stubs: files that stand beside the package, for modules which its kernels do not need.
        appended: what is added to files of the package.
        left_out: names of files that are not copied.
    """

    library: str
    folder: str
    package: str
    operators: tuple[Operator, ...]
    head: str = ""
    formulas: dict[str, str] = {}  # noqa: RUF012
    stubs: dict[str, str] = {}  # noqa: RUF012
    appended: dict[str, str] = {}  # noqa: RUF012
    left_out: tuple[str, ...] = ()

    def function(self, operator: Operator) -> str:
        """The source that calls an operator."""
        head = f"{self.head.strip()}\n{operator.imports.strip()}\n"
        return (
            f"{head}\n\ndef {operator.name}({operator.parameters}):\n    return {operator.call}\n"
        )

    def reference(self, operator: Operator) -> str | None:
        """The source of the reference; none where a task of ours is the reference."""
        if not operator.by:
            return None
        used = [text.strip() for name, text in self.formulas.items() if f"{name}(" in operator.by]
        function = f"def {operator.name}({operator.parameters}):\n    return {operator.by}"
        inputs = f"def inputs():\n{operator.inputs}"
        parts = ["import torch\nimport torch.nn.functional as F", *used, function, inputs]
        return "\n\n\n".join(parts) + "\n"
