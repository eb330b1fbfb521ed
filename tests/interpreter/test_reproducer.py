"""Scripts are run as their receiver would: by another Python process, without kerneltruth."""

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kerneltruth.cases.layouts import place
from kerneltruth.documents.case import Case
from kerneltruth.documents.verdict import Crashed, Failed, RuntimeFault, TimedOut
from kerneltruth.explain.reproducer.script import BODY, Seen, script
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import expect
from kerneltruth.runner.bundle import source_literal
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.spec import Output, task

DOUBLE = task(
    "double(x[M, N], scale=2.0)",
    category="Math",
    dims={"M": "batch", "N": "reduced"},
    reference=lambda x, scale: x * scale,
    description="",
    flops="M*N",
    benchmark={"M": 8, "N": 8},
    extended_dtypes=("float64", "float8_e4m3fn"),
)
COPY = task(
    "copied(x[M, N])",
    category="Math",
    dims={"M": "batch", "N": "reduced"},
    reference=lambda x: x,
    description="",
    flops="M*N",
    benchmark={"M": 8, "N": 8},
    outputs=(Output(compare="exact"),),
    extended_dtypes=("float8_e4m3fn",),
)
CONJUGATED = task(
    "conjugated(z[M, N])",
    category="Math",
    dims={"M": "batch", "N": "reduced"},
    reference=lambda z: z.conj(),
    description="",
    flops="M*N",
    benchmark={"M": 8, "N": 8},
    outputs=(Output(compare="exact"),),
    extended_dtypes=("complex64", "complex128"),
)
SPECTRUM = task(
    "spectrum(x[M, N])",
    category="Math",
    dims={"M": "batch", "N": "reduced"},
    reference=lambda x: torch.fft.fft(x),
    description="",
    flops="M*N",
    benchmark={"M": 8, "N": 8},
    outputs=(Output(dtype="complex"),),
)
SIZED = task(
    "sized(size:=(M, N), pairs:=((0, 1), (M, N)), x[M, N])",
    category="Math",
    dims={"M": "batch", "N": "reduced"},
    reference=lambda size, pairs, x: x * 2,
    description="",
    flops="M*N",
    benchmark={"M": 8, "N": 8},
)
INTEGERS = task(
    "doubled(x[M, N]: int64)",
    category="Math",
    dims={"M": "batch", "N": "reduced"},
    reference=lambda x: x * 2,
    description="",
    flops="M*N",
    benchmark={"M": 8, "N": 8},
    outputs=(Output(dtype="int64", compare="exact"),),
)

TRITON = """\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, (x * scale).to(out_ptr.dtype.element_ty), mask=at < LIMIT)


def double(x, scale=2.0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 16),)](x, out, scale, n, BLOCK=16)
    return out
"""
RIGHT = TRITON.replace("LIMIT", "n")
UNWRITTEN = TRITON.replace("LIMIT", "n // BLOCK * BLOCK")
TUNED = """\
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"SKIP": s}, num_warps=4) for s in (0, 1)], key=["n"])
@triton.jit
def kernel(x_ptr, out_ptr, n, SKIP: tl.constexpr):
    at = tl.arange(0, 64)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, x * 2, mask=at < n - SKIP)


def double(x, scale=2.0):
    out = torch.zeros_like(x)
    kernel[lambda meta: (1,)](x.contiguous(), out, x.numel())
    return out
"""


def script_for(source, *, spec=DOUBLE, verdict=None, config=0, seen=None, **case):
    case = Case(
        task=spec.name,
        dims=case.pop("dims", (("M", 3), ("N", 7))),
        attributes=tuple((a.name, a.default) for a in spec.attributes),
        **case,
    )
    expectation = expect(spec, case, Policy())
    assert expectation.invalid is None
    return script(
        task=spec,
        candidate=read_candidate(source, "kernel.py", task_names=[spec.name], task=spec.name),
        expectation=expectation,
        placed={
            name: place(value, case.layout, seed=1)
            for name, value in expectation.inputs.tensors.items()
        },
        verdict=verdict or Failed(kind="value", detail="5 of 21 elements are wrong"),
        explanation="Only in the last partial tile.",
        config=config,
        seen=seen or Seen(),
    )


def failed(kind):
    return Failed(kind=kind, detail="")


def torch_double(body, imports="import torch"):
    return f"{imports}\n\n\ndef double(x, scale=2.0):\n    {body}\n"


COMPLEX = [
    ("complex64", "uniform", 3),
    ("complex128", "nan_injected", 3),
    ("complex128", "nan_injected", 90),
]
CPP = "from torch.utils.cpp_extension import load_inline\n\n\n"


def edited(script):
    """The script after its reader has changed the kernel."""
    assert script.count("@triton.jit\n") == 1
    return script.replace("@triton.jit\n", "@triton.jit  # corrected\n")


SCRIPTS = {
    "chance": lambda: script_for(torch_double("return x * 2"), verdict=failed("nondeterministic")),
    "no kernel": lambda: script_for(torch_double("return x * 2"), verdict=failed("no_kernel")),
    "memory of C++": lambda: script_for(
        CPP + torch_double("return x * 2"), verdict=failed("uninitialized")
    ),
    "on a GPU": lambda: script_for(torch_double("return x * 2"), seen=Seen(device="cuda:0")),
    "wrong shape": lambda: script_for(torch_double("return (x * 2).T"), verdict=failed("shape")),
    "wrong dtype": lambda: script_for(
        torch_double("return x.double() * 2"), verdict=failed("dtype")
    ),
    "wrong count": lambda: script_for(torch_double("return x, x"), verdict=failed("count")),
    "no tensor": lambda: script_for(torch_double("return 3"), verdict=failed("type")),
    "raises": lambda: script_for(
        torch_double("raise ValueError('odd')"),
        verdict=RuntimeFault(error="ValueError", detail="odd"),
    ),
    "raises half a character": lambda: script_for(
        torch_double("raise ValueError('\\ud800')"),
        verdict=RuntimeFault(error="ValueError", detail=""),
    ),
    "raises without words": lambda: script_for(
        torch_double("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()"),
        verdict=RuntimeFault(error="Mute", detail=""),
    ),
    "cannot run": lambda: script_for(torch_double("raise RuntimeError('no device')")),
    "mutates": lambda: script_for(
        torch_double("out = x * 2; x[0, 0] = 5.0; return out"), verdict=failed("input_mutated")
    ),
    "writes the guard": lambda: script_for(
        torch_double("out = x * 2; x.as_strided((60,), (1,), x.storage_offset())[40] = 1.0")
        + "    return out\n",
        verdict=failed("out_of_bounds"),
    ),
    "reads the guard": lambda: script_for(
        torch_double("return x.as_strided((3, 7), (7, 1), x.storage_offset() + 1) * 2"),
        verdict=failed("out_of_bounds"),
    ),
    "swallows the guard": lambda: script_for(
        torch_double("y = x.as_strided((60,), (1,), x.storage_offset()).nan_to_num(0)")
        + "    return x * 2 + y[40]\n",
        verdict=failed("out_of_bounds"),
    ),
    "aliases": lambda: script_for(
        "def copied(x):\n    return x\n", spec=COPY, verdict=failed("aliased_output")
    ),
    "depends on poison": lambda: script_for(
        torch_double("e = torch.empty(1).isnan().float(); return x * 2 + 1 - e"),
        verdict=failed("uninitialized"),
    ),
    "races": lambda: script_for(
        torch_double("CALLS.append(1); return x * 2 + (len(CALLS) == 9)", "CALLS = []"),
        verdict=failed("nondeterministic"),
    ),
    "dies": lambda: script_for(
        torch_double("os.kill(os.getpid(), 11)", "import os"),
        verdict=Crashed(signal=11, detail=""),
    ),
    "hangs": lambda: script_for(
        "def double(x, scale=2.0):\n    while True:\n        pass\n",
        verdict=TimedOut(seconds=1.0),
    ),
    "strided": lambda: script_for(
        torch_double("return x * 2 if x.stride() == (1, 3) else x"), layout="transposed"
    ),
    "offset": lambda: script_for(
        torch_double("return x * 2 if x.data_ptr() % 16 == 4 else x"), layout="misaligned"
    ),
    "expanded": lambda: script_for(
        torch_double("return x * 2 if 0 in x.stride() else x"),
        layout="expanded",
        recipe="ones",
    ),
    "packed bfloat16": lambda: script_for(
        torch_double("return x * 2"), dtype="bfloat16", dims=(("M", 20), ("N", 31))
    ),
    "packed float8": lambda: script_for(
        "def copied(x):\n    return x.clone()\n",
        spec=COPY,
        dtype="float8_e4m3fn",
        dims=(("M", 20), ("N", 31)),
    ),
    "float8": lambda: script_for(
        "def copied(x):\n    return x.clone()\n", spec=COPY, dtype="float8_e4m3fn"
    ),
    "int64": lambda: script_for("def doubled(x):\n    return x + x\n", spec=INTEGERS),
    **{
        f"{dtype} {recipe} {rows}": functools.partial(
            script_for,
            "def conjugated(z):\n    return z.clone().conj()\n",
            spec=CONJUGATED,
            dtype=dtype,
            recipe=recipe,
            dims=(("M", rows), ("N", 7)),
            verdict=failed("uninitialized"),
        )
        for dtype, recipe, rows in COMPLEX
    },
    "wrong conjugate": lambda: script_for(
        "def conjugated(z):\n    return z + 0\n", spec=CONJUGATED, dtype="complex128"
    ),
    "complex of real": lambda: script_for(
        "import torch\n\n\ndef spectrum(x):\n    return torch.fft.fft(x)\n", spec=SPECTRUM
    ),
    "specials": lambda: script_for(torch_double("return x * 2"), recipe="nan_injected"),
    "swallows nan": lambda: script_for(
        torch_double("return (x * 2).nan_to_num(0.0)"),
        dims=(("M", 30), ("N", 8)),
        recipe="nan_injected",
        verdict=failed("nan"),
    ),
    "empty": lambda: script_for(torch_double("return x * 2"), dims=(("M", 0), ("N", 7))),
    "numpy": lambda: script_for(
        "import numpy as np\n\n\ndef double(x, scale):\n    return x * 2\n"
    ),
    "numpy wrong": lambda: script_for(
        "import numpy as np\n\n\ndef double(x, scale):\n    return x * 3\n"
    ),
    "model": lambda: script_for(
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n"
        "    def __init__(self, scale):\n        super().__init__()\n        self.scale = scale\n\n"
        "    def forward(self, data):\n        return data * self.scale\n"
    ),
    "other names": lambda: script_for("def double(a, factor):\n    return a * factor\n"),
    "sizes by place": lambda: script_for(
        "def sized(*size, pairs, x):\n    pairs[0] + [2]\n    return x.reshape(size) * 2\n",
        spec=SIZED,
    ),
    "first configuration": lambda: edited(script_for(TUNED, config=0)),
    "second configuration": lambda: script_for(TUNED, config=1),
    "unmasked": lambda: script_for(
        TRITON.replace("LIMIT", "n + BLOCK"), verdict=failed("out_of_bounds")
    ),
    "triton half": lambda: edited(script_for(RIGHT, dtype="float16", layout="row_gaps")),
    "as found": lambda: script_for(RIGHT),
}

# Imports torch once and forks for each script, so that many of them are affordable.
BATCH = """
import os, runpy, sys, torch
for path in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        file = os.open(path + ".out", os.O_CREAT | os.O_WRONLY)
        os.dup2(file, 1), os.dup2(file, 2)
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status))
"""


def environment():
    """Without the package, and without the variable that the script must set itself."""
    dropped = ("PYTHONPATH", "TRITON_INTERPRET")
    return {k: v for k, v in os.environ.items() if k not in dropped} | {"OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Exit status and output of every script above."""
    folder = tmp_path_factory.mktemp("scripts")
    paths = []
    for i, make in enumerate(SCRIPTS.values()):
        path = folder / f"{i}.py"
        path.write_text(make())
        paths.append(path)
    done = subprocess.run(
        [sys.executable, "-c", BATCH, *map(str, paths)],
        env=environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    codes = [int(line) for line in done.stdout.split()]
    outputs = [Path(f"{p}.out").read_text() for p in paths]
    return dict(zip(SCRIPTS, zip(codes, outputs, strict=True), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong shape", "output 0 has shape (7, 3); expected (3, 7)"),
        ("wrong dtype", "output 0 is torch.float64; expected torch.float32"),
        ("wrong count", "it returned 2 outputs; expected 1"),
        ("no tensor", "output 0 is a int; expected a tensor"),
        ("raises", "it raised ValueError: odd"),
        ("raises half a character", r"it raised ValueError: \ud800"),
        ("raises without words", "it raised Mute, which has no text"),
        ("mutates", "it changed its input x"),
        ("writes the guard", "it wrote outside of the elements of x"),
        ("unmasked", "it wrote beyond memory that it allocated"),
        ("reads the guard", "got:      nan"),
        ("swallows the guard", "changes with memory that the kernel should not read"),
        ("aliases", "output 0 shares memory with the input x"),
        ("depends on poison", "changes with memory that the kernel should not read"),
        ("races", "the same call gives different results"),
        ("dies", f"it died by signal {int(signal.SIGSEGV)}"),
        ("hangs", "it did not end within 1 s"),
        ("swallows nan", "elements are wrong"),
        ("wrong conjugate", "elements are wrong"),
        ("numpy wrong", "elements are wrong"),
        ("second configuration", "worst element: [2, 6]"),
    ],
)
def test_a_wrong_kernel_is_shown_wrong(ran, name, words):
    code, output = ran[name]
    assert words in output
    assert code == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "strided",
        "offset",
        "expanded",
        "packed bfloat16",
        "packed float8",
        "float8",
        "int64",
        *(" ".join(map(str, c)) for c in COMPLEX),
        "complex of real",
        "specials",
        "empty",
        "numpy",
        "model",
        "other names",
        "sizes by place",
        "first configuration",
        "triton half",
    ],
)
def test_a_right_kernel_is_shown_right(ran, name):
    code, output = ran[name]
    assert output.endswith("RIGHT\n")
    assert code == 0


@pytest.mark.slow
def test_a_kernel_that_cannot_run_here_is_neither_right_nor_wrong(ran):
    code, output = ran["cannot run"]
    assert "NOT JUDGED: it cannot run without a GPU: RuntimeError: no device" in output
    assert code == 2


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("chance", "this script alone cannot rule out nondeterministic"),
        ("no kernel", "this script alone cannot rule out no_kernel"),
        ("memory of C++", "this script alone cannot rule out uninitialized"),
        ("on a GPU", "it was found on cuda:0, and nothing wrong shows on the CPU"),
        ("as found", "Triton's interpreter differs from a GPU: use one"),
    ],
)
def test_what_a_script_cannot_see_is_not_called_right(ran, name, why):
    code, output = ran[name]
    assert output.splitlines()[-1].startswith("NOT JUDGED: ")
    assert why in output
    assert code == 2


def test_a_script_has_only_the_parts_that_it_needs():
    plain = script_for(torch_double("return x * 2"))
    assert "# <" not in plain
    parts = ("numpy", "zlib", "autotune", "model_called", "stepped", "os.fork", "def repeat")
    for part in (*parts, "offer_small_models"):
        assert part in BODY
        assert part not in plain, part


def test_inexact_arithmetic_of_the_interpreter_is_noted(ran):
    assert "note: Triton's interpreter computes this dtype wrongly" in ran["packed bfloat16"][1]
    assert "note" not in ran["strided"][1]


@pytest.mark.slow
@pytest.mark.parametrize(("source", "code"), [(RIGHT, 2), (UNWRITTEN, 1)])
def test_the_script_runs_as_it_stands(tmp_path, source, code):
    path, temporary = tmp_path / "reproduce.py", tmp_path / "temporary"
    path.write_text(script_for(source))
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, str(path)],
        env=environment() | {"TMPDIR": str(temporary)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    assert "case: double M=3 N=7 scale=2.0 float32 uniform" in done.stdout
    if code == 1:
        assert "output 0: 5 of 21 elements are wrong" in done.stdout
        assert "worst element: [2, 2]" in done.stdout
        assert "got:      nan" in done.stdout
    assert not list(temporary.iterdir()), "what it made for itself is gone"


def test_a_reader_sees_what_went_in_what_was_expected_and_what_came():
    lines = ("inputs:   x = [1.0]", "expected: [2.0]", "got:      [nan]")
    head = script_for(UNWRITTEN, seen=Seen(lines=lines)).splitlines()[:40]
    assert [head.index(line) for line in lines] == [5, 6, 7]
    assert "def kernel(x_ptr, out_ptr, scale, n, BLOCK: tl.constexpr):" in head


def test_a_long_message_of_a_compiler_is_cut():
    text = script_for(RIGHT, verdict=failed("value"), seen=Seen())
    long = script_for(RIGHT, verdict=Failed(kind="value", detail="no such thing " * 99))
    assert len(long.splitlines()) - len(text.splitlines()) == 3


def test_the_source_goes_in_verbatim_and_readable():
    text = script_for(UNWRITTEN)
    assert UNWRITTEN in text
    assert "Verdict: fail value. 5 of 21 elements are wrong" in text
    assert "Only in the last partial tile." in text


@pytest.mark.parametrize(
    "source",
    [
        "plain\n",
        'with """ quotes\n',
        "with ''' quotes\n",
        "both ''' and \"\"\"\n",
        "ends with a backslash \\",
        "ends with a quote '",
        "\\n and \\x41 stay escapes\n",
        "carriage\r\nreturns\r\n",
        "letters äöü 中 \u2028 \x00",
    ],
)
def test_a_source_literal_means_exactly_the_source(source):
    scope = {}
    exec(f"text = {source_literal(source)}", scope)
    assert scope["text"] == source


def test_few_elements_are_written_as_numbers():
    text = script_for(RIGHT, recipe="ones", dims=(("M", 1), ("N", 2)))
    assert "'data': [1.0, 1.0]" in text


def test_the_same_finding_gives_the_same_script():
    assert script_for(RIGHT, dims=(("M", 20), ("N", 31))) == script_for(
        RIGHT, dims=(("M", 20), ("N", 31))
    )
