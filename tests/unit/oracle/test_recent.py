"""A cache of tensors stays within its bytes."""

import torch

from kerneltruth.oracle.recent import Recent, tensor_bytes


def ones():
    return (torch.ones(1024),)


def counted(log):
    def make():
        log.append(1)
        return ones()

    return make


def test_a_value_is_made_once():
    cache, log = Recent(tensor_bytes, limit_bytes=2**20), []
    assert cache.get("a", counted(log)) is cache.get("a", counted(log))
    assert len(log) == 1


def test_the_least_recently_used_value_goes_first():
    # An entry is 4096 bytes of elements and 4096 of overhead.
    cache, log = Recent(tensor_bytes, limit_bytes=2 * 8192), []
    a = cache.get("a", ones)
    b = cache.get("b", ones)
    cache.get("a", ones)
    cache.get("c", ones)
    assert cache.get("a", counted(log)) is a
    assert log == []
    assert cache.get("b", counted(log)) is not b
    assert log == [1]


def test_a_value_over_the_limit_is_kept_while_it_is_the_newest():
    cache, log = Recent(tensor_bytes, limit_bytes=1), []
    cache.get("a", ones)
    cache.get("a", counted(log))
    assert log == []
