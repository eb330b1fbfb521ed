"""The same kernels on several devices."""

import pytest
from results_for_tests import counted, result, study, timed

from kerneltruth.analysis.portability import portability
from kerneltruth.analysis.study import crossings_of, tables


def pair(task, here, there, *, width=0.01, **about):
    """One kernel on two devices, by its speedups there."""
    return [
        result(task, sha256=task * 8, run=run, timing=timed(value, width=width), **about)
        for run, value in ((0, here), (1, there))
    ]


def compare(*results):
    return portability(study(*results, devices=("A", "B")))


def test_one_device_has_nothing_to_compare():
    assert portability(study(result(), result(run=1), devices=("A", "A"))) is None


def test_the_spread_of_a_kernel_is_its_largest_speedup_over_its_smallest():
    found = compare(*pair("a", 4.0, 0.5), *pair("b", 2.0, 2.0))
    assert [k.task for k in found.kernels] == ["a", "b"]
    assert found.kernels[0].speedups == pytest.approx({"A": 4.0, "B": 0.5})
    assert (found.largest, found.median_spread) == pytest.approx((8.0, 4.5))


def test_faster_here_and_slower_there_is_a_flip():
    found = compare(*pair("a", 2.0, 0.5), *pair("b", 2.0, 3.0), *pair("c", 1.01, 0.99, width=0.1))
    assert {k.task: (k.flips, k.differs) for k in found.kernels} == {
        "a": (True, True),
        "b": (False, True),
        "c": (False, False),
    }
    assert (found.flips.numerator, found.flips.denominator) == (1, 3)
    assert found.differ.numerator == 2


def test_speedups_are_of_the_shapes_that_both_devices_timed():
    here = result("a", run=0, timing=timed(2.0, 8.0, width=0.01))
    there = result("a", run=1, timing=timed(2.0, width=0.01))
    (kernel,) = compare(here, there).kernels
    assert (kernel.shapes, kernel.spread) == (1, pytest.approx(1.0))


def test_verdicts_that_do_not_travel_are_counted():
    found = compare(
        result("a", run=0),
        result("a", "fail", run=1),
        result("b", "fail", run=0),
        result("b", "call:crash", run=1),
        result("c", "pass", run=0),
        result("c", "call:unsupported_here", run=1),
    )
    assert (found.same_verdict.numerator, found.same_verdict.denominator) == (1, 2)
    assert (found.timed, found.median_spread) == (0, None)


def test_devices_that_rank_kernels_alike_correlate_by_one():
    results = [r for n in range(5) for r in pair(f"t{n}", 1.0 + n, 10.0 + n)]
    (found,) = compare(*results).pairs
    assert (found.one, found.other) == ("A", "B")
    assert found.correlation.value == pytest.approx(1.0)


def test_a_wrong_kernels_time_does_not_count():
    wrong = result("a", "fail", sha256="a" * 8, run=1, timing=timed(9.0, width=0.01))
    assert compare(pair("a", 1.0, 1.0)[0], wrong).timed == 0


def test_rates_by_device_count_a_kernel_on_each_device_that_judged_it():
    both = study(
        *pair("a", 4.0, 0.5),
        result("b", run=0),
        result("b", "fail", run=1, kind="nan"),
        result("c", "fail", run=1, kind="value"),
        devices=("A", "B"),
    )
    by_device, by_kind = tables(both, crossings=crossings_of(["device", "kind"])).rates.by
    shown = [(r.device, r.exe.numerator, r.exe.denominator) for r in by_device.rows]
    assert shown == [("A", 2, 2), ("B", 1, 3)]
    # A kernel counts once, as its first device judged it.
    assert [(r.kind, r.attempts) for r in by_kind.rows] == [("value", 1), (None, 2)]


def test_a_device_may_be_one_dimension_of_several_and_dtypes_another():
    tried = {"dtypes": counted(float32=0)}
    kernels = (*pair("a", 4.0, 0.5, **tried), *pair("b", 1.0, 1.0, method="refine", **tried))
    both = study(*kernels, devices=("A", "B"))
    crossings = crossings_of(["method,device", "device,dtype"])
    by_method, by_dtype = tables(both, crossings=crossings).rates.by
    assert {(r.device, r.method, r.attempts) for r in by_method.rows} == {
        (device, method, 1) for device in ("A", "B") for method in ("one_shot", "refine")
    }
    assert [(r.device, r.dtype, r.attempts) for r in by_dtype.rows] == [
        ("A", "float32", 2),
        ("B", "float32", 2),
    ]


def test_each_device_has_its_own_speedups_where_there_are_several():
    both = tables(study(*pair("a", 4.0, 0.5), *pair("b", 1.0, 2.0), devices=("A", "B")))
    found = {r.device: r.mean.value for r in both.speedups if r.is_by(("device",))}
    assert found == {"A": pytest.approx(2.0), "B": pytest.approx(1.0)}
    one = tables(study(result("a", timing=timed(2.0))))
    assert not [r for r in one.speedups if r.is_by(("device",))]
