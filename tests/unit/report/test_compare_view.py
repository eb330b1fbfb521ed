"""What `compare` shows."""

from blank_documents import document
from kerneltruth.documents.runs import CompareDocument
from kerneltruth.report.compare_view import compare_view
from kerneltruth.report.terminal import piped

SPREAD = {"least": 1.0, "p10": 1.0, "p25": 1.1, "median": 1.25, "p75": 2.0, "p90": 2.0, "most": 2.5}


def compared(**more):
    named = {
        "runs": [
            {"path": "a", "device": "H100", "attempts": 2},
            {"path": "b", "device": "H200", "attempts": 2},
        ],
        "same": 0,
        "kernels": 2,
        "differing": [{"name": "k", "verdicts": ["pass", "fail value"]}],
        "missing": [{"name": "m", "absent": ["b"]}],
        "other_source": ["n"],
        "speed": {},
    } | more
    return document(CompareDocument, **named)


def kernel(name, *speedups, flips=False, differs=False):
    made = [None if s is None else {"ratio": s, "low": s, "high": s} for s in speedups]
    return {
        **{"name": name, "shapes": 1, "speedups": made},
        **{"spread": 2.5, "flips": flips, "differs": differs},
    }


def speed(*kernels):
    return {
        "timed": [3, 2],
        "shared": len(kernels),
        "differ": 1,
        "flips": 1,
        "within": {"1%": 0, "5%": 1, "10%": 2},
        "spread": {"count": len(kernels), **SPREAD},
        "speedups": [{"count": len(kernels), **SPREAD}] * 2,
        "kernels": list(kernels),
    }


def test_a_comparison_names_what_differs_and_what_is_missing():
    text = piped(compare_view(compared()))
    assert "differs: k: pass, fail value" in text
    assert "missing: m in b" in text
    assert "not the same source in all runs: n" in text


def test_edited_kernels_are_told_with_what_became_of_them():
    edited = [
        {"name": "a", "files": ["a.py"] * 2, "verdicts": ["pass", "fail nan"], "became": "broken"},
        {"name": "k", "files": ["o/k.py", "k.py"], "verdicts": ["fail", "pass"], "became": "fixed"},
    ]
    differing = [{"name": k["name"], "verdicts": k["verdicts"]} for k in edited]
    text = piped(
        compare_view(compared(edited=edited, differing=differing, other_source=["a", "k"]))
    )
    assert "edited: 2 kernels: 1 fixed, 1 broken\n" in text
    assert "  fixed: k: fail -> pass (o/k.py -> k.py)\n  broken: a: pass -> fail nan\n" in text
    assert "differs" not in text
    assert "same source" not in text


def test_a_torch_only_kernel_is_marked_wherever_it_is_listed():
    plain = ["k", "m", "n", "e"]
    edited = [
        {"name": "e", "files": ["e.py"] * 2, "verdicts": ["pass", "fail"], "became": "broken"},
    ]
    changed = [{"name": "k", "obligation": "shapes", "statuses": ["held", "broken"]}]
    speeds = {"eager": speed(kernel("k", 1.0, 2.5), kernel("own", 1.0, 2.5))}
    more = {"edited": edited, "obligations": changed, "speed": speeds, "torch_only": plain}
    text = piped(compare_view(compared(**more)))
    assert "differs: k (torch-only): " in text
    assert "missing: m (torch-only) in" in text
    assert "in all runs: n (torch-only)\n" in text
    assert "broken: e (torch-only): " in text
    assert "k (torch-only): shapes" in text
    assert text.count("torch-only") == 6
    assert "torch-only" not in piped(compare_view(compared(**more | {"torch_only": []})))


def by_contract(*contracts):
    runs = [{"path": "a", "device": "cpu", "attempts": 1, "contracts": c} for c in contracts]
    return piped(compare_view(compared(runs=runs)))


def test_runs_by_other_contracts_are_said_to_be():
    said = by_contract(["core"], ["torch"])
    assert "the contracts differ: core -> torch; a verdict may differ because" in said
    assert "core -> none (an earlier version)" in by_contract(["core"], [])
    assert "contracts differ" not in by_contract(["core"], ["core"])


def test_speedups_stand_side_by_side_with_their_counts():
    shown = speed(kernel("softmax", 2.0, 0.8, flips=True), kernel("relu", 1.0, None))
    lines = piped(compare_view(compared(speed={"eager": shown}))).splitlines()
    assert "against eager: timed by run: 3, 2; in two runs or more: 2" in lines
    assert any("within 1% 0 of 2, 5% 1 of 2, 10% 2 of 2" in line for line in lines)
    assert any("beyond their intervals: 1 of 2" in line for line in lines)
    row = next(line for line in lines if "softmax" in line)
    assert row.split() == ["softmax", "2.000x", "0.800x", "2.500", "flips"]


def test_a_baseline_that_no_two_runs_share_has_no_table():
    text = piped(compare_view(compared(speed={"compile": speed() | {"shared": 0}})))
    assert "in two runs or more: 0" in text
    assert "largest/smallest" not in text


def test_many_kernels_are_shortened_and_counted():
    shown = speed(*(kernel(f"k{i}", 1.0, 1.0) for i in range(33)))
    text = piped(compare_view(compared(speed={"eager": shown})))
    assert "3 kernels with smaller spreads, all in --json" in text
    assert "k29" in text
    assert "k30" not in text
