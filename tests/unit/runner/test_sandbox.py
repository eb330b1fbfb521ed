import os
import subprocess
import sys

from kerneltruth.runner.sandbox import (
    base_environment,
    descendants,
    make_folders,
    private_environment,
    remove_folder,
)


def test_only_listed_variables_are_passed_on():
    parent = {"PATH": "/bin", "SECRET_TOKEN": "x", "LD_PRELOAD": "y", "PYTHONPATH": "z"}
    assert set(base_environment(parent)) == {
        "PATH",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE",
    }


def test_without_a_cache_everything_lies_in_the_private_folder(tmp_path):
    places = private_environment(tmp_path, None).values()
    assert all(place.startswith(str(tmp_path)) for place in places)


def test_with_a_cache_only_compiled_code_lies_in_it(tmp_path):
    folder, cache = tmp_path / "child", tmp_path / "cache"
    places = private_environment(folder, cache)
    cached = {name for name, place in places.items() if place.startswith(str(cache))}
    assert cached == {
        "TRITON_CACHE_DIR",
        "TORCH_EXTENSIONS_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "CUDA_CACHE_PATH",
    }


def test_private_folders_are_for_the_owner_only(tmp_path):
    folder = tmp_path / "child"
    make_folders(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {p.name for p in folder.iterdir()} == {"home", "tmp", "work"}


def test_a_folder_without_permissions_is_removed_and_links_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    folder = tmp_path / "child"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    os.symlink(outside, folder / "a" / "link")
    (folder / "a").chmod(0)
    remove_folder(folder)
    assert not folder.exists()
    assert outside.stat().st_mode & 0o777 == 0o500


def test_descendants_are_found_below_those_that_are_not_spared():
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command) as one, subprocess.Popen(command) as other:
        try:
            assert descendants(os.getpid(), spare=(other.pid,)) >= {one.pid}
            assert other.pid not in descendants(os.getpid(), spare=(other.pid,))
        finally:
            one.kill()
            other.kill()


TREE = """
import os, time
from kerneltruth.runner.sandbox import adopt_orphans, kill_tree
adopt_orphans()
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        os._exit(0)
time.sleep(0.2)
left = kill_tree()
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("left", left, "and no child")
"""


def test_killing_the_tree_reaches_daemons_that_left_their_session():
    done = subprocess.run(
        [sys.executable, "-c", TREE], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "left 0 and no child\n"
