"""The result of `check`: frozen views of the documents of schema 2."""

from __future__ import annotations

from dataclasses import dataclass, field

from kerneltruth.documents.case import Case
from kerneltruth.documents.checks import CheckDocument, ObligationDocument
from kerneltruth.documents.model import dumps
from kerneltruth.documents.stored import Finding
from kerneltruth.documents.verdict import NOT_JUDGED, FailKind, VerdictWord, said_of
from kerneltruth.library.candidates import Source
from kerneltruth.library.messages import Checked, Timed
from kerneltruth.library.wording import as_argument


@dataclass(frozen=True, slots=True)
class FoundFailure:
    """A case that the kernel gets wrong, with all that replaying it needs.

    Attributes:
        document: the whole finding, as a run stores it.
        script: a Python program that shows the failure with torch and triton alone; empty where it
            is not the finding that decides, or where nothing was explained.

    Examples:
        >>> found = kt.check(clipped, task="relu", device="cpu", seed=1).findings[0]
        >>> found.kind, found.minimal.summary()
        ('value', 'M=1 N=1 float32 zeros')
        >>> found.case.sizes, found.case.dtype
        ({'M': ..., 'N': ...}, 'float32')
        >>> "def relu" in found.script
        True
    """

    document: Finding = field(repr=False)
    script: str = field(default="", repr=False)

    @property
    def id(self) -> str:
        """The name of the finding: the task and a hash of kernel and case."""
        return self.document.id

    @property
    def case(self) -> Case:
        """The first case that failed: sizes, attributes, dtype, layout, values and seed."""
        return self.document.case

    @property
    def minimal(self) -> Case | None:
        """The smallest failing case; None if none was looked for."""
        return self.document.minimal

    @property
    def kind(self) -> FailKind | None:
        """What is wrong, such as `value` or `out_of_bounds`; None if nothing came back."""
        return getattr(self.document.verdict, "kind", None)

    @property
    def detail(self) -> str:
        """The worst element: where it is, what was expected and what came; or why none came."""
        return as_argument(said_of(self.document.verdict))

    @property
    def obligations(self) -> tuple[str, ...]:
        """The obligations that it breaks, such as `shapes` or `dtypes.float16`."""
        return self.document.obligations

    @property
    def explanation(self) -> str:
        """Where and how the output is wrong, in one or two sentences."""
        return as_argument(self.document.explanation)

    @property
    def shown(self) -> str:
        """The smallest case in a line, with expected and returned values, if it is short enough."""
        return self.document.shown

    def to_json(self) -> str:
        """Return the finding as JSON, as `kerneltruth replay` reads it from a run."""
        return dumps(self.document, indent=2)

    def __repr__(self) -> str:
        return f"FoundFailure(id={self.id!r}, obligations={self.obligations!r})"


@dataclass(frozen=True, slots=True)
class Report:
    """The judgement of one candidate.

    Attributes:
        document: everything, as `kerneltruth check --json` prints it (schema 2).
        findings: what the kernel breaks, the finding that decides first.
        name: of the candidate: its file, its function, or as the caller named it.
        index: its place among the candidates of `check_many`, from 0.

    Examples:
        >>> report = kt.check(clipped, task="relu", device="cpu", seed=1)
        >>> report.verdict, report.kind, report.passed
        ('fail', 'value', False)
        >>> report.profile["published"].status
        'broken'
        >>> report.score < 0.9
        True
    """

    document: CheckDocument
    findings: tuple[FoundFailure, ...] = ()
    name: str = ""
    index: int = 0

    @property
    def passed(self) -> bool:
        """Whether the kernel holds all that its contract asks."""
        return self.document.passed

    @property
    def verdict(self) -> VerdictWord:
        """The verdict in a word: `pass`, `fail`, `compile_error`, `runtime_error`, `crash`, ..."""
        return self.document.verdict

    @property
    def judged(self) -> bool:
        """Whether the kernel was judged at all; not so if the machine or the task prevents it."""
        return self.verdict not in NOT_JUDGED

    @property
    def kind(self) -> FailKind | None:
        """What a `fail` gets wrong, such as `value`, `shape` or `out_of_bounds`; else None."""
        return self.document.kind

    @property
    def detail(self) -> str:
        """The reason of the verdict: the worst element, or the error of the kernel."""
        return as_argument(self.document.detail)

    @property
    def explanation(self) -> str:
        """Where and how the output is wrong, in one or two sentences."""
        return as_argument(self.document.explanation)

    @property
    def profile(self) -> dict[str, ObligationDocument]:
        """The status of each obligation: held, broken, refused, not_tried or not_applicable."""
        return self.document.profile

    @property
    def hazards(self) -> tuple[str, ...]:
        """Silent errors beyond the contract, a line for each."""
        return self.document.hazards

    @property
    def score(self) -> float | None:
        """One number from 0 to 1 for the profile; a kernel that passes has at least 0.9."""
        return self.document.score

    @property
    def task(self) -> str:
        """The task with its suite, such as `core/softmax`."""
        return self.document.task

    @property
    def cases(self) -> int:
        """How many cases were judged."""
        return self.document.cases

    @property
    def failed(self) -> int:
        """How many of them break or refuse what the contract asks."""
        return self.document.failed

    @property
    def seed(self) -> int:
        """The seed of all cases; the same seed gives the same cases anywhere."""
        return self.document.seed

    @property
    def seconds(self) -> float:
        """Seconds that judging took in the server."""
        return self.document.seconds

    def to_json(self) -> str:
        """Return the document of `kerneltruth check --json`."""
        return dumps(self.document)

    def __repr__(self) -> str:
        said = f", kind={self.kind!r}" if self.kind else ""
        return (
            f"Report(name={self.name!r}, task={self.task!r}, verdict={self.verdict!r}{said}, "
            f"cases={self.cases}, failed={self.failed}, score={self.score})"
        )

    def __str__(self) -> str:
        """Return the verdict and its evidence in a few lines."""
        return "\n".join(_lines(self))


def _lines(report: Report) -> list[str]:
    document = report.document
    kind = f" ({report.kind})" if report.kind else ""
    plain = ", torch-only" if document.torch_only else ""
    lines = [f"{report.name}: {report.verdict}{kind} for {report.task or 'no task'}{plain}"]
    said = dict.fromkeys(s.strip() for s in (report.detail, report.explanation) if s.strip())
    lines += [f"  {line}" for text in said for line in text.splitlines()]
    if document.failing_summary:
        lines.append(f"  on {document.failing_summary}")
    if document.minimal_summary:
        lines.append(f"  smallest: {document.minimal_summary}")
    if document.minimal_shown:
        lines.append(f"  {document.minimal_shown}")
    broken = [k for k, e in report.profile.items() if e.status == "broken" and e.decisive]
    if broken:
        lines.append(f"  breaks {', '.join(broken)}")
    lines += [f"  hazard: {hazard}" for hazard in report.hazards]
    lines.append(f"  {report.cases} cases, {report.failed} failed, seed {report.seed}")
    return lines


def report_of(source: Source, answer: Checked | Timed, index: int = 0) -> Report:
    """Return the report of an answer.

    Args:
        source: of the candidate.
        answer: to a check.
        index: the place of the candidate among others.
    """
    assert isinstance(answer, Checked)
    deciding = answer.document.finding is not None
    findings = tuple(
        FoundFailure(document=finding, script=answer.script if deciding and not place else "")
        for place, finding in enumerate(answer.findings)
    )
    return Report(document=answer.document, findings=findings, name=source.name, index=index)
