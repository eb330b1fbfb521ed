"""What a suite's benchmark promises and demands, and which obligations that lets decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import structs

from kerneltruth.cases.promised import Promise, promises_of
from kerneltruth.documents.contracts import TEXTS, ContractName, ContractText
from kerneltruth.documents.facts import ContractFacts, ObligationFacts, PromiseFacts
from kerneltruth.documents.records import OBLIGATIONS, Obligation
from kerneltruth.errors import DeclarationError
from kerneltruth.oracle.contract import contract_with
from kerneltruth.oracle.obligations import Departure, obligation_of, obligations_of
from kerneltruth.tasks.model import BACKWARD, CALL
from kerneltruth.tasks.sentences import sentence_of, subject_of
from kerneltruth.tasks.spec import Task

# Why these decide where no sentence of a prompt says so.
CHOSEN: Mapping[Obligation, str] = {
    "published": "the benchmark's own inputs",
    "shapes": "this project's choice: a kernel for one size is what `published` is for",
    "values": "this project's choice: a kernel may not depend on how its inputs are drawn",
    "interface": "a result has the form that the task gives",
    "memory": "a call touches what it is given, and nothing else",
    "repeatable": "equal calls give equal results",
}
UNPROMISED = "no sentence of the prompt promises it"
TAKEN = "PyTorch's operator takes it"
NOT_REQUIRED = "only with --require-kernel: no rule of the benchmark demands it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the benchmark of a suite promises and demands, and what says so.

    Attributes:
        check: what its own check asks, in words: that is the contract `published`.
        checked_by: where that check is stated.
        prompt: where the sentences are by which the contract `core` decides.
        demands: obligations that its rules demand whatever its prompts say, each with the rule and
            its source. They decide under the contracts `published` and `core`.

    Examples:
        >>> kt.Terms(demands={"kernel": "rule 3 of the contest"}).demanded("core")
        ('kernel',)
    """

    check: str = TEXTS["published"].asks
    checked_by: str = TEXTS["published"].source
    prompt: str = TEXTS["core"].source
    demands: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.demands:
            if name not in OBLIGATIONS:
                raise DeclarationError(
                    f"{name!r} is no obligation; demand one of {', '.join(OBLIGATIONS)}"
                )

    def demanded(self, contract: ContractName) -> tuple[str, ...]:
        """Return what decides by a contract besides its own obligations.

        Examples:
            >>> kt.Terms(demands={"kernel": "rule 3"}).demanded("torch")
            ()
        """
        return () if contract == "torch" else tuple(self.demands)

    def text(self, contract: ContractName) -> ContractText:
        """Return a contract in words.

        Examples:
            >>> kt.Terms(prompt="README.md").text("core").source
            'README.md'
        """
        said = TEXTS[contract]
        if contract == "published":
            said = structs.replace(said, asks=self.check, source=self.checked_by)
        return structs.replace(said, source=self.prompt) if contract == "core" else said


def contract_of(task: Task, contract: ContractName, terms: Terms) -> ContractFacts:
    """Return which obligations of a task decide by a contract, with the sentences that say so."""
    sentences = _by_obligation(task)
    demands = {name: terms.demands[name] for name in terms.demanded(contract)}
    decides = contract_with(contract, demands).decides
    found = {
        d.key: _facts(d, decides(d), sentences.get(d.key, ()), demands.get(d.obligation))
        for d in obligations_of(task)
    }
    required = "kernel" in demands
    kernel = ObligationFacts(
        decisive=required, promised=required, reason=demands.get("kernel", NOT_REQUIRED)
    )
    return ContractFacts(
        **structs.asdict(terms.text(contract)),
        obligations={**found, "kernel": kernel},
    )


def sentence(task: Task, promise: Promise) -> str | None:
    """Return the sentence of the task's prompt that makes a promise."""
    return sentence_of(task, promise.kind, promise.name, promise.value)


def _facts(
    departure: Departure, decisive: bool, promises: Iterable[PromiseFacts], rule: str | None
) -> ObligationFacts:
    promised = departure.promised
    unpromised = TAKEN if decisive else UNPROMISED
    return ObligationFacts(
        decisive=decisive,
        promised=promised,
        promises=tuple(promises) if promised else (),
        reason=rule or (CHOSEN.get(departure.obligation) if promised else unpromised),
    )


def _by_obligation(task: Task) -> dict[str, list[PromiseFacts]]:
    """The promises of a task with their sentences, by the obligation that they belong to."""
    found: dict[str, list[PromiseFacts]] = {}
    for key, name, said in _said(task):
        known = found.setdefault(key, [])
        if name not in {promise.promise for promise in known}:
            known.append(PromiseFacts(promise=name, sentence=said))
    return found


def _said(task: Task) -> Iterator[tuple[str, str, str]]:
    usual = {a.name: a.default for a in task.attributes}
    for promise in promises_of(task):
        said = sentence(task, promise)
        default = promise.kind == "attribute" and repr(promise.value) == repr(usual[promise.name])
        if said is not None and not default:
            yield _obligation_of(task, promise), _name_of(task, promise), said


def _obligation_of(task: Task, promise: Promise) -> str:
    match promise.kind:
        case "dtype":
            return f"dtypes.{promise.name}"
        case "layout":
            return "layouts"
        case "recipe":
            return "values"
        case "empty":
            return "empty"
        case "attribute" if promise.name == CALL and promise.value == BACKWARD:
            return "gradients"
        case "attribute":
            return obligation_of(task, promise.name, promise.value)
        case _:
            return "attributes"


def _name_of(task: Task, promise: Promise) -> str:
    match promise.kind:
        case "attribute" if promise.name == CALL:
            return str(promise.value)
        case "attribute":
            subject = subject_of(task, promise.kind, promise.name, promise.value)
            return subject.removeprefix("argument ").removeprefix("_")
        case "absent":
            return f"{promise.name}=None"
        case kind:
            return f"{kind} {promise.name}".strip()
