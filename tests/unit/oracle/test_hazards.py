"""Each fault beyond the contract gets one line."""

import pytest

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import InterfaceNote, Judgement, ProfileEntry
from kerneltruth.documents.verdict import Crashed, Failed, TimedOut
from kerneltruth.oracle.hazards import hazards

CASE = Case(
    task="relu",
    dims=(("M", 3), ("N", 5)),
    dtype="float32",
    layout="transposed",
    recipe="uniform",
    seed=1,
)
WRONG = Failed(kind="value", detail="")
STRIDES = Failed(kind="assumes_contiguous", detail="", inputs=("x", "y"))


def broken(verdict, *, decisive=False):
    failure = Judgement(case=CASE, verdict=verdict)
    return ProfileEntry(status="broken", promised=False, decisive=decisive, failure=failure)


@pytest.mark.parametrize(
    ("key", "verdict", "said"),
    [
        ("layouts", STRIDES, "silently wrong on transposed x, y: "),
        ("layouts", WRONG, "silently wrong on transposed inputs: "),
        ("specials", WRONG, "silently wrong on NaN, infinite, subnormal or huge values: "),
        ("dtypes.float16", WRONG, "silently wrong in float16: "),
        ("dtypes.float16", Failed(kind="dtype", detail=""), "returns another dtype in float16: "),
        ("attributes.beyond", WRONG, "silently wrong with other arguments: "),
        ("empty", Crashed(signal=11, detail=""), "crashes where a dim is 0: "),
        ("shapes", TimedOut(seconds=2.0), "does not return in time at other sizes: "),
        (
            "shapes.beyond",
            WRONG,
            "silently wrong on inputs of another form, such as broadcast ones: ",
        ),
    ],
)
def test_a_broken_obligation_that_does_not_decide_is_a_hazard(key, verdict, said):
    assert hazards({key: broken(verdict)}, ()) == {key: said + CASE.summary()}


def test_what_decides_is_no_hazard():
    assert hazards({"layouts": broken(WRONG, decisive=True)}, ()) == {}


def test_whose_work_a_right_result_is_is_no_hazard():
    assert hazards({"kernel": broken(WRONG)}, ()) == {}


@pytest.mark.parametrize(("kind", "count"), [("shape", 1), ("dtype", 0)])
def test_one_element_of_another_number_of_dims_is_a_hazard(kind, count):
    note = InterfaceNote(
        kind=kind, detail="shape (1,); expected ()", output="out", cases=2, core=2, first=CASE
    )
    assert len(hazards({}, (note,))) == count
