"""The page on an audit says which planted bugs are caught and which controls are clean."""

import pytest
from page_material import material_of, result

from kerneltruth.analysis.results import Obliged
from kerneltruth.report.html import page
from kerneltruth.report.page.document import page_document
from kerneltruth.report.page.wording import DASH


def kernel_result(name, role, outcome="pass", *, checks=None, **ends):
    profile = {obligation: Obliged(status) for obligation, status in ends.items()}
    return result(
        "relu", outcome, key=name, role=role, method=None, model=None, sample=None,
        profile=profile, contract="core", checks=checks or {}, origin=f"{name}.py",
    )  # fmt: skip


SPECIALS = kernel_result(
    "relu_nan_swallowed", "bug", specials="broken", checks={"one-shape": "pass"}
)
MEMORY = kernel_result(
    "relu_in_place", "bug", "fail", memory="broken", checks={"one-shape": "fail"}
)
CONTROL = kernel_result("relu", "control", checks={"one-shape": "pass"})


def rows(document, name):
    (found,) = [t for t in document.audit.tables if t.name == name]
    return {r.head: [c.text for c in r.cells] for r in found.rows}


def test_bugs_are_counted_by_the_obligation_that_they_break():
    document = page_document(material_of(SPECIALS, MEMORY, CONTROL))
    assert document.kind == "audit"
    assert document.audit.said == (
        "2 of 2 planted bugs are caught by the obligation that they break; 1 of 1 controls, which "
        "are right, are clean."
    )
    assert rows(document, "audit-obligations") == {
        "memory": ["1", "1", "0"],
        "specials": ["1", "1", "0"],
    }
    assert rows(document, "audit-checks") == {"one-shape": ["2", "1", "1", "0"]}
    assert rows(document, "audit-bugs")["relu_nan_swallowed"] == [
        *("NaN becomes 0", "specials", "yes", "pass; breaks specials", "1 of 1")
    ]
    tiles = [(t.label, t.cell.text) for t in document.tiles]
    assert tiles == [("Controls clean", "1 of 1"), ("Bugs caught", "2 of 2")]


def test_a_bug_that_breaks_another_obligation_is_missed():
    elsewhere = kernel_result("relu_in_place", "bug", "fail", values="broken")
    document = page_document(material_of(elsewhere))
    assert rows(document, "audit-missed") == {
        "relu_in_place": ["overwrites its input", "memory", "no", "fail; breaks values", DASH]
    }


@pytest.mark.parametrize(
    ("control", "flagged"),
    [
        (kernel_result("relu", "control", "fail", values="broken"), "fail"),
        (kernel_result("relu", "control", specials="broken"), "specials"),
    ],
)
def test_a_control_that_is_flagged_is_listed(control, flagged):
    document = page_document(material_of(control, SPECIALS))
    assert rows(document, "audit-controls")["relu"][0] == flagged
    assert "0 of 1 controls" in document.audit.said


def test_the_page_of_an_audit_has_no_sections_of_a_study():
    text = page(page_document(material_of(SPECIALS, CONTROL)))
    assert "2 kernels of the built-in corpus" in text
    assert "Planted bugs by the obligation they break." in text
    for section in ("stages", "speed", "categories", "illusions"):
        assert f'id="{section}"' not in text
        assert f'href="#{section}"' not in text
    study = page(page_document(material_of(result())))
    assert "Planted bugs" not in study
    assert 'id="speed"' in study
