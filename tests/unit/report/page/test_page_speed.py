"""fast_p on the page: a curve for each group, and the same in figures."""

from page_material import material_of, result

from kerneltruth.report.page.document import page_document

LEVELS = ("Single operators", "Fused operators")


def part(*results):
    (found,) = page_document(material_of(*results)).speeds
    return found


def leveled():
    return [
        result(f"kernelbench/{level}{i}", category=level, speedup=speed, method="a")
        for level, speeds in zip(LEVELS, ((0.6, 1.5), (3.0, 0.9)), strict=True)
        for i, speed in enumerate(speeds)
    ]


def test_each_level_has_its_own_curve_and_row():
    found = part(*leveled())
    by_method, by_level = found.curves
    assert [line.label for line in by_method.shares] == ["a \u00b7 m"]
    assert sorted(line.label for line in by_level.shares) == sorted(LEVELS)
    assert sorted(by_level.said.split("; ")) == [
        "Fused operators: 1 of 2 above 1.00\u00d7",
        "Single operators: 1 of 2 above 1.00\u00d7",
    ]
    _, table = found.fast
    assert sorted(row.head for row in table.rows) == sorted(LEVELS)
    (single,) = [row for row in table.rows if row.head == LEVELS[0]]
    assert [cell.counts for cell in single.cells] == [
        *("2 of 2", "2 of 2", "1 of 2", "1 of 2", "0 of 2", "0 of 2")
    ]


def test_a_curve_falls_from_p_to_p_to_the_fastest_kernel():
    (line,) = part(*leveled()).curves[0].shares
    heights = [100 - point.y for point in line.points]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] == 100
    assert heights[-1] == 25


def test_more_groups_than_lines_can_be_told_apart_have_figures_alone():
    many = [result(category=f"c{i}", sample=i, speedup=2.0, sha256=str(i)) for i in range(7)]
    found = part(*many)
    assert [chart.name.partition(",")[0] for chart in found.curves] == ["fast_p by method"]
    assert len(found.fast[1].rows) == 7


def test_one_category_has_no_curve_of_its_own():
    assert len(part(result(speedup=2.0)).curves) == 1
