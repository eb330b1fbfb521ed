"""Memory that others may read and nobody may change."""

import mmap
import os

import pytest

from kerneltruth.runner.sealed import Sealed

DATA = bytes(range(256)) * 64


@pytest.fixture
def sealed():
    return Sealed(memoryview(DATA))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def test_whoever_opens_it_reads_the_bytes(sealed):
    assert read(sealed.path) == DATA


def test_a_child_process_reads_it_by_its_path(sealed):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, read(sealed.path)[:300])
        os._exit(0)
    assert os.read(reader, 300) == DATA[:300]
    assert os.waitpid(child, 0)[1] == 0
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: os.write(f, b"spoilt"),
        lambda f: os.pwrite(f, b"spoilt", 100),
        lambda f: os.ftruncate(f, 0),
        lambda f: os.ftruncate(f, 2 * len(DATA)),
        lambda f: mmap.mmap(f, len(DATA), mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
    ],
    ids=["write", "pwrite", "shrink", "grow", "shared map"],
)
def test_nobody_can_change_it(sealed, change):
    try:
        descriptor = os.open(sealed.path, os.O_RDWR)
    except OSError:
        return
    try:
        with pytest.raises(OSError, match=r"not permitted|denied"):
            change(descriptor)
    finally:
        os.close(descriptor)
    assert read(sealed.path) == DATA


def test_a_private_map_changes_nothing_for_others(sealed):
    with open(sealed.path, "rb") as file:
        private = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        private[:6] = b"spoilt"
        private.close()
    assert read(sealed.path) == DATA


def test_it_goes_with_its_object():
    made = Sealed(memoryview(DATA))
    descriptor = int(made.path.rpartition("/")[2])
    del made
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_nothing_can_be_sealed():
    assert read(Sealed(memoryview(b"")).path) == b""
