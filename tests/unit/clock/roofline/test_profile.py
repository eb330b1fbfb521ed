"""What Nsight Compute prints, read."""

import pytest

from kerneltruth.clock.roofline.profile import SECTIONS, Profile, ncu_command, read_profiles
from kerneltruth.errors import UserError

COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"

PRINTED = """\
a line of the program itself
==PROF== Connected to process 7 (/usr/bin/python3)
==PROF== Profiling "softmax_kernel": 0%....50%....100% - 8 passes
==PROF== Disconnected from process 7
"ID","Process ID","Kernel Name","Block Size","Grid Size","CC","dram__bytes_read.sum",\
"dram__bytes_write.sum","gpu__time_duration.sum","launch__registers_per_thread",\
"sm__throughput.avg.pct_of_peak_sustained_elapsed"
"","","","","","","Mbyte","byte","usecond","register/thread","%"
"0","7","softmax_kernel","(128, 1, 1)","(4096, 1, 1)","9.0","67.10","1,024","31.49","40","22.7"
"1","7","softmax_kernel","(128, 1, 1)","(4096, 1, 1)","9.0","67.10","2,048","31.52","40","n/a"
"""


def profile(**metrics):
    return Profile(kernel="k", grid=(1,), block=(128,), metrics=metrics)


def test_launches_are_read_with_their_sizes_between_other_lines():
    found = read_profiles(PRINTED)
    assert [p.kernel for p in found] == ["softmax_kernel"] * 2
    assert (found[0].grid, found[0].block) == ((4096, 1, 1), (128, 1, 1))


def test_metrics_come_in_seconds_and_bytes():
    metrics = read_profiles(PRINTED)[0].metrics
    assert metrics["gpu__time_duration.sum"] == pytest.approx(31.49e-6)
    assert metrics["dram__bytes_write.sum"] == 1024


def test_a_table_that_was_cut_short_holds_the_launches_before():
    lines = PRINTED.splitlines()
    assert len(read_profiles("\n".join([*lines[:-1], lines[-1][:20]]))) == 1
    assert read_profiles("\n".join(lines[:-3])) == ()


def test_a_metric_that_was_not_measured_is_not_there():
    first, second = read_profiles(PRINTED)
    assert first.compute_percent == 22.7
    assert second.compute_percent is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it printed no table"),
        ("==ERROR== ERR_NVGPUCTRPERM - no permission\n", "==ERROR== ERR_NVGPUCTRPERM"),
        ("==PROF== x\n==WARNING== No kernels were profiled.\n", "No kernels were profiled"),
    ],
)
def test_an_answer_without_a_table_says_why(text, why):
    with pytest.raises(UserError, match=f"{why}.*; profiling may need the permission"):
        read_profiles(text)


@pytest.mark.parametrize(
    ("compute", "memory", "expected"),
    [(90, 40, "compute"), (30, 85, "memory"), (59, 20, "latency"), (60, 20, "compute")],
)
def test_a_unit_that_is_sixty_percent_busy_is_the_bound(compute, memory, expected):
    assert profile(**{COMPUTE: compute, MEMORY: memory}).bound_by == expected


def test_without_both_shares_nothing_is_called_the_bound():
    assert profile(**{COMPUTE: 90.0}).bound_by is None


def test_what_warps_wait_for_most_is_the_stall():
    waiting = {"long_scoreboard": 7.5, "barrier": 2.0, "selected": 99.0}
    found = profile(**{STALLED.format(name): n for name, n in waiting.items()})
    assert found.stall == ("long_scoreboard", 7.5)
    assert profile().stall is None


def test_the_command_asks_for_every_section_of_the_named_kernel():
    command = ncu_command(["python", "bench.py"], kernel="softmax_kernel", launches=2)
    assert command[0] == "ncu"
    assert command[-2:] == ["python", "bench.py"]
    assert [command[i + 1] for i, w in enumerate(command) if w == "--section"] == list(SECTIONS)
    at = command.index("--kernel-name")
    assert command[at : at + 4] == [
        *("--kernel-name", "softmax_kernel"),
        *("--launch-count", "2"),
    ]


def test_any_kernel_is_profiled_where_none_is_named():
    assert "--kernel-name" not in ncu_command(["a.out"])
