"""Each load and store of the interpreter is held against the buffers that exist."""

import struct
import textwrap

import pytest
from candidates_for_tests import HEAD, call_once, floats, opened

from kerneltruth.runner.arguments import TensorArgument
from kerneltruth.runner.observation import Access

ADD_ONE = """
@triton.jit
def k(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    {load}
    {store}

def f(x):
    y = {allocate}
    k[({grid},)](x, y, x.numel(), B=4)
    return y
"""
LOAD = "v = tl.load(x + i, mask=i < n)"
STORE = "tl.store(y + i, v + 1, mask=i < n)"


def kernel(
    load=LOAD, store=STORE, allocate="torch.empty_like(x)", grid="triton.cdiv(x.numel(), 4)"
):
    return ADD_ONE.format(load=load, store=store, allocate=allocate, grid=grid)


@pytest.fixture
def call_source(runner):
    def call(text, *values):
        observation = call_once(runner, text, *(values or (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)))
        assert observation.ended == "returned", observation.message
        return observation

    return call


def line_of(text, what):
    """In the source that `called` makes of a text."""
    lines = (HEAD + textwrap.dedent(text)).splitlines()
    return next(n for n, line in enumerate(lines, 1) if what in line)


def test_a_load_beyond_is_noted_with_its_place_and_gives_nan(call_source):
    text = kernel(load="v = tl.load(x + i + 1, mask=i < n)")
    observation = call_source(text)
    assert observation.accesses == (
        Access(
            kernel="k",
            line=line_of(text, "tl.load"),
            write=False,
            program=(1, 0, 0),
            buffer="x",
            element=6,
            elements=6,
        ),
    )
    assert floats(observation)[:5] == [3.0, 4.0, 5.0, 6.0, 7.0]


def test_a_load_before_is_noted_with_a_negative_element(call_source):
    (access,) = call_source(kernel(load="v = tl.load(x + i - 2, mask=i < n)")).accesses
    assert (access.element, access.program) == (-2, (0, 0, 0))


@pytest.mark.parametrize(
    "allocate", ["torch.empty_like(x)", "torch.zeros_like(x)", "x.clone()", "x * 2", "x.cumsum(0)"]
)
def test_a_store_beyond_any_tensor_is_noted_and_not_performed(call_source, allocate):
    observation = call_source(kernel(store="tl.store(y + i, v + 1)", allocate=allocate))
    (access,) = observation.accesses
    assert (access.write, access.element, access.elements) == (True, 6, 6)
    assert floats(observation) == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert observation.guards_hit == ()


def test_addresses_where_no_memory_is_do_not_end_the_process(call_source):
    far = "v = tl.load(x + i.to(tl.int64) * 2**40, mask=i < n)"
    observation = call_source(kernel(load=far, store="tl.store(y + i.to(tl.int64) * 2**41, v)"))
    assert [a.write for a in observation.accesses] == [False, True]


@pytest.mark.parametrize(
    "operation",
    [
        "tl.atomic_add(y + i, v)",
        "tl.atomic_max(y + i, v)",
        "tl.atomic_xchg((y + i).to(tl.pointer_type(tl.int32), bitcast=True), i)",
        "tl.atomic_cas((y + i).to(tl.pointer_type(tl.int32), bitcast=True), i, i)",
    ],
)
def test_an_atomic_operation_beyond_is_noted(call_source, operation):
    (access,) = call_source(kernel(store=operation, allocate="torch.zeros_like(x)")).accesses
    assert (access.write, access.element) == (True, 6)


def test_a_block_that_is_not_checked_along_its_end_is_noted(call_source):
    block = (
        "p = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * B,), (B,), (0,)); "
        "v = tl.load(p{check})"
    )
    unchecked = call_source(kernel(load=block.format(check="")))
    assert [a.element for a in unchecked.accesses] == [6]
    assert call_source(kernel(load=block.format(check=", boundary_check=(0,)"))).accesses == ()


def test_the_line_is_that_of_the_helper_that_loads(call_source):
    text = kernel(load="v = get(x, i)") + (
        "\n@triton.jit\ndef get(p, at):\n    return tl.load(p + at + 1)\n"
    )
    (access,) = call_source(text).accesses
    assert (access.kernel, access.line) == ("k", line_of(text, "return tl.load"))


CLEAN = {
    "masked": kernel(),
    "more programs than elements": kernel(grid="7"),
    "all masked off, far away": kernel(
        store=STORE + "\n    tl.store(y + i.to(tl.int64) * 2**40, v, mask=i < 0)"
    ),
    "a null pointer that is never used": """
@triton.jit
def k(x, bias, y, n, HAS: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    if HAS:
        v += tl.load(bias + i, mask=i < n)
    tl.store(y + i, v, mask=i < n)

def f(x):
    y = torch.empty_like(x)
    k[(1,)](x, None, y, 6, HAS=False, B=8)
    return y
""",
    "views into one storage": """
@triton.jit
def k(x, y):
    i = tl.arange(0, 2)
    tl.store(y + i, tl.load(x + i - 2) + tl.load(x + i) + tl.load(x + i + 2))

def f(x):
    whole = torch.zeros(10)[1:].cuda()
    y = whole[3:5]
    k[(1,)](x[2:4], y)
    return y
""",
    "elements of another size": """
@triton.jit
def k(x, y):
    i = tl.arange(0, 4)
    tl.store(y + i, tl.load(x + i))

def f(x):
    y = torch.empty(2, device="cuda", dtype=torch.float32)
    k[(1,)](x[:2].view(torch.int16), y.view(torch.int16))
    return y
""",
    "a choice between two buffers": """
@triton.jit
def k(a, b, y):
    i = tl.arange(0, 4)
    tl.store(y + i, tl.load(tl.where(i < 2, a + i, b + i - 2)))

def f(x):
    y = torch.empty(4, device="cuda")
    k[(1,)](x[:2].clone(), x[2:4].clone(), y)
    return y
""",
    "a table of pointers": """
@triton.jit
def k(table, y):
    i = tl.arange(0, 2)
    for t in range(2):
        p = tl.load(table + t).to(tl.pointer_type(tl.float32))
        tl.store(y + t * 2 + i, tl.load(p + i))

def f(x):
    parts = [x[:2].clone(), x[2:4] * 2]
    table = torch.tensor([p.data_ptr() for p in parts], device="cuda")
    y = torch.empty(4, device="cuda")
    k[(1,)](table, y)
    return y
""",
    "an address as a number": """
@triton.jit
def k(address, y):
    i = tl.arange(0, 2)
    # Where it is below 2**31, it comes as an int32.
    pointer = address.to(tl.int64).to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.load(pointer + i))

def f(x):
    y = torch.empty(2, device="cuda")
    k[(1,)](x.data_ptr(), y)
    return y
""",
    "a descriptor": """
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def k(x, y, n):
    v = x.load([4])
    i = 4 + tl.arange(0, 4)
    tl.store(y + i, v, mask=i < n)

def f(x):
    y = torch.zeros_like(x)
    k[(1,)](TensorDescriptor.from_tensor(x, [4]), y, x.numel())
    return y
""",
    "nothing in, nothing out": """
@triton.jit
def k(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

def f(x):
    y = torch.empty_like(x[:0])
    k[(1,)](x[:0], y, 0, B=8)
    return y
""",
    "memory that grew": """
@triton.jit
def k(y):
    tl.store(y + tl.arange(0, 64), 1.0)

def f(x):
    y = torch.empty(4, device="cuda").resize_(64)
    k[(1,)](y)
    return y
""",
    "a buffer kept from the call before": """
kept = []

@triton.jit
def k(x, y):
    i = tl.arange(0, 2)
    tl.store(y + i, tl.load(x + i))

def f(x):
    kept.append(torch.empty(2, device="cuda"))
    for y in kept:
        k[(1,)](x, y)
    return kept[0]
""",
}


@pytest.mark.parametrize("name", CLEAN)
def test_what_stays_in_its_memory_is_never_noted(call_source, name):
    assert call_source(CLEAN[name]).accesses == ()


def strided(*values):
    """Every second element of a buffer with a guard of two elements on each side."""
    buffer = struct.pack(f"<{len(values) * 2 + 4}f", *range(len(values) * 2 + 4))
    return TensorArgument(
        name="x", dtype="float32", shape=(len(values),), strides=(2,), offset=2, buffer=buffer
    )


@pytest.mark.parametrize(("reach", "element"), [(10, None), (11, 11)])
def test_what_lies_between_the_elements_of_an_input_may_be_read_and_what_follows_not(
    runner, reach, element
):
    text = f"""
    @triton.jit
    def k(x, y):
        tl.store(y, tl.load(x + {reach}))

    def f(x):
        y = torch.empty(1, device="cuda")
        k[(1,)](x, y)
        return y
    """
    with opened(runner, text) as session:
        observation = session.call([strided(*range(6))], poison=bytes(16))
    assert [a.element for a in observation.accesses] == ([] if element is None else [element])
    # The guard can be read: a result that depends on it shows by other guards.
    assert floats(observation) == [reach + 2.0]
    assert [a.elements for a in observation.accesses] in ([], [11])


def test_a_second_call_begins_anew(runner):
    text = kernel(load="v = tl.load(x + i + 1, mask=i < n)")
    with opened(runner, text) as session:
        first, second = (session.call([strided(1.0)], poison=bytes(16)) for _ in range(2))
    assert len(first.accesses) == len(second.accesses) == 1
