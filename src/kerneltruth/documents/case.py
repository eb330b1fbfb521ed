"""A case: pure data that fixes one test. Tensors are a projection of it: `cases.materialize`."""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from msgspec.structs import force_setattr, replace

from kerneltruth.documents.model import NON_FINITE, Model, Number
from kerneltruth.errors import InternalError

Domain = Literal["core", "extended"]
# Numbers in a tuple are sizes, or factors.
AttributeValue = None | bool | int | float | str | tuple[Number, ...]
# The hidden attribute that selects the sizes of a reference's cases, by their names.
SIZES = "_sizes"
# The names of a model's weights, which are absent all together.
_WEIGHTS = "weights."


class Case(Model, frozen=True, kw_only=True):
    """One test of a task.

    `strategy` and `domain` say where the case came from; they are not part of its identity, since
    they change neither the inputs nor the expected output.

    Attributes:
        task: the task's key.
        dims: (symbol, size) pairs in the task's order.
        attributes: (name, value) pairs in the task's order.
        dtype: working dtype, such as "float32".
        layout: how inputs lie in memory, one of `layouts.LAYOUTS`.
        recipe: how values are drawn, one of `recipes.RECIPES`.
        seed: 64-bit seed; every random stream of the case derives from it.
        absent: optional tensors passed as None, and a model's weights if it has its own.
        literals: (input name, elements in row-major order) that replace the recipe's values.
    """

    task: str
    dims: tuple[tuple[str, int], ...]
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    dtype: str = "float32"
    layout: str = "contiguous"
    recipe: str = "uniform"
    seed: int = 0
    absent: tuple[str, ...] = ()
    literals: tuple[tuple[str, tuple[Number, ...]], ...] = ()
    strategy: str = "default"
    domain: Domain = "core"

    def __post_init__(self) -> None:
        if any(isinstance(v, str) and v in NON_FINITE for _, v in self.attributes):
            # JSON has no such numbers, and an attribute may be text.
            read = tuple((n, _read(value)) for n, value in self.attributes)
            force_setattr(self, "attributes", read)
        if not 0 <= self.seed < 2**64:
            raise InternalError(f"seed {self.seed} is not in [0, 2**64)")
        if any(n < 0 for _, n in self.dims):
            raise InternalError(f"negative dim in {self.dims}")
        if self.domain not in ("core", "extended"):
            raise InternalError(f"domain {self.domain!r}")

    @property
    def sizes(self) -> dict[str, int]:
        """Dims as a dict."""
        return dict(self.dims)

    @property
    def settings(self) -> dict[str, AttributeValue]:
        """Attributes as a dict."""
        return dict(self.attributes)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Optional tensors passed as None."""
        return tuple(n for n in self.absent if not n.startswith(_WEIGHTS))

    @property
    def identity(self) -> str:
        """Hash of everything that fixes inputs and expected output: 32 hex digits."""
        content: dict[str, object] = {
            "task": self.task,
            "dims": self.dims,
            "attributes": self.attributes,
            "dtype": self.dtype,
            "layout": self.layout,
            "recipe": self.recipe,
            "seed": self.seed,
            "absent": self.absent,
            "literals": [(n, [float(v).hex() for v in vs]) for n, vs in self.literals],
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def with_dims(self, **sizes: int) -> Case:
        """Return the case at other sizes, without literals, which belong to the old ones."""
        dims = tuple((s, sizes.get(s, n)) for s, n in self.dims)
        return replace(self, dims=dims, literals=())

    def with_attributes(self, **values: AttributeValue) -> Case:
        """Return the case with other attribute values."""
        return replace(self, attributes=tuple((n, values.get(n, v)) for n, v in self.attributes))

    def summary(self) -> str:
        """Return one line for people: `M=3 N=257 bfloat16 transposed ties`."""
        words = [f"{s}={n}" for s, n in self.dims]
        words += [setting_text(n, v) for n, v in self.attributes]
        words += [f"{n}=None" for n in self.left_out]
        words += ["own weights"] if len(self.left_out) < len(self.absent) else []
        words += [self.dtype]
        if self.layout != "contiguous":
            words.append(self.layout)
        words.append("literal values" if self.literals else self.recipe)
        return " ".join(words)


def setting_text(name: str, value: object) -> str:
    """Return an attribute's value for people: `eps=1e-05`; sizes name themselves: `rows=2 n=31`."""
    return str(value) if name == SIZES else f"{name}={value}"


def _read(value: AttributeValue) -> AttributeValue:
    return NON_FINITE.get(value, value) if isinstance(value, str) else value
