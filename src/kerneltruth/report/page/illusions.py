"""The page's part on illusions: wrong kernels that peers' checks certify. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kerneltruth.analysis.groups import METHOD, Group
from kerneltruth.analysis.intervals import rate
from kerneltruth.analysis.study import CATEGORY
from kerneltruth.documents.estimates import RateRecord
from kerneltruth.documents.rates import IllusionRates, IllusionTables
from kerneltruth.report.page.cells import Cell, PageTable, column, row, share, table, whole
from kerneltruth.report.page.wording import count, label, row_label

_COLUMNS = (
    column("certified and wrong", hint="of what the check certifies"),
    column("wrong and certified", hint="of what the judge rejects"),
    column("rejected and right", hint="of what the check rejects"),
    column("not judged", hint="certified, and not judged here"),
)


def illusion_tables(found: IllusionTables) -> list[PageTable]:
    """Make a table by peer check, and two that cross these with methods and categories."""
    if not found.overall:
        return []
    rows = [row(label(r.check), _cells(r)) for r in found.overall]
    caption = (
        f"Each peer check: how much of what it certifies is wrong, of {count(found.attempts)} "
        "distinct kernels, every round of each answer among them."
    )
    checks = [r.check for r in found.overall]
    crossed = {each.by: each.rows for each in found.by}
    return [
        table("illusions-check", caption, [column("peer check", number=False), *_COLUMNS], rows),
        _crossed(crossed[METHOD], METHOD, "method", checks),
        _crossed(crossed[CATEGORY], CATEGORY, "category", checks),
    ]


def _crossed(
    found: Sequence[IllusionRates], by: Sequence[str], what: str, checks: Sequence[str]
) -> PageTable:
    groups: dict[Group, list[IllusionRates]] = {}
    for r in found:
        groups.setdefault(r.group(by), []).append(r)
    rows = [
        row(row_label(own[0], by), [share(_of(check, own)) for check in checks])
        for own in groups.values()
    ]
    columns = [column(what, number=False), *(column(label(check)) for check in checks)]
    caption = f"Certified and wrong, of what each peer check certifies, by {what}."
    return table(f"illusions-{what}", caption, columns, rows)


def _of(check: str, rows: Sequence[IllusionRates]) -> RateRecord:
    return next((r.illusions for r in rows if r.check == check), rate(0, 0))


def _cells(r: IllusionRates) -> list[Cell]:
    return [share(r.illusions), share(r.of_wrong), share(r.false_alarms), whole(r.not_judged)]
