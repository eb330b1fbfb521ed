"""Every launch compiles for real without a device, and what no GPU would accept is refused."""

import textwrap
from importlib.metadata import version

import pytest
from candidates_for_tests import again, call_once, opened

from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.interpreter.versions import number

TRITON = number(version("triton"))
TARGETS = ("sm_80", "sm_89", "sm_90", "sm_100", "gfx942")

LAUNCH = """
def f(x):
    y = torch.empty(4096, device=x.device, dtype=x.dtype)
    kernel[(1,)](x, y{arguments})
    return y
"""

ACCEPTED = {
    "a masked copy": """
        @triton.jit
        def kernel(x, y):
            i = tl.arange(0, 128)
            tl.store(y + i, tl.load(x + i, mask=i < 100, other=0.0), mask=i < 100)
    """,
    "a nested function and a loop": """
        @triton.jit
        def square(v):
            return v * v

        @triton.jit
        def kernel(x, y):
            i = tl.arange(0, 64)
            total = tl.zeros((64,), tl.float32)
            for step in range(0, 256, 64):
                total += square(tl.load(x + step + i))
            tl.store(y, tl.sum(total, axis=0))
    """,
    "a product on tensor cores": """
        @triton.jit
        def kernel(x, y):
            i = tl.arange(0, 32)
            tile = tl.load(x + i[:, None] * 32 + i[None, :]).to(tl.float16)
            tl.store(y + i[:, None] * 32 + i[None, :], tl.dot(tile, tl.trans(tile)))
    """,
    "libdevice, random numbers and atomics": """
        from triton.language.extra import libdevice

        @triton.jit
        def kernel(x, y):
            i = tl.arange(0, 64)
            v = libdevice.tanh(tl.load(x + i)) + tl.rand(7, i)
            tl.atomic_add(y + i, tl.softmax(v))
    """,
    "a scan": """
        @triton.jit
        def kernel(x, y):
            i = tl.arange(0, 64)
            tl.store(y + i, tl.cumsum(tl.load(x + i), axis=0))
    """,
}
BLOCK_POINTER = """
    @triton.jit
    def kernel(x, y):
        p = tl.make_block_ptr(x, (64,), (1,), (0,), (64,), (0,))
        tl.store(y + tl.arange(0, 64), tl.load(p, boundary_check=(0,)))
"""

REFUSED = {
    "a range that is no power of two": ("tl.store(y + tl.arange(0, 100), 0.0)", "power of 2"),
    "a product over fewer than 16 elements": (
        "i = tl.arange(0, 32); k = tl.arange(0, 8); "
        "a = tl.load(x + i[:, None] + k[None, :]).to(tl.float16); "
        "tl.store(y + i[:, None] * 32 + i[None, :], tl.dot(a, tl.trans(a)))",
        "K >= 16",
    ),
    "exp of half precision": (
        "i = tl.arange(0, 64); tl.store(y + i, tl.exp(tl.load(x + i).to(tl.float16)))",
        "fp16",
    ),
    "exp of integers": ("i = tl.arange(0, 64); tl.store(y + i, tl.exp(i))", "int32"),
    "an undefined name": ("tl.store(y, nowhere)", "nowhere is not defined"),
    "shapes that do not fit": (
        "tl.store(y + tl.arange(0, 64), tl.load(x + tl.arange(0, 32)))",
        "64",
    ),
    "a variable that changes its type in a loop": (
        "v = 0.0\n    for i in range(4):\n        v = v + tl.load(x + tl.arange(0, 64))\n"
        "    tl.store(y, tl.sum(v))",
        "type",
    ),
    "branches that return different types": ("tl.store(y, pick(tl.load(x)))", "return"),
}

PICK = """
@triton.jit
def pick(v):
    if v > 0:
        return v
    else:
        return (v > 1).to(tl.int32)
"""


@pytest.fixture
def runner(runner, monkeypatch):
    """The runner, with one target."""
    monkeypatch.setattr(runner, "targets", ("sm_90",))
    return runner


@pytest.fixture
def everywhere(runner, monkeypatch):
    """The runner, with all targets."""
    monkeypatch.setattr(runner, "targets", TARGETS)
    return runner


def candidate(kernel, arguments=""):
    return textwrap.dedent(kernel) + LAUNCH.format(arguments=arguments)


def compiled(runner, text, config=0):
    return call_once(runner, text, *[1.0] * 256, mode="compile", config=config).binaries


def kernel_of(body):
    return candidate(f"{PICK}\n@triton.jit\ndef kernel(x, y):\n    {body}\n")


@pytest.mark.slow
@pytest.mark.parametrize("what", ACCEPTED)
def test_a_correct_kernel_compiles_for_every_target(everywhere, what):
    binaries = compiled(everywhere, candidate(ACCEPTED[what]))
    assert [(b.target, b.ok, b.error) for b in binaries] == [(t, True, None) for t in TARGETS]


@pytest.mark.slow
def test_a_block_pointer_compiles_where_the_language_has_them(runner):
    (binary,) = compiled(runner, candidate(BLOCK_POINTER))
    removed = "Block pointers have been removed" in (binary.error or "")
    assert (binary.ok, removed) == ((False, True) if TRITON >= (3, 9) else (True, False))


@pytest.mark.slow
def test_static_facts_are_read_from_every_binary(everywhere):
    for binary in compiled(everywhere, candidate(ACCEPTED["a product on tensor cores"])):
        assert (binary.kernel, binary.num_warps, binary.spills) == ("kernel", 4, 0)
        assert 16 <= binary.registers <= 255
        assert 50 <= binary.instructions <= 2000
        assert binary.shared_bytes >= 1024
        assert 0 < binary.seconds < 60


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_gpu_accepts_is_refused(runner, what):
    body, words = REFUSED[what]
    (binary,) = compiled(runner, kernel_of(body))
    assert (binary.kernel, binary.target, binary.ok) == ("kernel", "sm_90", False)
    assert words in binary.error


@pytest.mark.slow
def test_shared_memory_is_limited_by_the_target(everywhere):
    pipelined = """
        @triton.jit
        def kernel(x, y):
            i, k = tl.arange(0, 128), tl.arange(0, 64)
            total = tl.zeros((128, 128), tl.float32)
            p, q = x.to(tl.pointer_type(tl.float16)), y.to(tl.pointer_type(tl.float16))
            for step in range(0, 1024, 64):
                a = tl.load(p + i[:, None] * 1024 + step + k[None, :])
                b = tl.load(q + (step + k[:, None]) * 128 + i[None, :])
                total += tl.dot(a, b)
            tl.store(y + i[:, None] * 128 + i[None, :], total)
    """
    binaries = compiled(everywhere, candidate(pipelined, ", num_warps=8, num_stages=5"))
    verdicts = {b.target: (b.ok, "shared memory" in (b.error or "")) for b in binaries}
    assert (verdicts["sm_89"], verdicts["sm_90"]) == ((False, True), (True, False))


def test_a_target_without_clusters_refuses_several_ctas(everywhere):
    binaries = compiled(everywhere, candidate(ACCEPTED["a masked copy"], ", num_ctas=2"))
    verdicts = {b.target: b.ok for b in binaries}
    assert (verdicts["sm_80"], verdicts["sm_89"], verdicts["sm_90"]) == (False, False, True)


def test_a_refusal_does_not_keep_later_launches_from_compiling(runner):
    text = """
    @triton.jit
    def broken(y):
        tl.store(y + tl.arange(0, 3), 0.0)

    @triton.jit
    def fine(y):
        tl.store(y + tl.arange(0, 4), 0.0)

    def f(x):
        broken[(1,)](x)
        fine[(1,)](x)
    """
    assert [(b.kernel, b.ok) for b in compiled(runner, text)] == [("broken", False), ("fine", True)]


def test_a_specialisation_is_compiled_once(runner):
    with opened(runner, candidate(ACCEPTED["a masked copy"]), mode="compile") as session:
        assert len(again(session, *[1.0] * 128).binaries) == 1
        assert again(session, *[1.0] * 128).binaries == ()


def test_nothing_is_launched(runner):
    text = candidate(ACCEPTED["a masked copy"]).replace(
        "kernel[(1,)](x, y)", "kernel[(1,)](x, x.fill_(7)); assert x[0] == 7; y.zero_()"
    )
    assert call_once(runner, text, 1.0, mode="compile").ended == "returned"


def test_a_thread_that_is_left_behind_changes_nothing(runner):
    text = "import threading\n" + candidate(ACCEPTED["a masked copy"]).replace(
        "    return y", "    threading.Timer(0.02, int).start()\n    return y"
    )
    assert call_once(runner, text, 1.0, mode="compile").ended == "returned"


def test_host_code_that_stumbles_over_garbage_is_no_compile_error(runner):
    text = """
    @triton.jit
    def size(y):
        tl.store(y, 4)

    @triton.jit
    def kernel(y, N: tl.constexpr):
        tl.store(y + tl.arange(0, N), 0.0)

    def f(x):
        n = torch.empty(1, dtype=torch.int64, device=x.device)
        size[(1,)](n)
        kernel[(1,)](x, N=int(n.item()))
    """
    assert [(b.kernel, b.ok) for b in compiled(runner, text)] == [("size", True)]


TUNED = """
@triton.autotune([triton.Config({"N": 4}), triton.Config({"N": %d})], ["n"])
@triton.jit
def kernel(x, y, n, N: tl.constexpr):
    tl.static_assert(N < 64)
    tl.store(y + tl.arange(0, N), 0.0)

def f(x):
    kernel[lambda meta: (triton.cdiv(9, meta["N"]),)](x, x, x.numel())
"""


def test_the_chosen_configuration_is_compiled(runner):
    (first,), (second,) = (compiled(runner, TUNED % 16, config=c) for c in (0, 1))
    assert (first.ok, second.ok) == (True, True)
    assert first.instructions <= second.instructions


def test_a_configuration_that_triton_passes_over_is_no_refusal(runner):
    assert [b.ok for b in compiled(runner, TUNED % 64, config=1)] == [True]


def test_a_configuration_that_is_wrong_is_a_refusal(runner):
    assert [b.ok for b in compiled(runner, TUNED % 24, config=1)] == [False]


def test_an_autotuned_kernel_without_a_possible_configuration_is_refused(runner):
    text = (TUNED % 64).replace('{"N": 4}', '{"N": 128}')
    assert [b.ok for b in compiled(runner, text)] == [False]


def test_a_warmed_up_kernel_tells_its_registers(runner):
    text = candidate(ACCEPTED["a masked copy"]).replace(
        "kernel[(1,)](x, y)",
        "k = kernel.warmup(x, y, grid=(1,)); k._init_handles(); "
        "assert k.n_regs > 8 and k.metadata.shared >= 0; k[(1, 1, 1)](x, y)",
    )
    observation = call_once(runner, text, 1.0, mode="compile")
    assert (observation.ended, [b.ok for b in observation.binaries]) == ("returned", [True])


def test_a_tensor_descriptor_is_compiled(runner):
    text = """
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def kernel(d, y):
        tile = d.load([0, 0])
        i = tl.arange(0, 16)
        tl.store(y + i[:, None] * 16 + i[None, :], tile)

    def f(x):
        kernel[(1,)](TensorDescriptor.from_tensor(x.view(16, 16), [16, 16]), x)
    """
    assert [(b.ok, b.error) for b in compiled(runner, text)] == [(True, None)]


GLUON = """
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

@gluon.jit
def kernel(x, y):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.arange(0, 512, layout=layout)
    gl.store(y + i, gl.exp(gl.load(x + i)))
"""


def test_gluon_compiles_without_a_gpu_and_does_not_run(runner):
    source = GLUON + LAUNCH.format(arguments=", num_warps=4")
    alone = read_candidate(source, "f.py", task_names=("f",))
    assert alone.language == "gluon"
    with runner.open(alone, "compile") as session:
        (binary,) = again(session, *[1.0] * 512).binaries
    assert (binary.kernel, binary.target, binary.ok) == ("kernel", "sm_90", True)
    with runner.open(alone) as session:
        assert session.loaded.ended == "unsupported"
        assert session.loaded.message.startswith("a Gluon kernel needs a GPU")


def test_a_gluon_kernel_beside_one_of_triton_is_unsupported_where_it_is_launched(runner):
    seen = call_once(runner, GLUON + LAUNCH.format(arguments=""), *[1.0] * 512)
    assert seen.ended == "unsupported"
    assert seen.message.startswith("kernel is a Gluon kernel")
    assert call_once(runner, GLUON + "def f(x):\n    return x + 1", 1.0).ended == "returned"


def test_a_compiled_kernel_says_what_it_uses(runner):
    text = """
        @triton.jit
        def wide(x, y):
            i = tl.arange(0, 1024)
            tl.store(y + i, tl.load(x + i))

        @triton.jit
        def scattered(x, y):
            i = tl.arange(0, 1024)
            tl.atomic_add(y + i, tl.load(x + i * 3))

        @triton.jit
        def tiles(x, y):
            read = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [32, 32])
            written = tl.make_tensor_descriptor(y, [64, 64], [64, 1], [32, 32])
            tile = read.load([0, 0]).to(tl.float16)
            written.store([0, 0], tl.dot(tile, tile))

        def f(x):
            y = torch.empty(4096, device=x.device)
            triton.set_allocator(lambda size, *_: torch.empty(size, device=x.device))
            for kernel in (wide, scattered, tiles):
                kernel[(1,)](x, y)
            return y
    """
    found = {b.kernel: (b.tensor_cores, b.uses) for b in compiled(runner, text)}
    assert found == {
        "wide": (False, ("wide_loads",)),
        "scattered": (False, ("atomics",)),
        "tiles": (True, ("tma",)),
    }
