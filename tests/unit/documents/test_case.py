"""A case says in one line how it differs from others."""

from kerneltruth.documents.case import Case


def test_sizes_of_a_reference_name_themselves_and_attributes_have_a_name():
    attributes = (("_sizes", "rows=2 hidden=31"), ("eps", 1e-6))
    case = Case(
        task="reference/f", dims=(), attributes=attributes, dtype="float32", recipe="own", seed=0
    )
    assert case.summary() == "rows=2 hidden=31 eps=1e-06 float32 own"
