"""What a contract makes of a task: which obligations decide, and the sentences that say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from kerneltruth.cases.promised import Promise, promises_of
from kerneltruth.documents.facts import ContractFacts, ObligationFacts, PromiseFacts
from kerneltruth.documents.records import Obligation
from kerneltruth.oracle.contract import Contract
from kerneltruth.oracle.obligations import Departure, obligations_of
from kerneltruth.tasks.model import BACKWARD, CALL
from kerneltruth.tasks.sentences import sentence_of
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
NOT_REQUIRED = "only with --require-kernel: no suite's own check demands it"


def contract_of(task: Task, contract: Contract) -> ContractFacts:
    """Return which obligations of a task decide by a contract, with the sentences that say so."""
    sentences = _by_obligation(task)
    found = {d.key: _facts(d, contract, sentences.get(d.key, ())) for d in obligations_of(task)}
    kernel = ObligationFacts(decisive=False, promised=False, reason=NOT_REQUIRED)
    return ContractFacts(
        **structs.asdict(contract.text),
        obligations={**found, "kernel": kernel},
    )


def sentence(task: Task, promise: Promise) -> str | None:
    """Return the sentence of the task's prompt that makes a promise."""
    return sentence_of(task, promise.kind, promise.name, promise.value)


def _facts(
    departure: Departure, contract: Contract, promises: Iterable[PromiseFacts]
) -> ObligationFacts:
    decisive = contract.decides(departure)
    promised = departure.promised
    unpromised = TAKEN if decisive else UNPROMISED
    return ObligationFacts(
        decisive=decisive,
        promised=promised,
        promises=tuple(promises) if promised else (),
        reason=CHOSEN.get(departure.obligation) if promised else unpromised,
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
            yield _obligation_of(promise), _name_of(promise), said


def _obligation_of(promise: Promise) -> str:
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
        case "attribute" if promise.name.startswith("_") and promise.name != CALL:
            return "shapes"
        case _:
            return "attributes"


def _name_of(promise: Promise) -> str:
    match promise.kind:
        case "attribute" if promise.name == CALL:
            return str(promise.value)
        case "attribute":
            return promise.name.removeprefix("_")
        case "absent":
            return f"{promise.name}=None"
        case kind:
            return f"{kind} {promise.name}".strip()
