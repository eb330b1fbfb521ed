"""How the answers of each method end: every answer is in one part of its method's stack."""

from page_material import material_of, result

from kerneltruth.report.page.document import page_document

WORDS = ("pass", "fail", "fail", "runtime_error", "compile_error", "unsupported_here", "declined")


def table(*results):
    return page_document(material_of(*results)).endings


def stacks(found):
    return {row.head: row.cells[1].parts for row in found.rows}


def test_every_answer_is_in_one_part():
    answers = [result(outcome=word, sample=i) for i, word in enumerate(WORDS)]
    (parts,) = stacks(table(*answers)).values()
    assert [part.said for part in parts] == [
        "1 right",
        "2 wrong result",
        "1 raises an error",
        "1 does not load or compile",
        "1 ends otherwise",
        "1 not judged here",
    ]
    assert [part.at for part in parts] == [0.0, 14.29, 42.86, 57.14, 71.43, 85.71]
    assert round(sum(part.width for part in parts)) == 100


def test_each_method_has_its_own_stack_and_share():
    found = table(
        *(result(outcome=o, method="a", sample=i) for i, o in enumerate(("pass", "fail"))),
        result(method="b"),
    )
    assert {head: [p.said for p in parts] for head, parts in stacks(found).items()} == {
        "a \u00b7 m": ["1 right", "1 wrong result"],
        "b \u00b7 m": ["1 right"],
    }
    assert [row.cells[2].counts for row in found.rows] == ["1 of 2", "1 of 1"]


def test_a_part_without_room_has_no_mark_and_the_heading_names_those_that_occur():
    answers = [result(sample=i) for i in range(24)] + [result(outcome="crash", sample=24)]
    found = table(*answers)
    (parts,) = stacks(found).values()
    assert [part.mark for part in parts] == ["\N{CHECK MARK}", ""]
    assert found.columns[2].hint == "\N{CHECK MARK} right, S crashes"


def test_an_answer_that_was_only_called_is_not_said_to_be_wrong():
    called = result(exe="not_tried", verdict="pass")
    (parts,) = stacks(table(called)).values()
    assert [part.said for part in parts] == ["1 not judged here"]


def test_without_answers_there_is_no_table():
    assert table() is None
