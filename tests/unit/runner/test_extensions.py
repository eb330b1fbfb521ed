"""How `load_inline` is interposed on: when stand-ins are tried, and what happens when they fail."""

import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from kerneltruth.runner import extension_kit, extensions
from kerneltruth.runner.protocol import UnsupportedHere
from kerneltruth.runner.warmth import zygote_environment

CPP = "torch::Tensor f(torch::Tensor x);"
CUDA = """
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void k(const float* x, float* y, int n) {}
torch::Tensor f(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda(), "x must be on the device");  // std::vector<c10::SymInt>
    auto y = torch::empty_like(x);
    k<<<1, 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""
USUAL = {"name": "m", "cpp_sources": CPP, "cuda_sources": CUDA, "functions": ["f"]}


@pytest.fixture
def tools(monkeypatch, tmp_path):
    """PyTorch's build tools with a `load_inline` that records its arguments and builds nothing."""
    made = types.SimpleNamespace(calls=[], failing=set(), CUDA_HOME=str(tmp_path / "cuda"))
    (tmp_path / "cuda/bin").mkdir(parents=True)
    (tmp_path / "cuda/bin/nvcc").touch()

    def load_inline(
        name,
        cpp_sources,
        cuda_sources=None,
        functions=None,
        extra_cflags=None,
        extra_cuda_cflags=None,
        extra_ldflags=None,
        extra_include_paths=None,
        build_directory=None,
        verbose=False,
        with_cuda=None,
        is_python_module=True,
        no_implicit_headers=False,
    ):
        arguments = dict(locals())
        made.calls.append({k: v for k, v in arguments.items() if k != "made"})
        # As PyTorch's own does.
        if isinstance(cpp_sources, list):
            cpp_sources.insert(0, "#include <torch/extension.h>")
        kind = "light" if build_directory and "_light" in build_directory else "real"
        if kind in made.failing:
            raise RuntimeError(f"Error building extension {name!r}: {kind}")
        return kind

    def load(name, sources):
        return "loaded"

    made.load_inline, made.load = load_inline, load
    made.include_paths = list
    made.JIT_EXTENSION_VERSIONER = types.SimpleNamespace(entries={})
    monkeypatch.setattr(extensions, "_tools", lambda: made)
    monkeypatch.setattr(extensions, "_stood_in", False)
    monkeypatch.setattr(extensions.shutil, "which", lambda name, path=None: f"/bin/{name}")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    return made


def test_a_usual_source_is_built_with_stand_ins_in_a_folder_of_its_own(tools, tmp_path):
    extensions.install("/kit", light=True)
    assert tools.load_inline(**USUAL, extra_cuda_cflags=["-O3"]) == "light"
    (call,) = tools.calls
    assert call["extra_include_paths"] == ["/kit/include"]
    assert call["extra_ldflags"] == ["/kit/shim.so"]
    assert call["extra_cuda_cflags"] == ["-O3"]
    assert call["build_directory"] == str(tmp_path / "extensions_light" / "m")
    assert extensions.stood_in()


def test_arguments_by_place_are_understood(tools):
    extensions.install("/kit", light=True)
    assert tools.load_inline("m", [CPP], CUDA, ["f"]) == "light"


def test_what_the_stand_ins_cannot_build_is_built_as_pytorch_does(tools):
    tools.failing = {"light"}
    extensions.install("/kit", light=True)
    sources = [CPP]
    assert tools.load_inline("m", sources, CUDA, ["f"]) == "real"
    _, real = tools.calls
    assert real["build_directory"] is None
    assert real["extra_ldflags"] is None
    # The first try has left no mark on what the second is given.
    assert [s for s in real["cpp_sources"] if s != CPP] == ["#include <torch/extension.h>"]
    assert not extensions.stood_in()


def test_only_the_real_builds_error_is_raised(tools):
    tools.failing = {"light", "real"}
    extensions.install("/kit", light=True)
    with pytest.raises(RuntimeError, match="real") as raised:
        tools.load_inline(**USUAL)
    assert raised.value.__context__ is None


def test_without_leave_only_the_real_headers_are_used(tools):
    extensions.install("/kit", light=False)
    assert tools.load_inline(**USUAL) == "real"
    assert not extensions.stood_in()


def test_without_a_kit_the_call_goes_through_as_it_is(tools):
    extensions.install(None, light=True)
    tools.load_inline(**USUAL)
    assert tools.calls[0]["extra_include_paths"] is None


def test_the_precompiled_header_of_the_same_flags_comes_first(tools, tmp_path):
    folder = tmp_path / "kit" / "real" / "-O3"
    folder.mkdir(parents=True)
    extensions.install(str(tmp_path / "kit"), light=False)
    tools.load_inline(**USUAL, extra_cflags=["-O3"])
    tools.load_inline(**USUAL, extra_cflags=["-O2"])
    tools.load_inline(**USUAL, extra_cflags=["-O3", "-DN=1"])
    found = [call["extra_include_paths"] for call in tools.calls]
    assert found == [[str(folder)], None, None]


@pytest.mark.parametrize(
    "change",
    [
        {"build_directory": "/elsewhere"},
        {"is_python_module": False},
        {"no_implicit_headers": True},
        {"extra_include_paths": ["/mine"]},
        {"extra_cuda_cflags": ["-std=c++14"]},
        {"extra_cuda_cflags": ["-include", "mine.h"]},
        {"extra_cflags": ["-I/mine"]},
        {"functions": None},
        {"cuda_sources": CUDA.replace("empty_like(x)", "conv2d(x, x)")},
        {"cuda_sources": CUDA.replace("cuda_runtime.h", "ATen/cuda/Atomic.cuh")},
        {"cuda_sources": CUDA.replace("TORCH_CHECK", "TORCH_WARN")},
        {"cuda_sources": "torch::cuda::CUDAStream* s;" + CUDA},
        {"cuda_sources": "py::object g();" + CUDA},
    ],
)
def test_what_is_unusual_is_left_to_pytorch(change):
    assert extensions.is_light(USUAL)
    assert not extensions.is_light({**USUAL, **change})


def test_what_the_stand_ins_have_of_cuda_is_known():
    more = "torch::optional<at::Tensor> o; at::cuda::CUDAGuard g(0);"
    assert extensions.is_light({**USUAL, "cuda_sources": more + CUDA})
    assert not extensions.is_light({**USUAL, "cuda_sources": "at::cuda::blas::gemm();" + CUDA})


def test_the_usual_flags_change_nothing():
    flags = {"extra_cflags": [""], "extra_ldflags": ["-lcublas"], "extra_cuda_cflags": ["-O3"]}
    assert extensions.is_light({**USUAL, **flags, "verbose": True, "with_cuda": True})


def test_missing_tools_are_named_in_one_line(tools, monkeypatch):
    extensions.install("/kit", light=True)
    monkeypatch.setattr(extensions.shutil, "which", lambda name, path=None: None)
    with pytest.raises(UnsupportedHere, match=r"needs ninja.*kerneltruth\[gpu\]"):
        tools.load_inline(**USUAL)
    tools.CUDA_HOME = None
    with pytest.raises(UnsupportedHere, match=r"needs nvcc.*install the CUDA toolkit"):
        tools.load_inline(**USUAL)
    with pytest.raises(UnsupportedHere, match="needs nvcc"):
        tools.load("m", ["a.cpp", "b.cu"])
    assert tools.calls == []


def test_build_tools_that_cannot_be_imported_are_named_in_one_line(monkeypatch):
    def fail():
        raise ImportError("No module named 'setuptools'")

    monkeypatch.setattr(extensions, "_tools", fail)
    with pytest.raises(UnsupportedHere, match="setuptools"):
        extensions.install(None, light=False)


def test_cpp_alone_needs_no_nvcc(tools):
    tools.CUDA_HOME = None
    extensions.install(None, light=False)
    assert tools.load("m", ["a.cpp"]) == "loaded"
    assert tools.load_inline("m", CPP, functions=["f"]) == "real"


def test_flags_are_read_off_a_source():
    source = "load_inline(name='m', extra_cflags=['-O3', ''], extra_cuda_cflags=['-O1'])"
    assert extension_kit.host_flags(source) == ("-O3", "")
    assert extension_kit.host_flags("load_inline(name='m')") == ()


def test_a_kit_is_made_once_however_many_ask(tmp_path, monkeypatch):
    made = []

    def make(folder, flags, environment):
        made.append(flags)
        (extension_kit.precompiled(folder, flags) if flags or folder.exists() else folder).mkdir(
            parents=True
        )

    monkeypatch.setattr(extension_kit, "_run", make)
    monkeypatch.setattr(extension_kit.shutil, "which", lambda name, path=None: f"/bin/{name}")
    monkeypatch.setattr(extension_kit, "_key", lambda environment: "key")
    kits = {extension_kit.kit_for(tmp_path / "kits", {}) for _ in range(3)}
    assert kits == {tmp_path / "kits" / "kit-key"}
    assert made == [()]
    # The first real build does without the precompiled header: it takes longer than a build.
    for _ in range(3):
        extension_kit.add_precompiled(*kits, "load_inline(extra_cflags=['-O3'])", {})
    assert made == [(), ("-O3",)]


def test_a_kit_that_cannot_be_made_is_done_without(tmp_path, monkeypatch):
    def fail(folder, flags, environment):
        raise subprocess.CalledProcessError(1, ["c++"])

    monkeypatch.setattr(extension_kit, "_run", fail)
    monkeypatch.setattr(extension_kit.shutil, "which", lambda name, path=None: f"/bin/{name}")
    monkeypatch.setattr(extension_kit, "_key", lambda environment: "key")
    assert extension_kit.kit_for(tmp_path, {}) is None


needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


@pytest.fixture(scope="module")
def include(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit") / "include"
    extension_kit.write_headers(folder, [])
    return folder


@needs_nvcc
@pytest.mark.slow
def test_nvcc_reads_every_stand_in(include, tmp_path):
    headers = "".join(f"#include <{name}>\n" for name in extension_kit.HEADERS)
    source = tmp_path / "cuda.cu"
    guard = "const at::cuda::OptionalCUDAGuard guard(device_of(x)); C10_CUDA_KERNEL_LAUNCH_CHECK();"
    dispatch = 'AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "f", [&] { x.data_ptr<scalar_t>(); });'
    source.write_text(headers + CUDA.replace("auto y", f"{guard} {dispatch} auto y"))
    command = ["nvcc", f"-I{include}", "-std=c++17", "-c", str(source), "-o", "cuda.o"]
    ran = subprocess.run(command, cwd=tmp_path, check=False, timeout=120)
    assert ran.returncode == 0


@pytest.mark.slow
def test_extensions_of_both_builds_answer_alike(tmp_path_factory):
    """The real headers take a minute of one core: one test for all that they must agree on."""
    if shutil.which("ninja") is None or shutil.which("c++") is None:
        pytest.skip("needs ninja and a C++ compiler")
    script = Path(__file__).with_name("both_builds.py")
    root = tmp_path_factory.mktemp("builds")
    environment = zygote_environment(interpret=False, hide_cuda=True)
    environment |= {"TORCH_EXTENSIONS_DIR": str(root / "extensions"), "HOME": str(root)}
    kit = root / "kit"
    extension_kit.make(kit, environment)
    answers = {}
    for light in ("light", "real"):
        command = [sys.executable, str(script), str(kit), light]
        ran = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=600, check=True
        )
        answers[light] = ran.stdout.splitlines()
    assert answers["light"][0] == "stood in: True"
    assert answers["real"][0] == "stood in: False"
    assert len(answers["real"]) > 30
    assert answers["light"][1:] == answers["real"][1:]
