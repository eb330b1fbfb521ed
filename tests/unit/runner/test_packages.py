"""Folders and installed packages as candidates: what is taken, and what is refused."""

import pytest

from kerneltruth.errors import UserError
from kerneltruth.runner import packages
from kerneltruth.runner.bundle import bundle_in
from kerneltruth.runner.packages import read_package


@pytest.fixture
def write(tmp_path):
    """Write files below a folder `kernels`, and return it."""

    def files(**texts):
        folder = tmp_path / "kernels"
        for name, text in texts.items():
            path = folder / name.replace("__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return folder

    return files


OPS = "def relu(x): return x\ndef gelu(x): return x\ndef _hidden(x): return x\n"


def test_a_plain_folder_is_searched_by_python(write):
    found = bundle_in(read_package(write(ops_py=OPS, sub__more_py="x = 1"), "ops:relu"))

    assert (found.module, found.function) == ("ops", "relu")
    assert [*found.files] == ["ops.py", "sub/more.py"]


@pytest.mark.parametrize("entry", ["ops:relu", "kernels.ops:relu"])
def test_a_package_is_imported_by_its_name_which_the_entry_may_leave_out(write, entry):
    folder = write(ops_py=OPS)
    (folder / "__init__.py").touch()
    found = bundle_in(read_package(folder, entry))

    assert found.module == "kernels.ops"
    assert [*found.files] == ["kernels/__init__.py", "kernels/ops.py"]


def test_a_folder_without_init_is_a_package_where_the_entry_names_it(write):
    found = bundle_in(read_package(write(ops_py=OPS), "kernels.ops:relu"))

    assert (found.module, [*found.files]) == ("kernels.ops", ["kernels/ops.py"])


def test_an_entry_may_stand_in_a_package_itself(write):
    folder = write(impl_py=OPS)
    (folder / "__init__.py").write_text("from .impl import relu\n")

    assert bundle_in(read_package(folder, "kernels:relu")).own == "kernels/__init__.py"


def test_an_installed_package_is_found_by_its_name(write, tmp_path, monkeypatch):
    (write(ops_py=OPS) / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)

    found = bundle_in(read_package(packages.Path("kernels"), "kernels.ops:relu"))
    assert found.module == "kernels.ops"


def test_hidden_files_caches_builds_and_runs_are_left_out(write):
    folder = write(
        ops_py=OPS,
        **{".git__x": "", "__pycache__".replace("__", "") + "__y": "kept", "build__z": ""},
        runs__run="",
    )
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "ops.pyc").touch()
    (folder / "runs" / "run.json").touch()

    assert [*bundle_in(read_package(folder, "ops:relu")).files] == ["ops.py", "pycache/y"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("ops:tanh", "'ops:tanh': ops.py defines no 'tanh'; it has relu, gelu"),
        ("ops:", "'ops:': name the function: ops.py has relu, gelu"),
        ("nops:relu", "has no module 'nops'; it has ops, sub.more"),
        ("sub:relu", "has no module 'sub'; it has ops, sub.more"),
        ("ops:relu:x", "'ops:relu:x': must be MODULE:FUNCTION, such as pkg.ops:softmax"),
        (":relu", "':relu': must be MODULE:FUNCTION"),
    ],
)
def test_an_entry_that_is_not_there_is_one_line(write, entry, said):
    folder = write(ops_py=OPS, sub__more_py="x = 1")

    with pytest.raises(UserError) as caught:
        read_package(folder, entry)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "from .impl import relu\n",
        "from .impl import *\n",
        "def __getattr__(name): return print\n",
        "try:\n    import fast as relu\nexcept ImportError:\n    relu = None\n",
        "def (:\n",
    ],
)
def test_an_entry_that_may_be_there_is_left_to_python(write, text):
    assert bundle_in(read_package(write(ops_py=text), "ops:relu")).function == "relu"


def test_a_file_and_a_name_that_nothing_has_are_one_line(write):
    folder = write(ops_py=OPS)

    with pytest.raises(UserError, match="it is a file, and --entry MODULE:FUNCTION needs a"):
        read_package(folder / "ops.py", "ops:relu")
    with pytest.raises(UserError, match="no such folder, and no such package is installed"):
        read_package(packages.Path("kernels_nowhere"), "ops:relu")


def test_a_folder_that_is_too_large_to_store_is_refused(write):
    folder = write(ops_py=OPS)
    (folder / "weights.bin").write_bytes(bytes(packages.MOST_BYTES))

    with pytest.raises(UserError, match=r"over 16 MiB with weights\.bin"):
        read_package(folder, "ops:relu")


def test_a_file_that_cannot_be_read_is_named(write):
    folder = write(ops_py=OPS)
    (folder / "weights.bin").symlink_to("/proc/self/mem")

    with pytest.raises(UserError, match=r"weights.bin': Input/output error; make it readable, or"):
        read_package(folder, "ops:relu")
