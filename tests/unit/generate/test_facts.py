"""What was measured of a right kernel, in words; what was not is left out."""

from msgspec import UNSET
from msgspec.structs import replace

from blank_documents import document
from kerneltruth.documents.records import BinaryRecord, KernelFact, KernelLaunchesRecord
from kerneltruth.documents.timing import (
    Advice,
    CandidateTimes,
    DeviceShare,
    GradedCalls,
    KernelTime,
    Remark,
    ShapeTimes,
)
from kerneltruth.generate.facts import facts_of
from kerneltruth.generate.prompts import load_prompts
from kerneltruth.generate.review import Review

ADVICE = document(
    Advice,
    bound_by="memory",
    bytes_per_s=1.2e12,
    flops_per_s=3.4e11,
    memory_share=0.41,
    compute_share=0.02,
    launch_share=0.07,
    remarks=(
        Remark(kind="memory", text="moves bytes"),
        Remark(kind="spills", text="it spills", kernel="k"),
        Remark(kind="plain_arithmetic", text="it runs at 50% of what plain arithmetic reaches"),
    ),
)
BINARY = BinaryRecord(
    kernel="my_kernel",
    target="sm_90",
    ok=True,
    registers=255,
    spills=12,
    shared_bytes=1024,
    num_warps=8,
    tensor_cores=False,
)
SHAPE = document(
    ShapeTimes,
    summary="M=8",
    advice=ADVICE,
    bytes=33_600_000,
    floor_us=10.1,
    kernels={"candidate": (BINARY,), "eager": (replace(BINARY, kernel="theirs"),)},
)


def timed(*shapes, **more):
    return CandidateTimes(outcome="timed", shapes=shapes, **more)


def run(name, own, launches=1):
    return KernelLaunchesRecord(name=name, module="m", own=own, launches=launches)


def fact(own_launches, *runs):
    launches = sum(r.launches for r in runs)
    return document(KernelFact, own_launches=own_launches, launches=launches, runs=runs, case="M=8")


def test_the_rates_of_a_shape_are_shares_of_the_devices():
    lines = facts_of(None, timed(replace(SHAPE, kernels={})))
    assert lines == (
        "at M=8: 1,200 GB/s, 41% of what a copy reaches; 0.34 TFLOP/s, 2% of what matrix products "
        "of its format reach; launching takes 7% of the time; 33.6 MB must move, and 10.1 us is "
        "the least time",
        "at M=8: it runs at 50% of what plain arithmetic reaches",
    )


def test_a_compiled_kernel_has_its_registers_spills_and_occupancy():
    lines = facts_of(None, timed(replace(SHAPE, advice=None), replace(SHAPE, advice=None)))
    assert lines == (
        "`my_kernel`, compiled for sm_90: 255 registers per thread; 12 words per thread spilled to "
        "local memory; 1,024 bytes of shared memory per block; 8 warps per block; uses no tensor "
        "cores; 8 warps fit on a multiprocessor, 12% of what it holds, limited by registers",
    )


def test_a_kernel_that_was_compiled_in_several_ways_has_ranges():
    other = replace(BINARY, registers=32, spills=0, num_warps=4, tensor_cores=True)
    shape = replace(SHAPE, advice=None, kernels={"candidate": (BINARY, other, BINARY)})
    assert facts_of(None, timed(shape)) == (
        "`my_kernel`, compiled for sm_90: 32 to 255 registers per thread; 0 to 12 words per thread "
        "spilled to local memory; 1,024 bytes of shared memory per block; 4 to 8 warps per block; "
        "uses tensor cores in some of its variants; 8 to 64 warps fit on a multiprocessor, 12% to "
        "100% of what it holds, limited by registers and warps",
    )


def test_launches_tell_own_kernels_from_operators():
    own = (run("k", True, 2), run("aten::mm", False), run("aten::copy_", False))
    (said,) = facts_of(fact(2, *own), timed())
    assert said == (
        "one call launches 2 kernels of yours and runs 2 operators of PyTorch: aten::mm, "
        "aten::copy_ (M=8)"
    )
    assert facts_of(fact(1, run("k", True)), timed()) == (
        "one call launches 1 kernel of yours (M=8)",
    )
    assert facts_of(fact(None, run("aten::mm", False)), timed()) == (
        "one call runs operators of PyTorch: aten::mm (M=8)",
    )


def test_profiled_shares_are_said_where_somebody_looked():
    kernels = (
        KernelTime(name="gemm", own=False, launches=1, us=30.0),
        KernelTime(name="bias", own=True, launches=1, us=10.0),
    )
    share = DeviceShare(case="M=8", own=0.25, library=0.75, kernels=kernels, reason=None)
    assert facts_of(None, timed(kernel=share)) == (
        "your kernels take 25% of the device's time at M=8: `gemm` 75%, `bias` 25%",
    )
    unknown = DeviceShare(case="M=8", own=None, library=None, kernels=kernels, reason="no names")
    assert facts_of(None, timed(kernel=unknown)) == ()


def test_what_was_not_measured_is_not_said():
    bare = BinaryRecord(kernel="k", target="sm_90", ok=True)
    broken = BinaryRecord(kernel="k", target="sm_90", ok=False, registers=9)
    quiet = document(ShapeTimes, kernels={"candidate": (bare, broken)})
    doubted = replace(SHAPE, kernels={}, graded=document(GradedCalls, not_graded="no memory"))
    assert facts_of(fact(None), timed(quiet, doubted)) == ()
    advice = replace(ADVICE, compute_share=None, launch_share=None, remarks=())
    (line,) = facts_of(None, timed(replace(SHAPE, advice=advice, kernels={}, bytes=UNSET)))
    assert line == "at M=8: 1,200 GB/s, 41% of what a copy reaches"


def test_without_times_there_are_no_facts():
    assert facts_of(fact(1, run("k", True)), None) == ()
    assert facts_of(fact(1, run("k", True)), CandidateTimes(outcome="not_run")) == ()


def test_the_model_is_told_the_facts_in_either_method():
    review = Review(outcome="pass", stage="perf", facts=("one call launches 1 kernel of yours",))
    prompts = load_prompts()
    said = "What was measured of it:\n\n- one call launches 1 kernel of yours"
    assert said in prompts.feedback(review, worse=None)
    assert said in prompts.to_diagnose(review)
    assert said in prompts.version_of(review, "x = 1", "It waits.")
    bare = Review(outcome="pass", stage="perf")
    assert "What was measured" not in prompts.feedback(bare, worse=None)
