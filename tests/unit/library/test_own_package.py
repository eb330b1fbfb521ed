"""A function of a package comes with the package, where its source imports from it."""

import importlib
import pathlib
import sys

import pytest

from kerneltruth.errors import UserError
from kerneltruth.library.candidates import source_in
from kerneltruth.runner.bundle import bundle_in
from kerneltruth.runner.packages import MOST_BYTES


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Import `ops` of a package `mine` with this text, beside a module `low`."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "low.py").write_text("def least(x): return x.clamp(min=0)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def write(text, *, init=True):
        if init:
            (folder / "__init__.py").touch()
        (folder / "ops.py").write_text(text)
        return importlib.import_module("mine.ops")

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "mine"]:
        del sys.modules[name]


USES = "def relu(x): return least(x)\n"


@pytest.mark.parametrize("line", ["from .low import least\n", "from mine.low import least\n"])
@pytest.mark.parametrize("init", [True, False])
def test_it_comes_with_the_package_that_it_imports_from(imported, line, init):
    found = source_in(imported(line + USES, init=init).relu)

    bundle = bundle_in(found.text)
    assert (bundle.module, bundle.function, found.name) == ("mine.ops", "relu", "relu")
    assert "mine/low.py" in bundle.files
    assert found.entry is None


def test_what_imports_nothing_of_its_package_comes_alone(imported):
    text = "import math\nfrom .low import least\ndef relu(x): return x.clamp(min=math.floor(0.5))\n"
    found = source_in(imported(text).relu)

    assert bundle_in(found.text) is None
    assert (found.entry, "least" in found.text) == ("relu", False)


def test_an_installed_package_stays_where_it_is(imported, tmp_path, monkeypatch):
    module = imported("from mine.low import least\n" + USES)
    paths = dict.fromkeys(("purelib", "platlib", "stdlib"), str(tmp_path))
    monkeypatch.setattr("sysconfig.get_paths", lambda: paths)

    assert bundle_in(source_in(module.relu).text) is None


def test_a_package_that_is_too_large_is_left_to_python_unless_it_is_needed(imported, tmp_path):
    (tmp_path / "mine" / "weights.bin").write_bytes(bytes(MOST_BYTES))
    absolute = imported("from mine.low import least\n" + USES).relu
    assert bundle_in(source_in(absolute).text) is None

    (pathlib.Path(sys.modules["mine.ops"].__file__)).write_text("from .low import least\n" + USES)
    relative = importlib.reload(sys.modules["mine.ops"]).relu
    with pytest.raises(UserError, match="its files are over 16 MiB"):
        source_in(relative)


def test_a_function_of_a_file_alone_needs_no_package():
    assert bundle_in(source_in(only_here).text) is None


def only_here(x):
    return x
