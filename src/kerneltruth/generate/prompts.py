"""Fill prompts: versioned templates, filled from the public part of a task's declaration.

A version is a folder of texts with `$names` (`string.Template`). A generation's identity includes
its prompts, so that answers to different prompts are never mixed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from kerneltruth.documents.model import content_hash
from kerneltruth.errors import UserError
from kerneltruth.generate.review import Review, ShapeTiming

VERSION = "1"
# In which kernels may be asked for, as prompts name them.
LANGUAGES: Mapping[str, str] = {"triton": "Triton", "cuda": "CUDA C++", "gluon": "Gluon"}
_GAPS = re.compile(r"\n(?:[ \t]*\n){2,}")
_FACTS = (
    *("name", "entry", "description", "signature", "arguments", "returns", "dtypes", "sizes"),
    "timed",
)
# Names that every template may use: the language, and how its kernels are written.
_COMMON = frozenset({"language", "how"})
# Each template with the other names that it may use.
_TEMPLATES: Mapping[str, frozenset[str]] = {
    "system": frozenset(),
    # How kernels of a language are written.
    "triton": frozenset(),
    "cuda": frozenset(),
    "gluon": frozenset(),
    "task": frozenset({*_FACTS, "example", "reference", "device", "shots"}),
    "problem": frozenset({"name", "description", "source", "device", "shots"}),
    "device": frozenset({"name", "facts"}),
    "shots": frozenset({"shots"}),
    "shot": frozenset({"name", "description", "signature", "source"}),
    "example": frozenset({"case", "inputs", "outputs"}),
    "reference": frozenset({"source"}),
    "broken": frozenset({"outcome", "detail", "obligations", "counterexample", "worse", "request"}),
    "wrong": frozenset(
        {"explanation", "detail", "obligations", "counterexample", "passed", "worse", "request"}
    ),
    "slow": frozenset({"timings", "facts", "advice", "worse", "request"}),
    "worse": frozenset({"outcome"}),
    # What a request for the next answer of `refine` ends with.
    "correct": frozenset(),
    "faster": frozenset(),
    # What `geak` asks to be diagnosed, and then to be written.
    "diagnose": frozenset(),
    "analyze": frozenset(),
    "apply": frozenset(),
    "optimize": frozenset({"others", "stuck"}),
    "version": frozenset({"source", "timings", "facts", "diagnosis"}),
    "stuck": frozenset({"failed"}),
}
_BROKEN = {
    "compile_error": "does not compile or load",
    "runtime_error": "raises an error",
    "crash": "kills its process",
    "timeout": "does not end in time",
}
_ADVICE = {
    "memory": "It is limited by memory traffic: read and write every element once, in wide "
    "contiguous accesses, and fuse what can be fused.",
    "compute": "It is limited by arithmetic: use matrix units where there are products, larger "
    "tiles, and no work that is done twice.",
    "launch": "The time is that of launching: use fewer kernels, and do less in Python per call.",
    "latency": "It waits more than it works: use more programs, or more work per program, so that "
    "the device is filled.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """The texts of one version.

    Attributes:
        version: its number, or the folder of a user's own.
        language: of the kernels that are asked for.
    """

    version: str
    texts: Mapping[str, str]
    language: str = "triton"

    def __post_init__(self) -> None:
        for name, known in _TEMPLATES.items():
            template = Template(self.texts[name])
            may_use = known | _COMMON
            strangers = set(template.get_identifiers()) - may_use
            if not template.is_valid() or strangers:
                what = f"unknown names {', '.join(sorted(strangers))}" if strangers else "a stray $"
                may = ", ".join(f"${n}" for n in sorted(may_use))
                raise UserError(f"template {name}.txt of {self.version}: {what}; it may use {may}")

    @property
    def sha256(self) -> str:
        """Return the hash of all texts."""
        return content_hash(dict(self.texts))

    def fill(self, template: str, /, **words: str) -> str:
        """Fill in the names of a template."""
        own = {"language": LANGUAGES[self.language], "how": self.texts[self.language].strip()}
        text = Template(self.texts[template]).substitute(own | words).strip()
        # An empty value must not leave a gap.
        return _GAPS.sub("\n\n", text)

    def system(self) -> str:
        """Return the system message."""
        return self.fill("system")

    def feedback(self, review: Review, *, worse: Review | None) -> str:
        """Return the feedback on an answer.

        The review is of the best answer so far, which the model sees; `worse` of a later answer
        that is no better, if there was one.
        """
        request = self.fill("faster" if review.is_right else "correct")
        return self._reviewed(review, worse=worse, request=request)

    def to_diagnose(self, review: Review) -> str:
        """Return the feedback on an answer that is to be diagnosed in words."""
        request = self.fill("analyze" if review.is_right else "diagnose")
        return self._reviewed(review, worse=None, request=request)

    def optimize(self, others: Sequence[str], *, failed: int) -> str:
        """Ask for a faster kernel than `others` and the one in sight.

        `failed` counts the attempts since the last right kernel.
        """
        stuck = self.fill("stuck", failed=str(failed)) if failed else ""
        return self.fill("optimize", others="\n\n".join(others), stuck=stuck)

    def version_of(self, review: Review, source: str, diagnosis: str) -> str:
        """Return an earlier right kernel in words."""
        return self.fill(
            "version",
            source=source.strip(),
            timings=_timings(review),
            facts=_measured(review.facts),
            diagnosis=diagnosis.strip(),
        )

    def _reviewed(self, review: Review, *, worse: Review | None, request: str) -> str:
        note = "" if worse is None else self.fill("worse", outcome=_in_short(worse))
        if review.is_right:
            advice = " ".join(
                dict.fromkeys(_ADVICE.get(t.bound_by or "", "") for t in review.timings)
            )
            return self.fill(
                "slow",
                timings=_timings(review),
                facts=_measured(review.facts),
                advice=advice.strip(),
                worse=note,
                request=request,
            )
        if review.outcome in _BROKEN:
            return self.fill(
                "broken",
                outcome=_BROKEN[review.outcome],
                detail=review.detail or review.explanation or "It does not say why.",
                obligations=_listed(review.broken),
                counterexample=_labelled(review.counterexample),
                worse=note,
                request=request,
            )
        return self.fill(
            "wrong",
            explanation=review.explanation or review.detail,
            detail=review.detail,
            obligations=_listed(review.broken),
            counterexample=_labelled(review.counterexample),
            passed=str(review.passed),
            worse=note,
            request=request,
        )


def load_prompts(folder: Path | None = None, language: str = "triton") -> Prompts:
    """Read the shipped prompts, or a user's own from a folder with the same file names.

    Raises:
        UserError: a template is missing, or uses an unknown name; or the language is unknown.
    """
    if language not in LANGUAGES:
        raise UserError(f"--language {language!r}: must be one of {', '.join(LANGUAGES)}")
    root = folder or files("kerneltruth.generate").joinpath("templates", VERSION)
    texts = {}
    for name in _TEMPLATES:
        try:
            texts[name] = root.joinpath(f"{name}.txt").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            need = ", ".join(f"{n}.txt" for n in _TEMPLATES)
            raise UserError(
                f"--templates {root}: cannot read {name}.txt: {reason}; the folder needs {need}"
            ) from error
    return Prompts(
        version=VERSION if folder is None else str(folder), texts=texts, language=language
    )


def _labelled(counterexample: str) -> str:
    return f"The smallest input found that shows it:\n\n{counterexample}" if counterexample else ""


def _measured(facts: Sequence[str]) -> str:
    return "\n".join(("What was measured of it:", "", *(f"- {f}" for f in facts))) if facts else ""


def _listed(broken: Sequence[str]) -> str:
    return "\n".join(("What it does not keep, the worst first:", "", *broken)) if broken else ""


def _in_short(review: Review) -> str:
    if review.is_right:
        return "is right, but no faster"
    return _BROKEN.get(review.outcome, "gives a wrong result") + (
        f" ({review.detail})" if review.detail else ""
    )


def _timings(review: Review) -> str:
    return "\n".join(_timing_line(t) for t in review.timings)


def _timing_line(timing: ShapeTiming) -> str:
    word = "about as fast as"
    if timing.low > 1:
        word = f"{timing.ratio:.2f} times as fast as"
    elif timing.high < 1:
        word = f"{1 / timing.ratio:.2f} times slower than" if timing.ratio > 0 else "slower than"
    share = "" if timing.efficiency is None else f"; {timing.efficiency:.0%} of what is possible"
    bound = "" if timing.bound_by is None else f"; bound by {timing.bound_by}"
    return (
        f"- {timing.shape}: {timing.candidate_us:.1f} us, PyTorch takes {timing.eager_us:.1f} us "
        f"({word} it{share}{bound})"
    )
