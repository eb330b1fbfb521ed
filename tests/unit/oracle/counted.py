"""Cases of relu with given verdicts, counted; a function says which simpler cases fail alike."""

from dataclasses import dataclass, field

from msgspec.structs import replace
from scripted import RELU

from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.published import published_case
from kerneltruth.documents.records import Judgement, Mismatch
from kerneltruth.documents.verdict import Failed, RuntimeFault
from kerneltruth.oracle.blame import Blame
from kerneltruth.oracle.case_status import case_status
from kerneltruth.oracle.contract import CONTRACTS
from kerneltruth.oracle.counts_by_obligation import CountsByObligation
from kerneltruth.oracle.kinds import Kinds
from kerneltruth.oracle.profile import profile_of

PUBLISHED = published_case(RELU, seed=0, device="cpu")
KINDS = Kinds(RELU, PUBLISHED, "cpu")
STRIDED = replace(PUBLISHED, layout="strided", domain="extended")
TIES = replace(PUBLISHED, recipe="ties")
BOTH = replace(STRIDED, recipe="ties")
HALF = replace(PUBLISHED, dtype="float16")
LARGER = replace(PUBLISHED, dims=(("M", 7), ("N", 9)))
WRONG = Failed(kind="value", detail="wrong")
REFUSED = RuntimeFault(error="ValueError", detail="not contiguous")
DOUBLE = Mismatch(kind="dtype", output="out", detail="float64")


@dataclass
class Candidate:
    """Which cases fail, and those that it was asked about."""

    fails: object = lambda case: False
    cases: list = field(default_factory=list)

    def __call__(self, judgement, case):
        self.cases.append(case)
        return self.fails(case)


def is_strided(case):
    return case.layout == "strided"


def counts_of(published=PUBLISHED, contract="core"):
    """Counts before the first case."""
    return CountsByObligation(
        task=RELU, published=published, contract=CONTRACTS[contract], kinds=KINDS
    )


def counted(*judged, fails=lambda case: False, held=lambda case: False, published=PUBLISHED):
    """The blame after these cases and verdicts, with the counts."""
    blame = Blame(
        counts=counts_of(published), fails=Candidate(fails), held=lambda like, case: held(case)
    )
    for case, verdict in judged:
        add(blame, Judgement(case=case, verdict=verdict))
    return blame


def add(blame, judgement):
    """Count a judgement as the case loop does; the most ordinary case that fails alike."""
    failing = case_status(judgement.verdict) in ("broken", "refused")
    case = judgement.case
    simplest = blame.simplest(judgement, materialize(RELU, case)) if failing else case
    blame.add(judgement, case, simplest)
    return simplest


def entry(blame, key):
    """What the profile says of an obligation."""
    return profile_of(blame.counts)[key]


def status(blame, key):
    return entry(blame, key).status


def keys_with(blame, status):
    """The obligations that end so."""
    return {key for key, e in profile_of(blame.counts).items() if e.status == status}
