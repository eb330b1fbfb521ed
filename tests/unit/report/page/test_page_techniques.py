"""Facts of fast kernels: read from syntax and measured launches, and nothing that is not there."""

from importlib.resources import files

import pytest
from msgspec.structs import replace
from page_material import material_of, result

from kerneltruth.analysis.results import Rates, Ratio, TimedShape, timing
from kerneltruth.report.page.document import page_document
from kerneltruth.report.page.techniques import facts_of, facts_of_launches, facts_of_times

HALF = """
@triton.autotune(configs=[], key=[])
@triton.jit
def kernel(a, b):
    tl.dot(a.to(tl.bfloat16), b)
"""
SAID = """
@triton.jit
def kernel(a):
    '''Not tl.dot(a, b), and not @triton.autotune.'''
    dot = a  # tl.dot(a.to(tl.float16), a)

def host(tl, a):
    return tl.dot(a, a).to(tl.float16)
"""


def test_facts_are_read_from_kernels():
    assert list(facts_of(HALF)) == [
        "calls tl.dot",
        "names float16 or bfloat16 beside tl.dot",
        "autotuned",
    ]


@pytest.mark.parametrize("source", [SAID, "def broken(:", ""])
def test_words_and_host_code_are_no_facts(source):
    assert list(facts_of(source)) == []


@pytest.mark.parametrize(
    ("own", "launches", "operators", "facts"),
    [
        (1.0, 1, 3, ["one launch for several operators"]),
        (1.0, 1, 1, []),
        (1.0, 1, None, []),
        (1.0, 2, 3, []),
        (0.5, 2, 3, ["some launches are PyTorch's own"]),
        (None, None, 3, []),
    ],
)
def test_a_kernel_is_fused_only_if_its_launches_were_seen(own, launches, operators, facts):
    assert list(facts_of_launches(result(own=own, launches=launches), operators)) == facts


PERSISTENT = "programs loop over tiles (persistent)"


@pytest.mark.parametrize(
    ("loop", "facts"),
    [
        ("for i in range(tl.program_id(0), n, tl.num_programs(0)): pass", [PERSISTENT]),
        ("start = tl.program_id(axis=0)\n    for i in tl.range(start, n, SMS): pass", [PERSISTENT]),
        ("for i in range(tl.program_id(0), n, 1): pass", []),
        ("for i in range(0, n, BLOCK): pass", []),
        ("start = tl.program_id(0) * BLOCK\n    for i in range(start, n, BLOCK): pass", []),
        ("for i in range(program_id(0), n, SMS): pass", []),
    ],
)
def test_a_kernel_is_persistent_if_its_loop_goes_on_from_its_programs_number(loop, facts):
    assert list(facts_of(f"@triton.jit\ndef kernel(n, SMS, BLOCK):\n    {loop}\n")) == facts


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        (
            "tl.atomic_add(p, tl.dot(a, b))",
            ["calls tl.dot", "tl.dot with atomic additions (split-K)"],
        ),
        ("tl.atomic_max(p, tl.dot(a, b))", ["calls tl.dot"]),
        ("tl.atomic_add(p, a)", []),
    ],
)
def test_sums_are_split_if_products_are_added_by_atomics(body, facts):
    assert list(facts_of(f"@triton.jit\ndef kernel(p, a, b):\n    {body}\n")) == facts


FEWER = "takes less time than its reference's operations would"


def at_rate(share, *, high=10.1, eager=100.0, rated=True):
    """A kernel of 10 us in which the reference's operations would go at a share of the rate."""
    return TimedShape(
        case="N=4",
        dtype="float32",
        candidate_us=10.0,
        low=9.9,
        high=high,
        baselines={"eager": Ratio(eager, eager / 10, None, None, "faster")} if eager else {},
        rates=Rates(1e12, 1e15, 0.9, share) if rated else None,
    )


@pytest.mark.parametrize(
    ("shape", "facts"),
    [
        (at_rate(5.0), [FEWER]),
        (at_rate(1.3), []),
        # An interval that reaches what the device may do.
        (at_rate(1.5, high=12.0), []),
        # PyTorch's function is too fast for the count as well.
        (at_rate(5.0, eager=20.0), []),
        (at_rate(5.0, eager=None), []),
        (at_rate(None), []),
        (at_rate(5.0, rated=False), []),
    ],
)
def test_a_kernel_does_fewer_operations_if_no_device_could_do_them_in_its_time(shape, facts):
    assert list(facts_of_times(timing([at_rate(0.1), shape]))) == facts


def test_what_compiled_kernels_use_is_listed():
    made = timing([at_rate(0.1)], uses=frozenset({"tma", "tensor_cores", "other"}))
    assert list(facts_of_times(made)) == [
        "compiled to tensor cores",
        "compiled to copies of tiles by TMA",
    ]
    assert list(facts_of_times(None)) == []


def tables(*results, sources, ranks=True):
    material = material_of(*results, sources=sources)
    return {t.name: t for t in page_document(material, ranks=ranks).best or ()}


def test_only_kernels_that_are_surely_faster_count():
    results = [
        result("core/matmul", speedup=3.0, sha256="a"),
        result("core/matmul", speedup=1.001, sha256="b", sample=1),
        result("core/relu", speedup=2.0, sha256="c"),
    ]
    found = tables(*results, sources={"a": HALF, "b": HALF, "c": SAID})["techniques"]
    rows = {row.head: row.cells for row in found.rows}
    assert rows["calls tl.dot"][0].text == "1 of 2"
    (fastest,) = rows["calls tl.dot"][2].kernels
    assert (fastest.who, fastest.speed, fastest.attempt) == ("core/matmul", "3.00\u00d7", 0)


def test_without_a_fast_kernel_or_a_source_there_is_no_table():
    slow, fast = result(speedup=0.5, sha256="a"), result(speedup=2.0, sha256="a")
    assert "techniques" not in tables(slow, sources={"a": HALF})
    assert "techniques" not in tables(fast, sources={})
    assert "techniques" not in tables(replace(fast, timing=None), sources={"a": HALF})


def test_the_corpus_has_the_facts_that_its_names_promise():
    controls = files("kerneltruth.corpus").joinpath("controls")
    facts = {
        n: list(facts_of(controls.joinpath(f"{n}.py").read_text())) for n in ("matmul", "relu")
    }
    assert facts == {"matmul": ["calls tl.dot"], "relu": []}
