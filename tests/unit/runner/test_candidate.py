import hashlib

import pytest

from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import (
    CandidateError,
    above_tests,
    is_torch_only,
    read_candidate,
    read_source,
    returns_value,
)

TASKS = ("softmax", "relu", "rms_norm")
TRITON = "import torch, triton\nimport triton.language as tl\n@triton.jit\ndef kernel(x): pass\n"
GLUON = "import torch, triton\nfrom triton.experimental import gluon\n"


def read(source, task=None):
    return read_candidate(source, "file.py", task_names=TASKS, task=task)


def test_the_function_with_the_tasks_name_is_the_entry():
    assert read("def relu(x): return x").entry == "relu"


def test_the_tasks_name_comes_before_kernel_function_and_run():
    source = "def run(x): pass\ndef kernel_function(x): pass\ndef relu(x): pass"
    assert read(source, "relu").entry == "relu"
    assert read(source, "softmax").entry == "kernel_function"


def test_a_model_class_is_the_last_resort():
    source = "import torch\nclass ModelNew(torch.nn.Module): pass"
    assert read(source, "relu").entry == "ModelNew"


def test_a_wrapping_assignment_is_the_same_entry():
    source = "import torch\ndef relu(x): return x\nrelu = torch.compile(relu)"
    assert read(source).entry == "relu"


def test_a_triton_kernel_is_no_entry():
    source = TRITON + "@triton.jit\ndef relu(x): pass\ndef kernel_function(x): pass"
    assert read(source, "relu").entry == "kernel_function"


def test_a_source_with_two_entries_of_the_name_is_refused_with_their_lines():
    source = "def relu(x): return x\n\ndef relu(x): return -x\n"
    with pytest.raises(
        UserError, match=r"^a.py: 'relu' is defined at lines 1 and 3; .* remove one"
    ):
        read_candidate(source, "a.py", task_names=("relu",))


def test_an_imported_function_is_no_entry():
    source = "from torch.nn.functional import softmax\ndef run(x): return softmax(x)"
    assert read(source, "softmax").entry == "run"


def test_branches_may_each_define_the_entry():
    source = "if 1:\n    def relu(x): return 1\nelse:\n    def relu(x): return 2"
    assert read(source).entry == "relu"


@pytest.mark.parametrize(
    ("source", "language"),
    [
        (TRITON + "def relu(x): pass", "triton"),
        ("from torch.utils.cpp_extension import load_inline\ndef relu(x): pass", "cuda"),
        ("import torch.utils.cpp_extension as e\ndef relu(x): e.load()", "cuda"),
        (GLUON + "@gluon.jit\ndef k(p): pass\ndef relu(x): pass", "gluon"),
        (
            "import triton\nfrom triton.experimental.gluon import jit as made\n"
            "@triton.autotune([], key=[])\n@made(noinline=True)\ndef k(p): pass\n"
            "def relu(x): pass",
            "gluon",
        ),
        (
            "import triton.experimental.gluon\n@triton.experimental.gluon.jit\n"
            "def k(p): pass\ndef relu(x): pass",
            "gluon",
        ),
        (TRITON + GLUON + "@gluon.jit\ndef k(p): pass\ndef relu(x): pass", "triton"),
        (TRITON + GLUON + "def relu(x): pass", "triton"),
        ("import numpy as np\ndef relu(x): return np.maximum(x, 0)", "numpy"),
        ("import numpy, torch\ndef relu(x): return x", "torch"),
        ("def relu(x):\n    'not load_inline, nor triton'", "torch"),
    ],
)
def test_the_language_is_recognized(source, language):
    assert read(source).language == language


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("import torch, math\nimport torch.nn.functional as F\ndef relu(x): return x", True),
        ("import torch, triton\nimport triton.language as tl\ndef relu(x): return x", True),
        (TRITON + "def relu(x): pass", False),
        ("import torch, tilelang\ndef relu(x): return x", False),
        ("import torch\nfrom .kernels import f\ndef relu(x): return f(x)", False),
        ("import numpy as np\ndef relu(x): return np.maximum(x, 0)", False),
    ],
)
def test_what_has_no_kernel_of_its_own_is_torch_only(source, plain):
    assert is_torch_only(read(source)) == plain


@pytest.mark.parametrize(
    ("source", "returns"),
    [
        ("def f(x):\n    y = x\n    for i in y:\n", True),
        ("def f(x):\n    y = x\n", False),
        ("def f(x):\n    return\n", False),
        ("def f(x):\n    g = lambda: x\n    def h():\n        return x\n", False),
        ("def f(x):\n    with x:\n        if x:\n            return x\n", True),
        (
            "class f:\n    def helper(self):\n        return 1\n    def forward(self, x): pass\n",
            False,
        ),
        ("class f:\n    def forward(self, x):\n        return x\n", True),
        ("f = something\n", True),
    ],
)
def test_an_entry_without_a_value_to_return_is_seen_in_its_source(source, returns):
    assert returns_value(source, "f") == returns


@pytest.mark.parametrize(
    ("source", "task", "words"),
    [
        ("def relu(x:\n", None, "not Python: line 1"),
        ("x = '\0'", None, "not Python"),
        ("(" * 5000, None, "not Python"),
        ("def f(x): pass", None, "no entry"),
        ("def f(x): pass", "relu", "it defines f"),
        ("def kernel_function(x): pass", None, "pass --task"),
        ("def relu(x): pass\ndef softmax(x): pass", None, "2 tasks: relu, softmax"),
        ("def relu(x): pass\n\ndef relu(x): pass", "relu", "lines 1 and 3"),
        ("def relu(x): pass", "softmx", "nearest: softmax"),
    ],
)
def test_a_users_mistake_is_one_line(source, task, words):
    with pytest.raises(UserError, match=words) as caught:
        read(source, task)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_a_users_mistake(tmp_path):
    path = tmp_path / "relu.py"
    path.write_bytes(b"def relu(x): return '\xff\xfe'")
    with pytest.raises(UserError, match="byte 21 is not UTF-8"):
        read_source(path)


def test_a_missing_file_is_a_users_mistake(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_source(tmp_path / "nothing.py")


def test_tests_below_a_published_answer_are_no_part_of_it():
    answer = f"def relu(x): return x\n{'#' * 146}\nimport data_utils\n"
    assert above_tests(answer) == "def relu(x): return x"


def test_a_file_is_read_with_its_hash(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text("def relu(x): return x")
    candidate = read_candidate(read_source(path), str(path), task_names=TASKS)
    assert candidate.path == str(path)
    assert candidate.sha256 == hashlib.sha256(b"def relu(x): return x").hexdigest()


def test_a_source_that_no_parser_takes_is_not_python():
    with pytest.raises(CandidateError, match=r"file.py is not Python: .*; correct the file"):
        read("x = 1\0")


@pytest.mark.parametrize(
    "deep", ["x = 1" + "+1" * 40_000, "if 0: pass\n" + "elif 0: pass\n" * 8000, "x = " + "-" * 9999]
)
def test_a_source_that_nests_too_deeply_is_said_to(deep):
    with pytest.raises(CandidateError, match=r"file.py nests too deeply for Python to parse it;"):
        read(f"{deep}\n")


def test_a_source_of_too_many_words_is_said_to_be_too_long():
    with pytest.raises(UserError, match=r"^f\.py is too long: over 100,000 words and signs"):
        read_candidate("x\n" * 100_001, "f.py", task_names=("f",))


def test_a_string_may_be_long_and_branches_may_be_many():
    text = f"TABLE = {'a' * 2**20!r}\n"
    text += "if a: pass\n" + "".join(f"elif a < {n}: pass\n" for n in range(900))
    text += "else:\n    def f(x): return x\n"

    assert read_candidate(text, "f.py", task_names=("f",)).entry == "f"
