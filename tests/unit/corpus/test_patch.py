"""A patch, as `diff -u` writes it, applies to its own text alone."""

import difflib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerneltruth.corpus.patch import apply_patch

TEXTS = st.lists(st.sampled_from("abc"), min_size=1).map(lambda words: "\n".join(words) + "\n")


def patch_of(old, new, context):
    lines = (text.splitlines(keepends=True) for text in (old, new))
    return "".join(difflib.unified_diff(*lines, "old.py", "new.py", n=context))


# On a busy machine the first texts may take a second.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(old=TEXTS, new=TEXTS, context=st.integers(1, 3))
def test_a_patch_makes_the_new_text(old, new, context):
    assert apply_patch(patch_of(old, new, context), old) == new


def test_a_line_that_the_patch_does_not_expect_is_named():
    patch = patch_of("a\nb\nc\n", "a\nx\nc\n", 1)
    with pytest.raises(ValueError, match="line 2 is not 'b'"):
        apply_patch(patch, "a\ny\nc\n")
