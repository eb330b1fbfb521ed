"""Launches of a shared object are asked about, made or not made; those of a library are not seen.

A small library stands for the CUDA runtime, and runs a kernel on the host when it is launched.
"""

import ctypes
import os
import platform
import shutil
import subprocess

import pytest

from kerneltruth.runner.child.extension_launches import loaded, watched

RUNTIME = """
typedef struct { unsigned x, y, z; } dim3;
typedef struct { dim3 grid, block; } config;
int cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void** args, unsigned long shared,
                     void* stream) {
    if (grid.x != 2 || grid.z != 4 || block.x != 5 || block.z != 7) return 1;
    if (shared != 8 || stream != (void*)9) return 2;
    ((void (*)(int*))f)(*(int**)args[0]);
    return 0;
}
int cudaLaunchKernelExC(const config* c, const void* f, void** args) {
    if (c->grid.x != 2) return 3;
    ((void (*)(int*))f)(*(int**)args[0]);
    return 0;
}
"""
EXTENSION = """
typedef struct {{ unsigned x, y, z; }} dim3;
typedef struct {{ dim3 grid, block; }} config;
int cudaLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
int cudaLaunchKernelExC(const config*, const void*, void**);
void {kernel}(int* x) {{ *x += 1; }}
int once(int* x) {{
    void* args[] = {{&x}};
    dim3 grid = {{2, 3, 4}}, block = {{5, 6, 7}};
    return cudaLaunchKernel({kernel}, grid, block, args, 8, (void*)9);
}}
int extended(int* x) {{
    void* args[] = {{&x}};
    config c = {{{{2, 3, 4}}, {{5, 6, 7}}}};
    return cudaLaunchKernelExC(&c, {kernel}, args);
}}
"""
pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or platform.machine() not in ("x86_64", "aarch64"),
    reason="needs gcc on a machine whose tables are known",
)


def built(folder, name, text, *flags):
    source = folder / f"{name}.c"
    source.write_text(text, encoding="utf-8")
    made = folder / f"lib{name}.so"
    command = ["gcc", "-shared", "-fPIC", "-o", str(made), str(source), *flags]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Objects of a candidate, linked lazily and at once, and one of an installed package."""
    folder = tmp_path_factory.mktemp("extensions")
    built(folder, "runtime_stand_in", RUNTIME)
    linked = (f"-L{folder}", "-lruntime_stand_in", f"-Wl,-rpath,{folder}")
    own = EXTENSION.format(kernel="mine")
    made = {
        "lazy": built(folder, "lazy", own, *linked, "-Wl,-z,lazy"),
        "now": built(folder, "now", own, *linked, "-Wl,-z,relro,-z,now"),
        "package": built(folder, "package", EXTENSION.format(kernel="theirs"), *linked),
    }
    # A CUDA runtime that PyTorch has loaded into this process may not take the stand-in's place.
    return {name: ctypes.CDLL(str(path), mode=os.RTLD_DEEPBIND) for name, path in made.items()}


def is_own(path):
    return "extensions" in path and "package" not in path and "runtime" not in path


class Launches:
    """What was launched, and whether it is to be made."""

    def __init__(self, *, made):
        self.made = made
        self.names = []

    def __call__(self, name, path):
        assert path.startswith("/")
        self.names.append(name)
        return self.made


@pytest.mark.parametrize("linked", ["lazy", "now"])
@pytest.mark.parametrize("function", ["once", "extended"])
@pytest.mark.parametrize("made", [True, False])
def test_a_launch_is_made_or_not_made_as_the_answer_says(libraries, linked, function, made):
    x, launches = ctypes.c_int(0), Launches(made=made)
    with watched(is_own, launches):
        ended = [getattr(libraries[linked], function)(ctypes.byref(x)) for _ in range(3)]
    assert ended == [0, 0, 0]
    assert launches.names == ["mine"] * 3
    assert x.value == (3 if made else 0)


def test_launches_after_the_call_are_not_observed(libraries):
    x, launches = ctypes.c_int(0), Launches(made=False)
    for linked in ("lazy", "now"):
        with watched(is_own, launches):
            pass
        assert libraries[linked].once(ctypes.byref(x)) == 0
    assert (launches.names, x.value) == ([], 2)


def test_launches_of_an_installed_package_are_not_observed(libraries):
    x, launches = ctypes.c_int(0), Launches(made=False)
    with watched(is_own, launches):
        assert libraries["package"].once(ctypes.byref(x)) == 0
    assert (launches.names, x.value) == ([], 1)


def test_the_candidates_objects_are_known_by_their_paths(libraries):
    assert libraries
    assert {path.rpartition("/")[2] for path in loaded(is_own)} == {"liblazy.so", "libnow.so"}
