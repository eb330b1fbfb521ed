"""Render `audit`."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from kerneltruth.analysis.results import TORCH_ONLY
from kerneltruth.documents.runs import AuditDocument, AuditKernel
from kerneltruth.report.figures import several

SHORT = {
    "kernelbench": "KB",
    "kernelbench-v0": "KBv0",
    "kernelbench-verified": "KBver",
    "kernelbenchx": "KBX",
    "tritonbench": "TB",
    "backendbench": "BB",
    "flashinfer-bench": "FIB",
    "robust-kbench": "RKB",
    "gpuemu": "gpuemu",
    "one-shape": "1shape",
}
# In narrower terminals the table has fewer columns.
ROOM_FOR_CHECKS = 120
ROOM_FOR_CASES = 72
MARKS = {"pass": "ok", "fail": "no", "error": "err"}


def audit_view(document: AuditDocument) -> RenderableType:
    """Return the verdict table, then the counts."""
    kernels = document.kernels
    checks = [c for c in document.summary.illusions if any(c in k.peer_checks for k in kernels)]
    return Group(_VerdictTable(kernels, checks), *_counts(document, checks))


class _VerdictTable:
    def __init__(self, kernels: Sequence[AuditKernel], checks: list[str]) -> None:
        self._kernels = kernels
        self._checks = checks

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rich calls this with the width there is."""
        each_check = options.max_width >= ROOM_FOR_CHECKS
        smallest = options.max_width >= ROOM_FOR_CASES
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("kernel", overflow="fold")
        table.add_column("verdict", overflow="fold")
        table.add_column("cases", justify="right")
        for check in self._checks if each_check else ():
            table.add_column(SHORT.get(check, check), no_wrap=True)
        if self._checks and not each_check:
            table.add_column("passed by", no_wrap=True)
        if smallest:
            table.add_column("smallest failing case", overflow="fold")
        for role in ("bug", "control"):
            for kernel in (k for k in self._kernels if k.role == role):
                marks = self._marks(kernel) if each_check else self._passed_by(kernel)
                case = [kernel.minimal_summary or ""] if smallest else []
                table.add_row(*_verdict(kernel), *marks, *case)
            table.add_section()
        yield table

    def _marks(self, kernel: AuditKernel) -> list[RenderableType]:
        fooled = kernel.illusion_for
        return [
            Text(MARKS.get(kernel.peer_checks.get(c, ""), ""), "yellow" if c in fooled else "")
            for c in self._checks
        ]

    def _passed_by(self, kernel: AuditKernel) -> list[RenderableType]:
        if not self._checks:
            return []
        passed = sum(kernel.peer_checks.get(c) == "pass" for c in self._checks)
        return [Text(f"{passed} of {len(self._checks)}", "yellow" if kernel.illusion_for else "")]


def _verdict(kernel: AuditKernel) -> list[RenderableType]:
    verdict = kernel.verdict + (f" {kernel.kind}" if kernel.kind else "")
    if kernel.hazards:
        verdict += f", {several(len(kernel.hazards), 'hazard')}"
    if kernel.torch_only:
        verdict += f", {TORCH_ONLY}"
    elif kernel.kernel is not None and kernel.kernel.own_launches == 0:
        verdict += ", no kernel"
    right = kernel.caught if kernel.role == "bug" else kernel.passed and not kernel.hazards
    style = "green" if right else "bold red"
    return [kernel.name, Text(verdict, style=style), str(kernel.cases)]


def _counts(document: AuditDocument, checks: list[str]) -> list[RenderableType]:
    summary = document.summary
    lines = [
        f"controls clean  {summary.controls_clean} of {summary.controls}",
        f"bugs caught     {summary.bugs_caught} of {summary.bugs}",
    ]
    if checks:
        lines.append("wrong kernels that a peer check passes (measured in this run):")
        lines += [f"  {check:<21}{summary.illusions[check]} of {summary.bugs}" for check in checks]
    for name, count in sorted(document.notes.items()):
        lines.append(f"{count} {name}")
    lines.append(
        f"{summary.cases} cases in {summary.seconds:.1f} s "
        f"({summary.cases_per_second:.1f}/s) on {summary.device}"
    )
    lines.append(f"run: {document.run}")
    return [Text(line) for line in lines]
