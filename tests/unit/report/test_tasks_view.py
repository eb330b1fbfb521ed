"""What `doctor` says of a machine, and `tasks NAME` of a task's contract."""

from msgspec.structs import replace

from blank_documents import document
from kerneltruth.documents.facts import DoctorDocument, Isolation, Missing
from kerneltruth.report.tasks_view import doctor_view, tasks_view
from kerneltruth.report.terminal import piped
from kerneltruth.suites.listing import list_tasks, show_task
from kerneltruth.tasks.categories import CRITERIA


def test_a_task_is_shown_with_what_decides_and_the_sentences_that_say_so():
    text = piped(tasks_view(show_task("kernelbenchx/gelu_fp16", None)))
    assert "Match torch.nn.functional.gelu semantics" in text
    assert "layouts" in text
    assert "is only noted: no sentence of the prompt promises it" in text


def test_a_task_is_shown_with_what_puts_it_into_its_category():
    text = piped(tasks_view(show_task("kernelbenchx/matmul", None)))
    assert "MatrixMultiply: A product of matrices or vectors" in text


def test_operations_that_a_table_gives_for_each_size_are_not_printed():
    shown = show_task("gelu", None)
    table = replace(shown.tasks[0], flops="{'n=3': 12, 'n=257': 1028}[_sizes]")
    text = piped(tasks_view(replace(shown, tasks=(table,))))
    assert "by the sizes; --json lists them" in text
    assert "1028" not in text


def test_every_category_of_a_task_has_a_criterion_of_one_sentence():
    categories = {task.category for task in list_tasks(None).tasks}
    assert categories == set(CRITERIA)
    assert [c for c, said in CRITERIA.items() if said.count(".") != 1 or said[-1] != "."] == []
    assert len({t.category for t in list_tasks("kernelbenchx").tasks}) == 15


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
    assert "left open: no namespaces" in text
    assert "ninja -> pip install kerneltruth[gpu]" in text
