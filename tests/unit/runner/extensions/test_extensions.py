"""How `load_inline` is interposed on: when few headers are tried, and what happens otherwise."""

import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
import types
from functools import partial
from pathlib import Path

import pytest
import torch

from kerneltruth.runner import zygote_client
from kerneltruth.runner.extensions import building
from kerneltruth.runner.extensions import headers as kit
from kerneltruth.runner.unsupported import UnsupportedError

pytestmark = pytest.mark.processes

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
        kind = "lean" if build_directory and "_lean" in build_directory else "full"
        if kind in made.failing:
            raise RuntimeError(f"Error building extension {name!r}: {kind}")
        return kind

    def load(name, sources):
        return "loaded"

    made.load_inline, made.load = load_inline, load
    made.include_paths = list
    made.JIT_EXTENSION_VERSIONER = types.SimpleNamespace(entries={})
    made.there = {"ninja"}
    made.install = partial(
        building.install,
        find=lambda: made,
        which=lambda name: f"/bin/{name}" if name in made.there else None,
    )
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    return made


def test_a_usual_source_is_built_with_few_headers_in_a_folder_of_its_own(tools, tmp_path):
    tools.install("/kit")
    assert tools.load_inline(**USUAL, extra_cuda_cflags=["-O3"]) == "lean"
    (call,) = tools.calls
    headers = tmp_path / "extensions_headers"
    # The precompiled header is found where it will be: the next child has the same arguments.
    assert call["extra_include_paths"] == ["/kit/plain", str(headers)]
    assert call["extra_cuda_cflags"] == ["-O3"]
    assert call["build_directory"] == str(tmp_path / "extensions_lean" / "m")
    operators, source = call["cuda_sources"]
    assert "#include <ATen/ops/empty_like.h>" in operators.splitlines()
    assert source == CUDA
    assert (headers / "torch/extension.h").is_file()
    assert building.lean()


def test_arguments_by_place_are_understood(tools):
    tools.install("/kit")
    assert tools.load_inline("m", [CPP], CUDA, ["f"]) == "lean"


def test_what_few_headers_cannot_build_is_built_as_pytorch_does(tools):
    tools.failing = {"lean"}
    tools.install("/kit")
    sources = [CPP]
    assert tools.load_inline("m", sources, CUDA, ["f"]) == "full"
    _, full = tools.calls
    assert full["build_directory"] is None
    assert full["extra_include_paths"] is None
    # The first try has left no mark on what the second is given.
    assert [s for s in full["cpp_sources"] if s != CPP] == ["#include <torch/extension.h>"]
    assert not building.lean()


def test_only_the_full_builds_error_is_raised(tools):
    tools.failing = {"lean", "full"}
    tools.install("/kit")
    with pytest.raises(RuntimeError, match="full") as raised:
        tools.load_inline(**USUAL)
    assert raised.value.__context__ is None


def test_without_a_kit_the_call_goes_through_as_it_is(tools):
    tools.install(None)
    assert tools.load_inline(**USUAL) == "full"
    assert tools.calls[0]["extra_include_paths"] is None
    assert not building.lean()


def test_the_precompiled_header_of_the_same_flags_comes_first(tools, tmp_path):
    tools.install("/kit")
    for flags in (["-O3"], ["", "-O2"], ["-O3", "-DN=1"]):
        tools.load_inline(**USUAL, extra_cflags=flags)
    headers = str(tmp_path / "extensions_headers")
    found = [call["extra_include_paths"] for call in tools.calls]
    assert found == [["/kit/-O3", headers], ["/kit/-O2", headers], [headers]]


def but(found, replacement):
    """The usual arguments with another text in the CUDA source."""
    assert found in CUDA
    return {"cuda_sources": CUDA.replace(found, replacement)}


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
        # A macro of the headers that are left out would be a name like any other.
        but("int n", "int SOFT_ASSERT"),
        but("int n", "int RECORD_FUNCTION"),
        # Conditions on anything that those headers may define.
        but("#include <cuda_runtime.h>", "#ifdef TORCH_LIBRARY\n#endif"),
        but("#include <cuda_runtime.h>", "#if defined(__CUDA_ARCH__) && \\\n WITH_X\n#endif"),
        but("#include <cuda_runtime.h>", "  #  if __has_include(<torch/nn.h>)\n#endif"),
        # Where names are looked up that stand nowhere in the source.
        but("__global__", "using namespace torch;\n__global__"),
        but("__global__", "namespace t = torch;\n__global__"),
        but("__global__", "namespace at { int g(); }\n__global__"),
        but("__global__", "#define CALL(x) tor##x\n__global__"),
        # torch::cuda hides at::cuda, which has a stream, and torch::cuda has none.
        but("<<<1, 1>>>", "<<<1, 1, 0, torch::cuda::getCurrentCUDAStream()>>>"),
        but("auto y", "at::native::f(); auto y"),
        # Headers of unknown contents.
        but("#include <cuda_runtime.h>", '#include "/tmp/mine.h"'),
        but("#include <cuda_runtime.h>", "#include MINE"),
        # Without PyTorch's casts these would take other arguments.
        but("#include <cuda_runtime.h>", "#include <pybind11/pybind11.h>"),
        but("__global__", "void bind(py::module m);\n__global__"),
        {"cpp_sources": "using namespace at;" + CPP},
    ],
)
def test_where_fewer_headers_may_mean_something_else_pytorch_builds(change):
    assert building.is_lean(USUAL)
    assert not building.is_lean({**USUAL, **change})


@pytest.mark.parametrize(
    "change",
    [
        but("TORCH_CHECK", "TORCH_WARN"),
        but("#include <cuda_runtime.h>", "#include <c10/cuda/CUDAGuard.h>\n#include <cub/cub.cuh>"),
        but("<<<1, 1>>>", "<<<1, 1, 0, at::cuda::getCurrentCUDAStream()>>>"),
        but("__global__", "#ifndef N\n#define N 4\n#endif\n__global__"),
        but("__global__", "#if __CUDA_ARCH__ >= 800\n#endif\n__global__"),
        but("__global__", "using namespace std;\nnamespace { int a; }\n__global__"),
        {"cpp_sources": "#include <pybind11/numpy.h>\n" + CPP},
        {"functions": None},
    ],
)
def test_what_can_only_be_an_error_with_fewer_headers_is_tried(change):
    assert building.is_lean({**USUAL, **change})


def test_operators_that_a_source_names_are_included(tmp_path):
    (tmp_path / "ATen/ops").mkdir(parents=True)
    for name in ("add", "exp", "max", "mul", "relu", "sum"):
        (tmp_path / f"ATen/ops/{name}.h").touch()
    # A function of the source's own, or one found by its argument, competes with PyTorch's.
    texts = ["auto y = torch::relu(x.sum()); p->exp();", "a>max(b) + relu(c); mul_(add_out(d))"]
    assert building.included(texts, tmp_path).splitlines() == [
        f"#include <ATen/ops/{name}.h>" for name in ("add", "max", "mul", "relu")
    ]
    assert building.included(["device_of(x)"], tmp_path) == (
        f'#include "{tmp_path}/ATen/DeviceGuard.h"'
    )


def test_the_usual_flags_change_nothing():
    flags = {"extra_cflags": [""], "extra_ldflags": ["-lcublas"], "extra_cuda_cflags": ["-O3"]}
    assert building.is_lean({**USUAL, **flags, "verbose": True, "with_cuda": True})


def test_missing_tools_are_named_in_one_line(tools):
    tools.install("/kit")
    tools.there.clear()
    with pytest.raises(UnsupportedError, match=r"needs ninja.*kerneltruth\[gpu\]"):
        tools.load_inline(**USUAL)
    tools.CUDA_HOME = None
    with pytest.raises(UnsupportedError, match=r"needs nvcc.*install the CUDA toolkit"):
        tools.load_inline(**USUAL)
    with pytest.raises(UnsupportedError, match="needs nvcc"):
        tools.load("m", ["a.cpp", "b.cu"])
    assert tools.calls == []


def test_build_tools_that_cannot_be_imported_are_named_in_one_line():
    def fail():
        raise ImportError("No module named 'setuptools'")

    with pytest.raises(UnsupportedError, match="setuptools"):
        building.install(None, find=fail)


def test_cpp_alone_needs_no_nvcc(tools):
    tools.CUDA_HOME = None
    tools.install(None)
    assert tools.load("m", ["a.cpp"]) == "loaded"
    assert tools.load_inline("m", CPP, functions=["f"]) == "full"


def test_flags_are_read_off_a_source():
    source = "load_inline(name='m', extra_cflags=['-O3', ''], extra_cuda_cflags=['-O1'])"
    assert kit.host_flags(source) == ("-O3", "")
    assert kit.host_flags("load_inline(name='m')") == ()


def begin_into(commands):
    """Precompile ahead, with the commands of processes kept and none begun."""
    return partial(
        kit.precompile_ahead,
        environment={},
        begin=lambda command, **_: commands.append(command),
    )


def test_the_second_source_begins_to_precompile_and_no_third(tmp_path):
    source, begun = "load_inline(extra_cflags=['-O3'])", []
    ahead = begin_into(begun)
    ahead(tmp_path / "kit", source)
    assert begun == []
    for _ in range(2):
        ahead(tmp_path / "kit", source)
    (command,) = begun
    assert command[-2:] == [str(tmp_path / "kit"), "-O3"]
    ahead(tmp_path / "kit", "load_inline()")
    assert len(begun) == 1


def test_what_is_precompiled_or_cannot_be_is_not_begun(tmp_path):
    (tmp_path / "plain").mkdir()
    begun = []
    for _ in range(2):
        begin_into(begun)(tmp_path, "load_inline(extra_cflags=[''])")
        begin_into(begun)(tmp_path, "load_inline(extra_cflags=['-O3', '-DX'])")
    assert begun == []


def test_only_one_process_precompiles(tmp_path):
    made = []

    def precompile(making, flags):
        made.append(flags)
        # A second request in the meantime has nothing to do.
        kit.main([str(tmp_path), "-O3"], precompile)
        (making / "made").mkdir()
        return making / "made"

    for _ in range(2):
        kit.main([str(tmp_path), "-O3"], precompile)
    assert made == [["-O3"]]
    assert (tmp_path / "-O3").is_dir()


def test_headers_before_pytorchs_name_few_operators_and_stay_as_they_are(tmp_path):
    originals = tmp_path / "include"
    (originals / "ATen").mkdir(parents=True)
    names = ("relu", "std", "sum")
    text = "".join(f"#include <ATen/ops/{n}.h>\n" for n in names) + "namespace at {}\n"
    (originals / "ATen/Functions.h").write_text(text)
    kit.write_headers(tmp_path / "headers", originals)
    written = tmp_path / "headers/ATen/Functions.h"
    assert written.read_text() == "#include <ATen/ops/std.h>\nnamespace at {}\n"
    # A header that is written again would have everything built again.
    before = written.stat().st_mtime_ns
    kit.write_headers(tmp_path / "headers", originals)
    assert written.stat().st_mtime_ns == before
    assert {p.name for p in tmp_path.iterdir()} == {"headers", "include"}


def compiler(name):
    """Which release of a compiler it is."""
    said = subprocess.run([name, "--version"], capture_output=True, text=True, check=True)
    return said.stdout


@pytest.fixture
def remembered(request):
    """What a build gives, kept between runs for as long as nothing that it reads changes.

    Two builds with all of PyTorch's headers take half a minute of a core each.
    """
    kept = getattr(request.config, "cache", None)

    def of(make, *inputs):
        about = [torch.__version__, sys.version, *map(str, inputs)]
        name = (
            f"{request.node.name}/{make.args[0]}/{hashlib.sha256(repr(about).encode()).hexdigest()}"
        )
        found = kept.get(f"builds/{name}", None) if kept else None
        if found is None:
            found = make()
            if kept:
                kept.set(f"builds/{name}", found)
        return found

    return of


needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
INCLUDE = Path(torch.__file__).parent / "include"
# What a build with few headers reads, but for PyTorch's: all of what may change its results.
READS = [*Path(building.__file__).parent.rglob("*.*"), Path(zygote_client.__file__)]


def own_sources():
    """The sources of this project that a build with few headers depends on."""
    return [path.read_text() for path in sorted(READS) if path.suffix in (".py", ".h")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Options for a compiler that has all of PyTorch's headers, and few."""
    root = tmp_path_factory.mktemp("headers")
    kit.write_headers(root / "lean", INCLUDE)
    # A PyTorch without CUDA has the headers of c10/cuda but for this one.
    (root / "cpu/c10/cuda/impl").mkdir(parents=True)
    (root / "cpu/c10/cuda/impl/cuda_cmake_macros.h").touch()
    python = sysconfig.get_path("include", scheme="posix_prefix")
    system = (INCLUDE, INCLUDE / "torch/csrc/api/include", root / "cpu", python)
    full = [
        "-DTORCH_API_INCLUDE_EXTENSION_H",
        *(option for path in system for option in ("-isystem", str(path))),
        kit.standard_option(str(INCLUDE.parent / "utils/cpp_extension.py")),
    ]
    return {"full": full, "lean": [f"-I{root / 'lean'}", *full]}


@pytest.mark.slow
@needs_compiler
def test_every_macro_that_few_headers_lack_is_known(folders, tmp_path):
    source = tmp_path / "main.cpp"
    source.write_text("#include <torch/extension.h>\n")
    found = {}
    for kind, options in folders.items():
        command = ["c++", *options, "-E", "-dM", str(source)]
        text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        found[kind] = dict(re.findall(r"#define (\w+)(.*)", text.stdout))
    lean, full = found["lean"], found["full"]
    assert lean.keys() - full.keys() == {"AT_PER_OPERATOR_HEADERS"}
    assert [name for name in full if name in lean and full[name] != lean[name]] == []
    # Names that begin like this are PyTorch's, pybind11's or the compiler's; a source that uses
    # them means those macros, and one that defines them means its own.
    theirs = re.compile(r"(?:AT|ATEN|C10|CAFFE2|PYBIND11|THP|TORCH|Py|PY)_?\w*|_\w*|\w+_H_?")
    unknown = [name for name in full.keys() - lean.keys() if theirs.fullmatch(name) is None]
    assert [name for name in unknown if not building.ABSENT_MACROS.fullmatch(name)] == []


DEVICE = CUDA.replace(
    "const float* x, float* y, int n) {}",
    """const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = max(x[i], 0.5f), b = abs(x[i]), c = pow(x[i], 2) + min(i, n) + std::max(a, 1.0f);
    if (i < n) y[i] = exp(a) + fmaxf(b, c) + round(x[i]) + isnan(a) + log(2 + i);
}""",
)


@pytest.mark.slow
@needs_nvcc
def test_device_code_is_the_same_with_few_headers(folders, tmp_path, remembered):
    assert building.is_lean({**USUAL, "cuda_sources": DEVICE})

    def compiled(kind):
        lines = ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>"]
        lines += [building.included([DEVICE], INCLUDE)] if kind == "lean" else []
        (tmp_path / kind).mkdir()
        source = tmp_path / kind / "cuda.cu"
        source.write_text("\n".join([*lines, DEVICE]))
        command = [
            "nvcc",
            *folders[kind],
            "--expt-relaxed-constexpr",
            "-arch=sm_80",
            "-ptx",
            source.name,
        ]
        subprocess.run(command, cwd=source.parent, check=True, timeout=300, capture_output=True)
        text = source.with_suffix(".ptx").read_text()
        # The hash of all that was read, by which nvcc tells files apart.
        return re.sub("[0-9a-f]{8}(?=_7_cuda_cu_)", "", text)

    inputs = (DEVICE, compiler("nvcc"), compiler("c++"))
    full = remembered(partial(compiled, "full"), *inputs)
    assert "ex2.approx" in full
    assert remembered(partial(compiled, "lean"), *inputs, *own_sources()) == full


@pytest.mark.slow
def test_extensions_of_both_builds_answer_alike(tmp_path, remembered):
    if shutil.which("ninja") is None or shutil.which("c++") is None:
        pytest.skip("needs ninja and a C++ compiler")
    script = Path(__file__).with_name("both_builds.py")
    environment = zygote_client.zygote_environment(interpret=False, hide_cuda=True)
    environment |= {"TORCH_EXTENSIONS_DIR": str(tmp_path / "extensions"), "HOME": str(tmp_path)}

    def answers(kind):
        command = [sys.executable, str(script), kind]
        ran = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=600, check=True
        )
        return ran.stdout.splitlines()

    inputs = (script.read_text(), compiler("c++"))
    full = remembered(partial(answers, "full"), *inputs)
    lean = remembered(partial(answers, "lean"), *inputs, *own_sources())
    assert (lean[0], full[0]) == ("lean: True", "lean: False")
    assert len(full) > 30
    assert lean[1:] == full[1:]
