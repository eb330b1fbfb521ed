"""A candidate of several files is one text, which means exactly these files."""

import ast
import base64
import random
import runpy
import sys
import time
import tracemalloc
import zlib

import pytest

from kerneltruth.errors import CandidateError
from kerneltruth.runner.bundle import Bundle, bundle_in, bundle_text, parsed
from kerneltruth.runner.candidate import above_tests, is_torch_only, read_candidate
from kerneltruth.runner.source_numbers import block_sizes

ODD = "'''\\\n\"\"\"\r\nx = '\\x00'\n" + "#" * 146 + "\n"


def bundle(**files):
    """A package of the files, whose entry is `double` of `pkg.ops`."""
    contents = {f"pkg/{name}.py": text.encode() for name, text in files.items()}
    return Bundle(module="pkg.ops", function="double", files={"pkg/__init__.py": b"", **contents})


def read(made):
    return read_candidate(bundle_text(made), "pkg", task_names=("double",), task="double")


@pytest.fixture
def _as_before():
    modules, paths = dict(sys.modules), sys.path[:]
    yield
    for name in {*sys.modules} - {*modules}:
        del sys.modules[name]
    sys.path[:] = paths


@pytest.mark.parametrize("data", [b"", b"\xff\x00\xfe", ODD.encode(), b"plain\n"])
def test_a_text_holds_the_bytes_of_its_files(data):
    made = Bundle(module="ops", function="f", files={"ops.py": b"def f(): 1\n", "data": data})

    assert bundle_in(bundle_text(made)) == made
    assert above_tests(bundle_text(made)) == bundle_text(made)


def test_a_text_that_another_zlib_has_packed_means_the_same():
    made = Bundle(module="ops", function="f", files={"ops.py": b"", "data": b"\xff" * 1000})
    as_here, as_there = (
        base64.b85encode(zlib.compress(b"\xff" * 1000, level)).decode() for level in (9, 0)
    )

    assert bundle_in(bundle_text(made).replace(as_here, as_there)) == made


def test_what_only_looks_like_one_is_none():
    text = bundle_text(bundle(ops="def double(x): return x + x\n"))

    assert bundle_in(text + "double = print\n") is None
    assert bundle_in(text.replace("return getattr", "return  getattr")) is None
    assert bundle_in("def double(x): return x + x\n") is None


@pytest.mark.usefixtures("_as_before")
def test_run_as_a_module_it_has_the_entry_with_its_relative_imports(tmp_path):
    made = bundle(ops="from .more import two\ndef double(x): return two * x\n", more="two = 2\n")
    (tmp_path / "candidate.py").write_text(bundle_text(made))

    assert runpy.run_path(str(tmp_path / "candidate.py"))["double"](21) == 42


@pytest.mark.usefixtures("_as_before")
def test_another_of_the_same_name_may_follow_in_one_process(tmp_path):
    for place, two in enumerate((2, 3)):
        made = bundle(ops="from .more import two\ndef double(x): return two * x\n")
        made = Bundle(
            module=made.module,
            function=made.function,
            files={**made.files, "pkg/more.py": f"two = {two}\n".encode()},
        )
        path = tmp_path / f"candidate_{place}.py"
        path.write_text(bundle_text(made))
        assert runpy.run_path(str(path))["double"](1) == two


@pytest.mark.usefixtures("_as_before")
def test_a_name_that_is_taken_is_said(tmp_path):
    made = Bundle(module="json", function="f", files={"json.py": b"def f(): 1\n"})
    (tmp_path / "candidate.py").write_text(bundle_text(made))

    with pytest.raises(ImportError, match="another module is called 'json'"):
        runpy.run_path(str(tmp_path / "candidate.py"))


def test_it_is_read_as_the_code_of_all_its_modules():
    triton = "import triton\n@triton.jit\ndef kernel(x, BLOCK=64): pass\n"
    found = read(bundle(ops="from .k import kernel\ndef double(x): return x\n", k=triton))

    assert (found.language, found.entry) == ("triton", "double")
    assert found.reads == ("pkg/__init__.py", "pkg/k.py", "pkg/ops.py")
    assert block_sizes(found.source) == (64,)


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("from . import k", "triton"),
        ("from .k import kernel", "triton"),
        ("import pkg.k", "triton"),
        ("from pkg import k", "triton"),
        ("def late():\n    from .between import kernel", "triton"),
        ("from .nothing import kernel", "torch"),
        ("import triton", "torch"),
    ],
)
def test_what_the_entry_does_not_import_says_nothing_of_it(line, language):
    triton = "import triton\n@triton.jit\ndef kernel(x): pass\n"
    made = bundle(
        ops=f"{line}\ndef double(x): return x\n",
        k=triton,
        between="from .k import kernel\n",
    )

    assert read(made).language == language


def test_a_package_that_is_imported_with_its_module_counts():
    made = bundle(ops="def double(x): return x\n")
    files = {**made.files, "pkg/__init__.py": b"import triton\n@triton.jit\ndef kernel(x): pass\n"}

    assert read(Bundle(module="pkg.ops", function="double", files=files)).language == "triton"


def test_a_module_that_is_no_python_matters_only_where_it_is_the_entrys():
    right = "def double(x): return x\n"
    assert read(bundle(ops=right, other="def (:\n")).entry == "double"
    with pytest.raises(CandidateError, match=r"^pkg: pkg/ops.py is not Python: line 1"):
        read(bundle(ops="def (:\n"))


def test_plain_pytorch_of_several_files_is_torch_only_and_kernels_beside_it_are_not():
    plain = bundle(ops="import torch\nfrom .more import f\ndef double(x): return x\n", more="f = 1")
    built = Bundle(
        module=plain.module,
        function=plain.function,
        files={**plain.files, "pkg/f.so": b"\xff__cudaRegisterFunction"},
    )

    assert is_torch_only(read(plain))
    assert not is_torch_only(read(built))
    assert read(built).language == "cuda"


def test_another_source_is_parsed_as_it_is():
    assert ast.unparse(parsed("x = 1")) == "x = 1"


def test_files_that_unpack_to_more_than_a_candidate_may_hold_are_none():
    made = Bundle(module="ops", function="f", files={"ops.py": b"", "data": b"\xff" * 1000})
    small, large = (
        base64.b85encode(zlib.compress(b"\xff" * size, 9)).decode() for size in (1000, 2**24 + 1)
    )

    assert bundle_in(bundle_text(made).replace(small, large)) is None


@pytest.mark.slow
def test_packed_files_are_read_in_a_few_times_their_size():
    noise = Bundle(
        module="k", function="f", files={"k.py": b"", "k.so": random.Random(0).randbytes(2**21)}
    )
    text = bundle_text(noise)
    bundle_in.cache_clear()
    tracemalloc.start()
    found = bundle_in(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found == noise
    assert peak < 12 * 2**21


@pytest.mark.parametrize(
    "inside", ["1," * 10**6, "".join(f"'{n}': '',\n" for n in range(20_000))], ids=["code", "files"]
)
def test_what_only_begins_as_one_is_not_parsed_as_code(inside):
    made = bundle_text(bundle(ops="def double(x): return x + x\n"))
    start = time.process_time()

    assert bundle_in(made.replace("TEXTS = {\n", "TEXTS = {\n" + inside)) is None
    assert time.process_time() - start < 2


def test_modules_are_read_until_they_are_too_many_words():
    triton = "import triton\n@triton.jit\ndef kernel(x): pass\n"
    made = bundle(ops="from .k import kernel\ndef double(x): return x\n", k=triton + "x\n" * 10**5)

    assert read(made).language == "torch"
