"""The JSON of `tasks` and `doctor`."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from kerneltruth.documents.case import AttributeValue
from kerneltruth.documents.contracts import ContractText
from kerneltruth.documents.model import SCHEMA, Model, Number, Stored


class TaskDim(Model, frozen=True, kw_only=True):
    """A symbolic dim: its role, and the sizes that the task allows."""

    role: str
    low: int
    high: int | None


class TaskOutput(Model, frozen=True, kw_only=True):
    """An output, and how it is compared."""

    name: str
    dtype: str
    compare: str
    when: str | None


class PromiseFacts(Model, frozen=True, kw_only=True):
    """One promise of a task, and the sentence of its prompt that makes it."""

    promise: str
    sentence: str


class ObligationFacts(Model, frozen=True, kw_only=True):
    """An obligation of a task: whether it decides, and why.

    `reason` says why it decides, or does not, where no sentence does.
    """

    decisive: bool
    promised: bool
    promises: tuple[PromiseFacts, ...] = ()
    reason: str | None = None


class ContractFacts(ContractText, frozen=True, kw_only=True):
    """How a contract treats a task's obligations, by name."""

    obligations: dict[str, ObligationFacts]


class TaskFacts(Model, frozen=True, kw_only=True):
    """One task; `unrefereeable` says why no candidate can be judged on it.

    `criterion` says what puts a task into its category; null for categories of other suites.
    `contract` is there where one task is shown.
    """

    key: str
    name: str
    entry: str
    category: str
    criterion: str | None
    suite: str
    signature: str
    dtypes: tuple[str, ...]
    extended_dtypes: tuple[str, ...]
    promises: tuple[str, ...]
    not_tried: dict[str, str]
    dims: dict[str, TaskDim]
    attributes: dict[str, tuple[AttributeValue, ...]]
    constraints: tuple[str, ...]
    outputs: tuple[TaskOutput, ...]
    flops: str | None
    perf: tuple[dict[str, AttributeValue], ...]
    description: str
    unrefereeable: str | None
    contract: ContractFacts | UnsetType = UNSET


class TasksDocument(Model, frozen=True, kw_only=True):
    """`tasks --json`.

    Attributes:
        declaration: the Python file that `--from` writes.
    """

    schema: Literal[1] = 1
    tasks: tuple[TaskFacts, ...]
    declaration: str | UnsetType = UNSET


class DeviceFacts(Model, frozen=True, kw_only=True):
    """A device, and what runs on it."""

    device: str
    name: str
    runs: str


class Isolation(Model, frozen=True, kw_only=True):
    """The level of isolation that candidates get, what it does, and what it leaves open."""

    level: str
    in_force: tuple[str, ...]
    limited_by: str
    landlock_abi: int | None
    user_namespaces: bool


class Missing(Model, frozen=True, kw_only=True):
    """What is missing, and the command that adds it."""

    what: str
    add: str


class DoctorDocument(Model, frozen=True, kw_only=True):
    """`doctor --json`."""

    schema: Literal[1] = 1
    python: str
    executable: str
    system: str
    cores: int | None
    devices: tuple[DeviceFacts, ...]
    driver: str | None
    libraries: dict[str, str | None]
    compile_targets: tuple[str, ...]
    tools: dict[str, str | None]
    isolation: Isolation
    missing: tuple[Missing, ...]


# Numbers of a reference that a run records.
REFERENCE_NUMBERS = ("lines", "operators", "parameters", "flops", "maintainability")


class ReferenceRecord(Stored, frozen=True, kw_only=True):
    """A run's record of a task: numbers of its reference, and the dtypes that are tried."""

    lines: int | UnsetType = UNSET
    operators: int | UnsetType = UNSET
    parameters: int | UnsetType = UNSET
    flops: Number | UnsetType = UNSET
    maintainability: Number | UnsetType = UNSET
    dtypes: tuple[str, ...] = ()

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers that are known, by name."""
        named = {n: getattr(self, n) for n in REFERENCE_NUMBERS}
        return {name: float(value) for name, value in named.items() if value is not UNSET}


class RunTasks(Stored, frozen=True, kw_only=True):
    """The tasks that a run judges on: `tasks.json`."""

    schema: int = SCHEMA
    tasks: dict[str, ReferenceRecord]
