"""What counts as the candidate's own, and which of PyTorch's operators do work."""

import sysconfig
from types import SimpleNamespace

import pytest
import torch
import triton

from kerneltruth.runner.child import kernel_work, launches

CPU = torch.device("cpu")
aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _counting():
    kernel_work.begin("count", CPU)
    yield
    kernel_work.end()


def counted():
    work = kernel_work.collect([], seen=True)
    return {run.name: run.launches for run in work.runs}


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/tmp/child/candidate_relu.py", True),
        ("/tmp/child/written_by_the_candidate.py", True),
        (triton.__file__, False),
        (f"{sysconfig.get_paths()['purelib']}/flash_attn/kernels.py", False),
        ("/tmp/torchinductor_user/ab/cab.py", False),
    ],
)
def test_a_kernel_is_own_unless_a_package_or_inductor_brings_it(path, own):
    assert kernel_work.is_own(path) == own


def test_operators_that_compute_or_copy_do_work():
    x = torch.ones(3)
    for func in (aten.mm.default, aten.relu_.default, aten.clone.default, aten.add.out):
        kernel_work.operator(func, (x,))
    assert counted() == {"mm": 1, "relu_": 1, "clone": 1, "add": 1}


def test_views_memory_and_numbers_are_no_work():
    x = torch.ones(3)
    for func in (
        aten.view.default,
        aten.t.default,
        aten.empty.memory_format,
        aten.zeros.default,
        aten.fill_.Scalar,
        aten.detach.default,
        aten._local_scalar_dense.default,
    ):
        kernel_work.operator(func, (x,))
    assert counted() == {}


def test_operators_that_a_candidate_registers_are_not_the_librarys():
    library = torch.library.Library("kernel_work_test", "DEF")
    library.define("mine(Tensor x) -> Tensor")
    kernel_work.operator(torch.ops.kernel_work_test.mine.default, (torch.ones(3),))
    assert counted() == {}


def test_what_runs_within_a_launch_is_not_counted():
    with kernel_work.uncounted():
        kernel_work.operator(aten.mm.default, (torch.ones(3),))
    assert counted() == {}


def test_own_kernels_come_first():
    kernel_work.operator(aten.mm.default, (torch.ones(3),))
    kernel_work.count("mine", "f.py", own=True)
    work = kernel_work.collect([torch.ones(2, 3), None], seen=True)
    assert [run.own for run in work.runs] == [True, False]
    assert (work.own, work.launches, work.elements, work.stored) == (1, 2, 6, 0)


def test_a_call_without_the_request_reports_nothing():
    kernel_work.begin("run", CPU)
    assert kernel_work.collect([torch.ones(2)], seen=True) is None


class Compiled:
    """Stands for a kernel that Triton has compiled; remembers its launches."""

    def __init__(self, src):
        self.src, self.name, self.launches = src, "mine", []

    def __getitem__(self, grid):
        return lambda *args, stream=None: self.launches.append((grid, args, stream))


def mine():
    """Stands for a kernel's source."""


OF_A_FUNCTION = SimpleNamespace(fn=SimpleNamespace(fn=mine))


@pytest.mark.parametrize(
    ("kernels", "warmup", "launched"),
    [("run", False, True), ("count", False, True), ("idle", False, False), ("run", True, False)],
)
def test_an_idle_kernel_is_compiled_and_not_launched(kernels, warmup, launched):
    kernel_work.begin(kernels, CPU)
    made = []

    def run(self, *args, grid, warmup, **kwargs):
        made.append(not warmup)

    launches.counted(run)(SimpleNamespace(fn=mine), 2, grid=(1,), warmup=warmup)
    assert made == [launched]


@pytest.mark.parametrize("src", [OF_A_FUNCTION, "the text of an IR"])
@pytest.mark.parametrize(("kernels", "made"), [("run", 1), ("count", 1), ("idle", 0)])
def test_a_kernel_that_the_candidate_has_compiled_is_counted(src, kernels, made):
    kernel_work.begin(kernels, CPU)
    kernel = Compiled(src)
    launches.counting_compiled(Compiled.__getitem__)(kernel, (1, 1, 1))(2, stream=3)
    assert kernel.launches == [((1, 1, 1), (2,), 3)] * made
    work = kernel_work.collect([], seen=True)
    assert work is None if kernels == "run" else work.own == 1


def test_a_template_that_the_candidate_instantiates_is_counted_by_its_name_alone():
    assert kernel_work.launched_own("void cutlass::Kernel2<Gemm<float, 4> >(Params)", "/x/own.so")
    assert counted() == {"cutlass::Kernel2": 1}
