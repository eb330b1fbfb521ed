"""The page's survival curves."""

from page_material import material_of, result

from kerneltruth.analysis.results import Obliged
from kerneltruth.report.html import page
from kerneltruth.report.page.document import page_document

HELD = {"published": Obliged("held"), "shapes": Obliged("held"), "layouts": Obliged("held")}


def certified(sample, contract="core", **statuses):
    return result(
        sample=sample, contract=contract, profile=HELD | statuses, checks={"kernelbench": "pass"}
    )


def test_a_chart_falls_where_an_obligation_is_broken():
    found = [certified(0), certified(1, shapes=Obliged("broken"))]
    survival = page_document(material_of(*found)).survival
    (chart,) = survival.charts
    assert chart.name == "kernelbench: 2 certified kernels"
    assert [p.y for p in chart.shares[0].points[:3]] == [0, 50, 50]


def test_the_chart_is_before_every_other_picture_of_the_page():
    text = page(page_document(material_of(certified(0))))
    assert text.index('class="plot" role="img"') < text.index('class="tiles"')


def test_a_page_of_an_earlier_version_says_that_there_is_no_profile():
    old = result(checks={"kernelbench": "pass"})
    document = page_document(material_of(old))
    assert document.survival.charts == []
    assert "kernelbench: no profile, 1 of 1" in page(document)


def test_a_page_without_a_check_has_no_curve():
    assert page_document(material_of(result())).survival is None


def test_places_of_illusions_are_before_their_other_tables():
    document = page_document(material_of(certified(0, layouts=Obliged("broken", False, False))))
    places = document.illusions[0]
    assert places.name == "illusion-places"
    assert [c.text for c in places.rows[0].cells] == ["core", "0%", "0%", "100%", "0%"]
