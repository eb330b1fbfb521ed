"""What the zygote builds once for all children; no device, and no C compiler, is needed here."""

import os

import pytest

from kerneltruth.runner.child.precompile import reach_driver

driver = pytest.importorskip("triton.backends.nvidia.driver")


@pytest.fixture(autouse=True)
def no_instance():
    yield
    if hasattr(driver.CudaUtils, "instance"):
        del driver.CudaUtils.instance


def test_access_to_the_driver_is_built_once_in_the_given_folder(monkeypatch, tmp_path):
    before = os.environ.get("TRITON_CACHE_DIR")
    folders = []
    monkeypatch.setattr(
        driver.CudaUtils, "__init__", lambda self: folders.append(os.environ["TRITON_CACHE_DIR"])
    )
    reach_driver(str(tmp_path))
    made = driver.CudaUtils()
    assert folders == [str(tmp_path)]
    assert made is driver.CudaUtils.instance
    assert os.environ.get("TRITON_CACHE_DIR") == before


def test_what_could_not_be_built_is_tried_again_where_it_is_needed(monkeypatch, tmp_path):
    tries = []

    def fails(self):
        tries.append(1)
        raise RuntimeError("no libcuda.so.1")

    monkeypatch.setattr(driver.CudaUtils, "__init__", fails)
    reach_driver(str(tmp_path))
    with pytest.raises(RuntimeError, match="libcuda"):
        driver.CudaUtils()
    assert len(tries) == 2
