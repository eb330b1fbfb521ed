"""Candidates that are more than a file: judged, stored, replayed and shown by a script."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECK = ("check", "--device", "cpu", "--cases", "3")
KERNEL = """
import triton
import triton.language as tl
from .sizes import BLOCK, SHIFT

@triton.jit
def kernel(x, y, n, B: tl.constexpr, S: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, tl.maximum(v, 0.0) + S, mask=i < n)
"""
OPS = """
import torch, triton
from pathlib import Path
from . import kernels
from .sizes import BLOCK, SHIFT

NOTE = (Path(__file__).parent / "data" / "note.bin").read_bytes()

def relu(x):
    assert NOTE == bytes([255, 0])
    x, y = x.contiguous(), torch.empty_like(x)
    if x.numel():
        grid = (triton.cdiv(x.numel(), BLOCK),)
        kernels.kernel[grid](x, y, x.numel(), B=BLOCK, S=SHIFT)
    return y
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write the package `mine`, whose `relu` is wrong by `shift`."""
    monkeypatch.chdir(tmp_path)

    def write(shift):
        folder = tmp_path / "mine"
        (folder / "data").mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "sizes.py").write_text(f"BLOCK, SHIFT = 128, {shift}\n")
        (folder / "kernels.py").write_text(KERNEL)
        (folder / "ops.py").write_text(OPS)
        (folder / "data" / "note.bin").write_bytes(bytes([255, 0]))
        return folder

    return write


@pytest.fixture
def own(tmp_path):
    """A reference of the user's own, with small inputs."""
    path = tmp_path / "reference.py"
    path.write_text(
        "import torch\ndef relu(x):\n    return torch.relu(x)\n"
        "def inputs():\n    return (torch.randn(4, 8),)\n"
    )
    return path


def test_a_folder_is_judged_with_its_modules_and_data(kt, package):
    ran = kt(*CHECK, package(0), "--entry", "ops:relu", "--json")

    found = json.loads(ran.out)
    assert (ran.code, found["verdict"], found["task"]) == (0, "pass", "relu")
    assert found["kernel"]["own"] == 1
    about = found["candidate"]
    assert (about["language"], about["entry"], about["path"][-4:]) == ("triton", "relu", "mine")
    assert about["reads"] == [
        *("mine/__init__.py", "mine/data/note.bin", "mine/kernels.py", "mine/ops.py"),
        "mine/sizes.py",
    ]


@pytest.mark.slow
def test_its_finding_replays_and_its_script_runs_without_the_folder(kt, package):
    folder = package(1)
    ran = kt(*CHECK, folder, "--entry", "mine.ops:relu", "--out", "run", "--json")
    shutil.rmtree(folder)
    finding = json.loads(ran.out)["finding"]
    kt("minimize", finding, "--device", "cpu")

    assert ran.code == 1
    assert json.loads(kt("replay", "run", "--device", "cpu", "--json").out)["reproduced"] == 1
    script = finding.replace(".json", ".py")
    shown = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (shown.returncode, "WRONG" in shown.stdout) == (1, True), shown
    stored = json.loads(Path(finding).read_text())
    assert stored["candidate"]["reads"][0] == "mine/__init__.py"


def test_what_it_may_read_is_shown(kt, package):
    package(0)

    assert "\nreads " in kt(*CHECK, "mine", "--entry", "ops:relu").out


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_built_extension_comes_with_it(kt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "fast"
    folder.mkdir()
    (tmp_path / "relu.c").write_text(
        "void relu(const float *x, float *y, long n)"
        "{ for (long i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i]; }"
    )
    build = ["cc", "-shared", "-fPIC", "-o", "fast/relu.so", "relu.c"]
    subprocess.run(build, check=True)
    (folder / "ops.py").write_text(
        "import ctypes, torch\n"
        "from pathlib import Path\n"
        "library = ctypes.CDLL(str(Path(__file__).with_name('relu.so')))\n"
        "def relu(x):\n"
        "    x, y = x.contiguous(), torch.empty_like(x)\n"
        "    call = library.relu\n"
        "    call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]\n"
        "    call(x.data_ptr(), y.data_ptr(), x.numel())\n"
        "    return y\n"
    )
    ran = kt(*CHECK, "fast", "--entry", "ops:relu", "--dtype", "float32", "--json")

    found = json.loads(ran.out)
    assert (found["verdict"], found["torch_only"]) == ("pass", False), found["detail"]
    assert "relu.so" in found["candidate"]["reads"]


def test_a_cuda_file_beside_it_is_neither_pass_nor_fail_without_a_gpu(kt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast" / "k.cu").write_text("__global__ void k() {}")
    (tmp_path / "fast" / "ops.py").write_text(
        "from pathlib import Path\n"
        "from torch.utils.cpp_extension import load\n"
        "built = load('built', [str(Path(__file__).with_name('k.cu'))])\n"
        "def relu(x):\n    return built.relu(x)\n"
    )
    ran = kt(*CHECK, "fast", "--entry", "ops:relu", "--json")

    found = json.loads(ran.out)
    assert (ran.code, found["verdict"]) == (3, "unsupported_here")
    assert (found["candidate"]["language"], found["torch_only"]) == ("cuda", False)


@pytest.mark.slow
def test_a_folder_is_timed(kt, package, own):
    folder = package(0)
    (folder / "ops.py").write_text("def relu(x):\n    return x.clamp(min=0)\n")
    words = ("--against", "eager", "--budget", "0", "--device", "cpu", "--json")
    found = json.loads(kt("time", folder, "--entry", "ops:relu", "--reference", own, *words).out)

    assert found["candidate"]["reads"][0] == "mine/__init__.py"
    assert found["shapes"][0]["candidate_us"] > 0


def test_a_wrong_entry_is_not_timed(kt, package):
    ran = kt("time", package(0), "--entry", "ops:gelu", "--device", "cpu")

    assert (ran.code, ran.out) == (2, "")
    assert "ops.py defines no 'gelu'; it has relu" in ran.err


def test_a_module_that_does_not_import_is_a_compile_error(kt, package):
    folder = package(0)
    (folder / "sizes.py").write_text("import nothing_of_this_name\n")
    ran = kt(*CHECK, folder, "--entry", "ops:relu", "--json")

    found = json.loads(ran.out)
    assert (ran.code, found["verdict"]) == (1, "compile_error")
    assert "No module named 'nothing_of_this_name'" in found["detail"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mine", "--entry", "ops:gelu"), "ops.py defines no 'gelu'; it has relu"),
        (("mine", "--entry", "nops:relu"), "has no module 'nops'"),
        (("nowhere", "--entry", "ops:relu"), "no such package is installed"),
        (("mine/ops.py", "--entry", "ops:relu"), "needs a folder"),
    ],
)
def test_a_wrong_entry_is_one_line(kt, package, words, said):
    package(0)
    ran = kt(*CHECK, *words)

    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert said in line


def test_folders_are_several_candidates_where_the_entry_says_so(kt, package, tmp_path):
    shutil.copytree(package(0), tmp_path / "other")
    ran = kt(*CHECK, "mine", "other", "missing", "--entry", "ops:relu", "--json")

    found = json.loads(ran.out)
    assert [each["candidate"]["path"] for each in found["checks"]] == ["mine", "other"]
    assert found["counts"] == {"passed": 2, "failed": 0, "not_judged": 0, "refused": 1}


@pytest.mark.slow
def test_a_reference_of_ones_own_is_the_task_of_a_folder(kt, package, own):
    ran = kt(*CHECK, package(0), "--entry", "ops:relu", "--reference", own, "--json")

    assert json.loads(ran.out)["verdict"] == "pass"
