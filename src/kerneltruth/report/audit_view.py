"""Views of `audit` and `compare`."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

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
MARKS = {"pass": "ok", "fail": "no", "error": "err"}


def audit_view(document: dict[str, Any]) -> RenderableType:
    """The verdict table, then the counts."""
    kernels = document["kernels"]
    checks = [c for c in SHORT if any(c in k["baselines"] for k in kernels)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("kernel", overflow="fold")
    table.add_column("verdict", overflow="fold")
    table.add_column("cases", justify="right")
    for check in checks:
        table.add_column(SHORT[check])
    table.add_column("smallest failing case", overflow="fold")
    for role in ("bug", "control"):
        for kernel in (k for k in kernels if k["role"] == role):
            table.add_row(*_cells(kernel, checks))
        table.add_section()
    return Group(table, *_counts(document, checks))


def _cells(kernel: dict[str, Any], checks: list[str]) -> list[RenderableType]:
    verdict = kernel["verdict"] + (f" {kernel['kind']}" if kernel["kind"] else "")
    right = (kernel["verdict"] == "pass") == (kernel["role"] == "control")
    cells: list[RenderableType] = [
        kernel["name"],
        Text(verdict, style="green" if right else "bold red"),
        str(kernel["cases"]),
    ]
    for check in checks:
        word = kernel["baselines"].get(check, "")
        fooled = check in kernel["illusion_for"]
        cells.append(Text(MARKS.get(word, ""), style="yellow" if fooled else ""))
    cells.append(kernel["minimal_summary"] or "")
    return cells


def _counts(document: dict[str, Any], checks: list[str]) -> list[RenderableType]:
    summary = document["summary"]
    lines = [
        f"controls clean  {summary['controls_clean']} of {summary['controls']}",
        f"bugs caught     {summary['bugs_caught']} of {summary['bugs']}",
    ]
    if checks:
        lines.append("wrong kernels that a check passes (measured in this run):")
        lines += [
            f"  {check:<21}{summary['illusions'][check]} of {summary['bugs']}" for check in checks
        ]
    for name, count in sorted(document["notes"].items()):
        lines.append(f"{count} {name}")
    lines.append(
        f"{summary['cases']} cases in {summary['seconds']:.1f} s "
        f"({summary['cases_per_second']:.1f}/s) on {summary['device']}"
    )
    lines.append(f"run: {document['run']}")
    return [Text(line) for line in lines]


def compare_view(document: dict[str, Any]) -> RenderableType:
    """Which kernels have other verdicts elsewhere."""
    lines = [f"{r['path']}: {r['device']}, kernels: {r['attempts']}" for r in document["runs"]]
    lines.append(f"same verdict: {document['same']} of {document['kernels']}")
    for kernel in document["differing"]:
        verdicts = ", ".join(f"{v}" for v in kernel["verdicts"])
        lines.append(f"  differs: {kernel['name']}: {verdicts}")
    for kernel in document["missing"]:
        lines.append(f"  missing: {kernel['name']} in {', '.join(kernel['absent'])}")
    return Text("\n".join(lines))
