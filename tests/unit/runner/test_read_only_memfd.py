"""Memory that other processes may read and none may change."""

import errno
import fcntl
import mmap
import os

import pytest

from kerneltruth.runner.read_only_memfd import TRIES, ReadOnlyMemfd

DATA = bytes(range(256)) * 64


@pytest.fixture
def sealed():
    return ReadOnlyMemfd(memoryview(DATA))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def test_any_process_that_opens_it_reads_the_bytes(sealed):
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


class Refusing:
    """Refuses as many attempts to seal; keeps their descriptors."""

    def __init__(self, times, number):
        self.requests = []
        self._times, self._number = times, number

    def __call__(self, descriptor, *more):
        self.requests.append(descriptor)
        if len(self.requests) <= self._times:
            raise OSError(self._number, os.strerror(self._number))
        return fcntl.fcntl(descriptor, *more)


def test_memory_whose_pages_are_held_for_a_moment_is_sealed_when_they_are_not():
    control = Refusing(3, errno.EBUSY)
    sealed = ReadOnlyMemfd(memoryview(DATA), control=control, pause_s=0.0)
    assert len(control.requests) == 4
    with pytest.raises(PermissionError):
        os.write(control.requests[0], b"spoilt")
    assert read(sealed.path) == DATA


@pytest.mark.parametrize(("number", "tries"), [(errno.EBUSY, TRIES), (errno.EPERM, 1)])
def test_memory_that_cannot_be_sealed_is_given_back(number, tries):
    control = Refusing(TRIES + 1, number)
    with pytest.raises(OSError, match=os.strerror(number)):
        ReadOnlyMemfd(memoryview(DATA), control=control, pause_s=0.0)
    assert len(control.requests) == tries
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(control.requests[0])


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
def test_no_process_can_change_it(sealed, change):
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
    made = ReadOnlyMemfd(memoryview(DATA))
    descriptor = int(made.path.rpartition("/")[2])
    del made
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_nothing_can_be_sealed():
    assert read(ReadOnlyMemfd(memoryview(b"")).path) == b""
