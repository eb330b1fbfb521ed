"""Launches of own kernels are counted beside PyTorch's operators, and made to do nothing."""

from candidates_for_tests import floats, opened, vector

DOUBLE = """
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n) * 2, i < n)
"""
OWN = "double[(1,)](x, y, x.numel(), BLOCK=8)"
VALUES = (1.0, 2.0, 3.0)
POISON = b"0123456789abcdef"


def observed(runner, *lines, kernels="count", before=DOUBLE):
    body = "\n".join(f"    {line}" for line in lines)
    with opened(runner, f"{before}\ndef f(x):\n{body}\n") as session:
        return session.call([vector(*VALUES)], poison=POISON, kernels=kernels, deadline_s=60)


def work_of(runner, *lines, **more):
    return observed(runner, *lines, **more).work


def counted(work):
    return [(run.name, run.module, run.own, run.launches) for run in work.runs]


def test_nothing_is_counted_unless_requested(runner):
    assert work_of(runner, "return torch.relu(x)", kernels="run") is None


def test_an_own_kernel_that_does_all_is_the_only_launch(runner):
    work = work_of(runner, "y = torch.empty_like(x)", OWN, "return y.view(-1)")
    assert counted(work) == [("double", "f.py", True, 1)]
    assert (work.own, work.launches, work.elements, work.stored) == (1, 1, 3, 3)


def test_a_kernel_that_torch_launches_for_the_candidate_is_its_own(runner):
    """Published libraries launch by `wrap_triton`, so that torch.compile sees their kernels."""
    wrapped = OWN.replace("double", "torch.library.wrap_triton(double)")
    work = work_of(runner, "y = torch.empty_like(x)", wrapped, "return y.view(-1)")
    assert counted(work) == [("double", "f.py", True, 1)]
    assert (work.own, work.launches, work.elements, work.stored) == (1, 1, 3, 3)


def test_a_library_product_and_an_own_epilogue_are_both_counted(runner):
    lines = ("y = torch.empty_like(x)", "x = torch.outer(x, x)[0] + 1", OWN, "return y")
    work = work_of(runner, *lines)
    assert counted(work) == [
        ("double", "f.py", True, 1),
        ("mul", "aten", False, 1),
        ("add", "aten", False, 1),
    ]


def test_a_kernel_that_is_never_launched_counts_for_nothing(runner):
    work = work_of(runner, "return torch.relu(x)")
    assert (work.own, counted(work), work.stored) == (0, [("relu", "aten", False, 1)], 0)


def test_what_a_kernel_stores_elsewhere_is_not_among_the_outputs(runner):
    work = work_of(runner, "y = torch.empty_like(x)", OWN, "return x * 2")
    assert (work.own, work.stored) == (1, 0)


def test_strided_outputs_are_counted_by_their_elements(runner):
    work = work_of(runner, "y = torch.zeros(8, device=x.device)", OWN, "return y[::2]")
    assert (work.elements, work.stored) == (4, 2)


def test_memory_and_views_are_no_work(runner):
    lines = (
        "y = torch.zeros(3, device=x.device)",
        "z = torch.full((3,), 2.0, device=x.device).view(3, 1).t()",
        OWN,
        "return y",
    )
    assert counted(work_of(runner, *lines)) == [("double", "f.py", True, 1)]


def test_copies_are_work_of_the_library(runner):
    lines = ("y = torch.empty_like(x)", OWN, "return y.to(torch.float16).float()")
    assert counted(work_of(runner, *lines))[1:] == [("_to_copy", "aten", False, 2)]


def test_work_on_the_host_is_not_counted(runner):
    lines = ("y = torch.empty_like(x)", OWN, "x.cpu().sum()", "return y")
    assert ("sum", "aten", False, 1) not in counted(work_of(runner, *lines))


def test_a_rehearsal_of_an_autotuned_kernel_is_not_counted(runner):
    tuned = DOUBLE.replace(
        "@triton.jit",
        '@triton.autotune([triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 8})], ["n"])\n'
        "@triton.jit",
    )
    lines = ("y = torch.empty_like(x)", "double[(1,)](x, y, 3)", "return y")
    assert work_of(runner, *lines, before=tuned).own == 1


def test_idle_kernels_are_counted_and_do_nothing(runner):
    lines = ("y = torch.zeros(3, device=x.device)", f"made = {OWN}", "return y + made.n_regs * 0")
    seen = observed(runner, *lines, kernels="idle")
    assert seen.work.own == 1
    assert floats(seen) == [0.0, 0.0, 0.0]


def test_a_call_after_an_idle_one_runs_its_kernels(runner):
    source = f"{DOUBLE}\ndef f(x):\n    y = torch.empty_like(x)\n    {OWN}\n    return y\n"
    with opened(runner, source) as session:
        for kernels, first in (("idle", None), ("run", 2.0)):
            seen = session.call([vector(*VALUES)], poison=POISON, kernels=kernels, deadline_s=60)
            assert first is None or floats(seen)[0] == first
            assert (seen.work is None) == (kernels == "run")
