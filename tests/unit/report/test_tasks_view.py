"""What `doctor` says of a machine."""

from blank_documents import document
from kerneltruth.documents.facts import DoctorDocument, Isolation, Missing
from kerneltruth.report.tasks_view import doctor_view
from kerneltruth.report.terminal import piped


def test_the_doctor_says_what_is_missing_and_how_to_add_it():
    text = piped(
        doctor_view(
            document(
                DoctorDocument,
                libraries={"torch": "2.13.0", "triton": None},
                isolation=document(Isolation, level="process", limited_by="no namespaces"),
                missing=[document(Missing, what="ninja", add="pip install kerneltruth[gpu]")],
            )
        )
    )
    assert "torch 2.13.0 triton MISSING" in text
    assert "not yet: no namespaces" in text
    assert "ninja -> pip install kerneltruth[gpu]" in text
