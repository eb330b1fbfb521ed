"""What `time` shows: a table, a plot of intervals, and remarks."""

import io

import pytest
from rich.console import Console

from blank_documents import document
from kerneltruth.documents.timing import BaselineTime, ShapeTimes, TimeDocument
from kerneltruth.report.terminal import piped
from kerneltruth.report.time_view import WIDTH, duration, joules, memory, time_view


def baseline(ratio, low, high, outcome, us=30.0):
    return document(BaselineTime, us=us, ratio=ratio, low=low, high=high, outcome=outcome)


def shape(summary, **more):
    given = {
        "candidate_us": 12.345,
        "candidate_low": 12.0,
        "candidate_high": 13.0,
        "method": "graph",
        "regime": "cold",
        "warm_us": 9.5,
        "blocks": 12,
        "baselines": {
            "eager": baseline(2.0, 1.98, 2.02, "faster"),
            "compile": baseline(1.0, 0.99, 1.01, "tie"),
            "compile_max_autotune": baseline(0.5, 0.49, 0.51, "slower"),
        },
        "efficiency": 0.83,
        "floor_us": 10.0,
        "bound_by": "memory",
        "graded": {"calls": 2, "wrong": [], "not_graded": None},
    }
    return document(ShapeTimes, summary=summary, **{**given, **more})


def changed(**more):
    given = {
        "outcome": "timed",
        "task": "kernelbenchx/softmax",
        "device": "NVIDIA H100 80GB HBM3",
        "shapes": [
            shape("M=1024 N=1024 float32 uniform01"),
            shape("M=4096 N=4096 float32 uniform01", candidate_us=5234.5),
        ],
        "noise_floor": 0.0034,
        "compile_s": 1.25,
        "import_s": 0.5,
        "first_call_s": 1.5,
        "launch_us": 6.5,
        "peak_bytes": 3 * 2**20,
        "baseline_peak_bytes": {"eager": 2**30},
    }
    return document(TimeDocument, **{**given, **more})


TIMED = changed()


def test_whose_kernels_take_the_time_is_said_where_it_is_known():
    share = {"case": "N=4", "own": 0.03, "library": 0.97, "kernels": (), "reason": None}
    said = piped(time_view(changed(kernel=share))).splitlines()
    assert said[-1] == "N=4: library 97%, own 3% of the device's time"
    assert "device's time" not in piped(time_view(TIMED))


def text(timed):
    return piped(time_view(timed))


def with_shape(**more):
    return changed(shapes=[shape("M=4", **more)])


def test_the_energy_of_a_call_is_a_line_of_its_shape():
    idle = {"idle_watts": 81.4, "reason": None}
    side = {"laps": [], "calls": 9, "seconds": 2.5, "reason": None}
    sides = {
        "candidate": {**side, "joules": 0.01234, "watts": 612.4},
        "eager": {**side, "joules": 1.5e-5, "watts": 90.0},
        "compile": {**side, "joules": None, "watts": None, "reason": "it says so"},
    }
    said = text(with_shape(energy={**idle, "sides": sides})).splitlines()
    assert said[-2:] == [
        "M=4: energy of a call: candidate 12.3 mJ (612 W), eager 15 uJ (90 W), idle 81 W",
        "M=4: energy of compile not reported: it says so",
    ]
    assert "energy" not in text(TIMED)


def test_energy_that_cannot_be_read_says_why():
    none = {"idle_watts": None, "sides": {}, "reason": "not a CUDA device"}
    said = text(with_shape(energy=none)).splitlines()
    assert said[-1] == "M=4: energy not read: not a CUDA device"


@pytest.mark.parametrize(
    ("value", "said"), [(120.0, "120 J"), (1.0, "1 J"), (0.0315, "31.5 mJ"), (4.2e-6, "4.2 uJ")]
)
def test_joules_have_a_unit_of_their_size(value, said):
    assert joules(value) == said


def test_each_shape_stands_against_each_baseline():
    lines = text(TIMED).splitlines()
    assert lines[0] == "kernelbenchx/softmax on NVIDIA H100 80GB HBM3"
    first = next(line for line in lines if "M=1024" in line)
    assert first.split("uniform01")[1].split() == [
        *("12.3", "us", "eager", "30", "us", "2.000x"),
        *("1.980", "to", "2.020", "faster"),
    ]
    assert sum("compile_max_autotune" in line and "slower" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.985, 1.015, "tie"), (0.9, 1.0, "tie, wide"), (1.005, 1.1, "tie, wide"), (1.5, 1.6, "tie")],
)
@pytest.mark.parametrize("width", [80, 60])
def test_a_tie_says_whether_its_interval_leaves_a_difference_open(low, high, word, width):
    sink = io.StringIO()
    timed = with_shape(baselines={"eager": baseline(low, low, high, "tie")})
    Console(file=sink, width=width, highlight=False, markup=False).print(time_view(timed))
    (line,) = (line for line in sink.getvalue().splitlines() if " to " in line)
    assert line.rstrip().endswith(f" {word}")


def test_a_shape_is_named_once_in_the_table():
    table = text(TIMED).split("1 eager")[0]
    assert table.count("M=1024") == table.count("M=4096") == 1


@pytest.mark.parametrize("timed", [TIMED, with_shape(baselines={})])
def test_the_view_fits_80_columns_without_colour(timed):
    sink = io.StringIO()
    console = Console(file=sink, width=80, highlight=False, markup=False, no_color=True)
    console.print(time_view(timed))
    shown = sink.getvalue()
    assert "\x1b" not in shown
    assert max(len(line) for line in shown.splitlines()) <= 80
    for word in ("12.3", "us"):
        assert word in shown


def test_in_80_columns_no_number_is_cut():
    sink = io.StringIO()
    Console(file=sink, width=80, highlight=False, markup=False).print(time_view(TIMED))
    shown = sink.getvalue()
    assert "…" not in shown
    for number in ("2.000x", "1.980", "2.020", "0.490", "0.510", "5.23"):
        assert number in shown


def one_bar(**more):
    timed = with_shape(baselines={"eager": baseline(**more)})
    plot = [line for line in text(timed).splitlines() if line.startswith("1 eager ")]
    assert len(plot) == 1
    return plot[0].removeprefix("1 eager ")


def test_a_faster_candidates_bar_lies_to_the_right_of_1():
    bar = one_bar(ratio=2.0, low=1.6, high=2.5, outcome="faster")
    assert bar.index("|") == WIDTH // 2
    assert WIDTH // 2 < bar.index("-") < bar.index("o") < bar.rindex("-") < WIDTH


def test_a_slower_candidates_bar_lies_to_the_left_of_1():
    bar = one_bar(ratio=0.5, low=0.4, high=0.625, outcome="slower")
    assert 0 <= bar.index("-") < bar.index("o") < bar.index("|") == WIDTH // 2


def test_bars_of_a_ratio_and_its_inverse_mirror_each_other():
    right = one_bar(ratio=2.0, low=1.6, high=2.5, outcome="faster").ljust(WIDTH)
    left = one_bar(ratio=1 / 2.0, low=1 / 2.5, high=1 / 1.6, outcome="slower").ljust(WIDTH)
    assert right == left[::-1]


def test_a_tie_covers_1():
    bar = one_bar(ratio=1.001, low=0.9, high=1.1, outcome="tie")
    assert bar[WIDTH // 2] in "o-"


def test_a_narrow_interval_is_a_point():
    assert one_bar(ratio=1.05, low=1.0499, high=1.0501, outcome="faster").count("o") == 1


def test_the_scale_has_1_in_the_middle_and_both_ends():
    lines = text(TIMED).splitlines()
    bar = next(line for line in lines if line.startswith("1 eager "))
    scale = next(line for line in lines if line.strip().startswith("0."))
    assert scale.split()[1] == "1x"
    assert abs(scale.index("1x") - bar.index("|")) <= 1


def test_extreme_ratios_stay_within_the_plot():
    bar = one_bar(ratio=900.0, low=1e-9, high=1e6, outcome="tie")
    assert len(bar) <= WIDTH


def test_costs_are_said():
    shown = text(TIMED)
    for words in (
        "compile 1.25 s",
        "first call 1.50 s",
        "import 0.50 s",
        "launch 6.5 us",
        "peak memory 3 MiB",
        "eager 1 GiB",
        "noise of this machine 0.34%",
        "results of 4 timed calls graded",
    ):
        assert words in shown


def test_on_a_cpu_there_is_no_launch():
    assert "launch " not in text(changed(launch_us=None, shapes=[shape("M=4", regime="cpu")]))


def test_strides_of_what_is_not_contiguous_are_said():
    shown = text(with_shape(strides={"w": (1, 128)}))
    assert "not contiguous, as in the example: strides of w [1, 128]" in shown
    assert "not contiguous" not in text(TIMED)


def test_what_bounds_a_shape_is_said():
    shown = text(TIMED)
    assert "bound by memory, 83% of the device's limit, 9.5 us with warm caches" in shown


def test_flags_failed_baselines_and_ungraded_shapes_are_said():
    shown = text(
        with_shape(
            flags=["throttled", "shared_device", "not_graded"],
            baselines_failed={"compile": "compile: raised: no"},
            graded={"calls": 0, "wrong": [], "not_graded": "RuntimeError: no"},
        )
    )
    assert "M=4: throttled: heat or the power supply held the clocks down" in shown
    assert "M=4: shared_device: another process computed on the device" in shown
    assert "M=4: no baseline compile: compile: raised: no" in shown
    assert "M=4: not graded: RuntimeError: no" in shown
    # Once is enough.
    assert "M=4: not_graded" not in shown


def test_a_shape_without_baselines_has_its_time():
    shown = text(with_shape(baselines={}))
    assert "12.3 us" in shown
    assert "none" in shown


@pytest.mark.parametrize("outcome", ["failed", "wrong"])
def test_why_nothing_was_timed_is_the_last_line(outcome):
    shown = text(changed(outcome=outcome, detail="M=4: raised: OSError no", shapes=[]))
    assert shown.splitlines()[-1] == f"{outcome}: M=4: raised: OSError no"


def test_a_contradiction_of_the_clocks_is_said():
    shown = text(changed(outcome="timing_suspect"))
    said = "timing_suspect: times contradict each other; no shape is faster"
    assert shown.splitlines()[-1] == said


def test_what_a_candidate_says_does_nothing_to_a_terminal():
    shown = text(changed(outcome="failed", detail="\x1b[2J\x07[red]gone[/red]", shapes=[]))
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[red]gone[/red]" in shown


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (0.5, "0.5 us"),
        (12.345, "12.3 us"),
        (999.4, "999 us"),
        (1000, "1 ms"),
        (52345, "52.3 ms"),
        (2.5e6, "2.5 s"),
    ],
)
def test_durations(us, said):
    assert duration(us) == said


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 B"), (1023, "1.02e+03 B"), (1024, "1 KiB"), (5 * 2**30, "5 GiB")]
)
def test_sizes(count, said):
    assert memory(count) == said


def test_shapes_that_are_not_timed_are_named():
    said = text(changed(not_timed=["M=65536 N=65536", "M=1 N=99999999"]))
    assert "not timed: M=65536 N=65536; M=1 N=99999999" in said
    assert "not timed" not in text(changed(not_timed=[]))


def at_width(width, document=TIMED):
    sink = io.StringIO()
    Console(file=sink, width=width, highlight=False, markup=False).print(time_view(document))
    return sink.getvalue()


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_shows_shapes_ratios_and_words_too(width):
    shown = at_width(width)
    assert max(len(line) for line in shown.splitlines()) <= width
    words = " ".join(shown.split())
    assert "…" not in words
    assert "1 M=1024 N=1024 float32 uniform01: 12.3 us" in words
    assert "eager 30 us: 2.000x (1.980 to 2.020) faster" in words
    assert words.count("slower") == 2
    bars = [line for line in shown.splitlines() if line.startswith("1 ") and "o" in line[20:]]
    assert any("|" in bar for bar in bars)


def test_what_a_cpu_does_not_measure_is_not_shown():
    shown = text(with_shape(regime="cpu"))
    assert "compile 1.25 s" in shown
    assert "memory" not in shown.split("compile 1.25 s")[1].split("M=4")[0]
    assert "noise" not in shown
    assert "noise of this machine 0.34%" in text(TIMED)
