"""What `check` says of files that are no kernels, and of kernels that misbehave."""

import json
import os

import pytest

CHECK = ("check", "--device", "cpu", "--cases", "3", "--timeout", "2")

TRITON_RELU = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    {body}

def relu(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), B=128)
    return y
"""


def refused(ran):
    """The one line of a user's mistake."""
    assert ran.code == 2, ran
    assert ran.out == ""
    lines = ran.err.splitlines()
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("kerneltruth: ")
    return lines[0]


def document_of(ran):
    assert "Traceback" not in ran.err
    return json.loads(ran.out)


@pytest.fixture
def check(kt, candidate, tmp_path, monkeypatch):
    """Judge a source text: exit code and document."""
    monkeypatch.chdir(tmp_path)

    def run(text, *more):
        ran = kt(*CHECK, candidate(text), "--json", *more)
        return ran.code, document_of(ran)

    return run


def test_a_binary_file_is_not_python(kt, tmp_path):
    path = tmp_path / "binary.py"
    path.write_bytes(bytes(range(256)))
    assert "is not text" in refused(kt(*CHECK, path))


def test_a_text_file_is_not_python(kt, candidate):
    line = refused(kt(*CHECK, candidate("Dear judge,\nplease find attached a kernel.\n")))
    assert "is not Python: line 1" in line


def test_an_empty_folder_holds_no_kernel(kt, tmp_path):
    assert "the folder has no Python files" in refused(kt(*CHECK, tmp_path))


def test_a_missing_file_is_named(kt, tmp_path):
    assert "nowhere.py" in refused(kt(*CHECK, tmp_path / "nowhere.py"))


def test_a_dangling_link_is_a_missing_file(kt, tmp_path):
    (tmp_path / "link.py").symlink_to(tmp_path / "nowhere.py")
    assert "there is no such file" in refused(kt(*CHECK, tmp_path / "link.py"))


def test_an_empty_file_has_no_entry(kt, candidate):
    assert "has no entry" in refused(kt(*CHECK, candidate("")))


def test_a_file_without_entry_says_what_an_entry_is(kt, candidate):
    line = refused(kt(*CHECK, candidate("def helper(x):\n    return x\n")))
    assert "has no entry" in line
    assert "kernel_function" in line


def test_entries_for_two_tasks_ask_for_the_task(kt, candidate):
    text = "def relu(x):\n    return x\ndef gelu(x):\n    return x\n"
    line = refused(kt(*CHECK, candidate(text)))
    assert "relu, gelu" in line
    assert "--task" in line


def test_an_entry_that_is_defined_twice_is_reported_with_its_lines(kt, candidate):
    text = "def relu(x):\n    return x\ndef relu(x):\n    return -x\n"
    assert "lines 1 and 3" in refused(kt(*CHECK, candidate(text)))


def test_an_unknown_task_is_answered_with_the_nearest(kt, good):
    line = refused(kt(*CHECK, good, "--task", "softmaxx"))
    assert "nearest: softmax" in line


def test_a_syntax_error_is_reported_with_its_line(kt, candidate):
    text = "def relu(x):\n    return x\n\ndef broken(:\n"
    assert "line 4" in refused(kt(*CHECK, candidate(text)))


def test_an_import_error_is_a_compile_error(check):
    code, document = check("import no_such_package\ndef relu(x):\n    return x\n")
    assert (code, document["verdict"]) == (1, "compile_error")
    assert "no_such_package" in document["explanation"]


def test_what_triton_cannot_compile_is_a_compile_error(check):
    # Python's own interpreter, and so Triton's, knows lambdas.
    body = "tl.store(y + i, (lambda a: tl.maximum(a, 0.0))(v), mask=i < n)"
    code, document = check(TRITON_RELU.format(body=body))
    assert (code, document["verdict"]) == (1, "compile_error")
    assert document["explanation"]


def test_an_unknown_name_in_a_triton_function_fails(check):
    code, document = check(TRITON_RELU.format(body="tl.store(y + i, tl.no_such(v), mask=i < n)"))
    assert code == 1
    assert document["verdict"] in ("compile_error", "runtime_error")
    assert "no_such" in document["explanation"]


@pytest.mark.slow
def test_an_endless_loop_times_out(check):
    code, document = check("def relu(x):\n    while True:\n        pass\n", "--timeout", "0.5")
    assert (code, document["verdict"]) == (1, "timeout")
    assert "0.5 s" in document["explanation"]


def test_a_loop_that_never_ends_loading_times_out(check, runners, monkeypatch):
    monkeypatch.setattr(runners, "load_s", 0.5)
    code, document = check("while True:\n    pass\ndef relu(x):\n    return x\n")
    assert (code, document["verdict"]) == (1, "timeout")
    assert document["explanation"] == "Did not load within 0.5 s."


def test_a_death_by_signal_is_a_crash(check):
    code, document = check(
        "import os, signal\ndef relu(x):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    assert (code, document["verdict"]) == (1, "crash")
    assert "SIGSEGV" in document["explanation"]


def test_exiting_with_success_is_a_crash(check):
    code, document = check("import os\ndef relu(x):\n    os._exit(0)\n")
    assert (code, document["verdict"]) == (1, "crash")


def test_gigabytes_of_output_end_the_kernel(check):
    text = "import os\ndef relu(x):\n    while True:\n        os.write(1, bytes(1 << 20))\n"
    code, document = check(text, "--timeout", "20")
    assert (code, document["verdict"]) == (1, "crash")
    assert "printed more than" in document["explanation"]


def test_gigabytes_of_memory_are_not_given(check):
    text = "import torch\ndef relu(x):\n    return torch.zeros(1 << 40)\n"
    code, document = check(text)
    assert (code, document["verdict"]) == (1, "runtime_error")


def test_a_wrong_number_of_outputs_is_reported(check):
    code, document = check("import torch\ndef relu(x):\n    return torch.relu(x), torch.relu(x)\n")
    assert (code, document["verdict"], document["kind"]) == (1, "fail", "count")


@pytest.mark.parametrize(("value", "kind"), [("'text'", "type"), ("1.0", "type"), ("None", "type")])
def test_what_is_no_tensor_is_no_result(check, value, kind):
    code, document = check(f"def relu(x):\n    return {value}\n")
    assert (code, document["verdict"], document["kind"]) == (1, "fail", kind)


def test_another_signature_is_a_runtime_error(check):
    code, document = check("def relu(x, y, z):\n    return x\n")
    assert (code, document["verdict"]) == (1, "runtime_error")


def test_cuda_source_without_cuda_is_neither_pass_nor_fail(check):
    code, document = check(
        "from torch.utils.cpp_extension import load_inline\n"
        "module = load_inline(name='m', cpp_sources=['torch::Tensor relu(torch::Tensor x);'],"
        " cuda_sources=['...'], functions=['relu'])\n"
        "def relu(x):\n    return module.relu(x)\n"
    )
    assert (code, document["verdict"]) == (3, "unsupported_here")
    assert document["cases"] == 0
    assert document["finding"] is None


def test_names_with_spaces_and_odd_bytes_are_names(kt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"my k\xfcrnel \xff.py")
    (tmp_path / name).write_text("import torch\ndef relu(x):\n    return torch.relu(x)\n")
    ran = kt(*CHECK, name, "--json")
    assert ran.code == 0
    assert document_of(ran)["candidate"]["path"] == name


def test_a_link_to_a_file_is_that_file(kt, good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.py").symlink_to(good)
    assert kt(*CHECK, "link.py").code == 0


def test_a_path_with_spaces_can_be_pasted_from_the_next_step(kt, candidate, tmp_path):
    kernel = candidate("def relu(x):\n    return None\n")
    ran = kt(*CHECK, kernel, "--out", tmp_path / "my run")
    assert f"kerneltruth minimize '{tmp_path}/my run/findings/" in ran.out


def statuses(document):
    return {key: entry["status"] for key, entry in document["profile"].items()}


def test_what_fails_before_anything_is_tried_leaves_all_untried_with_the_reason(check):
    code, document = check("raise ValueError('no luck')\ndef relu(x):\n    return x\n")
    assert (code, document["verdict"]) == (1, "compile_error")
    assert set(statuses(document).values()) <= {"not_tried", "not_applicable"}
    assert document["profile"]["shapes"]["reason"] == "compile_error on loading"
    assert document["score"] == 0


@pytest.mark.slow
def test_a_kernel_that_hangs_from_its_second_call_on_keeps_what_it_held(check):
    code, document = check(
        "import torch\nCALLS = []\ndef relu(x):\n    CALLS.append(1)\n"
        "    while len(CALLS) > 1:\n        pass\n    return torch.clamp(x, min=0)\n",
        *("--timeout", "0.5", "--cases", "48"),
    )
    assert (code, document["verdict"]) == (1, "timeout")
    assert document["profile"]["published"]["status"] == "held"
    broken = [entry for entry in document["profile"].values() if entry["status"] == "broken"]
    assert 1 <= sum(entry["detail"] == "did not return within 0.5 s" for entry in broken) <= 2
    assert "is spent" in document["profile"]["repeatable"]["reason"]


@pytest.mark.slow
def test_what_was_tried_before_the_time_is_spent_stands(check):
    code, document = check(
        "import time, torch\ndef relu(x):\n    time.sleep(0.6)\n    return torch.relu(x)\n",
        *("--timeout", "1.2", "--cases", "48"),
    )
    assert (code, document["verdict"]) == (1, "timeout")
    assert document["explanation"].startswith("The candidate's time, 12 s, is spent: ")
    assert document["profile"]["published"]["status"] == "held"
    assert document["profile"]["repeatable"]["status"] == "not_tried"


@pytest.mark.slow
def test_a_crash_breaks_the_obligation_in_which_it_happens(check):
    code, document = check(
        "import os, torch\ndef relu(x):\n    if x.numel() == 0:\n        os.abort()\n"
        "    return torch.clamp(x, min=0)\n",
        *("--cases", "48"),
    )
    assert (code, document["verdict"]) == (0, "pass")
    assert statuses(document)["empty"] == "broken"
    assert [hazard.partition(":")[0] for hazard in document["hazards"]] == [
        "crashes where a dim is 0"
    ]


def test_raising_in_one_dtype_refuses_this_dtype_alone(check):
    code, document = check(
        "import torch\ndef relu(x):\n    if x.dtype == torch.float16:\n"
        "        raise RuntimeError('no half')\n    return torch.clamp(x, min=0)\n",
        *("--cases", "48"),
    )
    assert (code, document["verdict"]) == (1, "runtime_error")
    refused = [key for key, status in statuses(document).items() if status == "refused"]
    assert refused == ["dtypes.float16"]
    assert document["profile"]["dtypes.float16"]["reason"] == "RuntimeError: no half"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return None", "type"),
        ("yield torch.clamp(x, min=0)", "type"),
        ("return torch.clamp(x, min=0), x", "count"),
    ],
)
def test_a_result_of_another_form_breaks_the_interface(check, body, kind):
    code, document = check(f"import torch\ndef relu(x):\n    {body}\n")
    assert (code, document["verdict"], document["kind"]) == (1, "fail", kind)
    assert document["profile"]["interface"]["status"] == "broken"


def test_leaving_the_process_in_a_call_is_a_refusal_that_says_so(check):
    _, document = check("import sys\ndef relu(x):\n    sys.exit(3)\n")
    assert document["profile"]["published"]["reason"] == "SystemExit: 3"
