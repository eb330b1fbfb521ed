"""What may keep something between calls is read off the source."""

import pytest

from kerneltruth.runner.source_state import may_keep_state

KEEPS = {
    "a rebound name": "last = None\ndef f(x):\n    global last\n    last = x\n",
    "a dict of the module": "kept = {}\ndef f(x):\n    kept[0] = x\n",
    "an empty dict by its type": "import collections\nkept = collections.defaultdict(list)\n",
    "a cached function": "import functools\n@functools.lru_cache\ndef table(n):\n    return n\n",
    "a default argument": "def f(x, kept=[]):\n    kept.append(x)\n",
    "an attribute of a function": "def f(x):\n    f.last = x\n",
    "an attribute of a class": "class A:\n    def f(self, x):\n        A.last = x\n",
}
KEEPS_NOT = {
    "plain arithmetic": "def f(x):\n    y = [x]\n    return y[0] + 1\n",
    "constants": "BLOCK = 128\nNAMES = ('a', 'b')\n",
    "an instance": "class A:\n    def f(self, x):\n        self.last = x\n",
    "a context": "def forward(ctx, x):\n    ctx.shape = x.shape\n",
    "no Python": "def f(",
}


@pytest.mark.parametrize("source", KEEPS.values(), ids=KEEPS.keys())
def test_a_source_that_may_keep_state_is_seen(source):
    assert may_keep_state(source)


@pytest.mark.parametrize("source", KEEPS_NOT.values(), ids=KEEPS_NOT.keys())
def test_a_source_that_keeps_nothing_is_accepted(source):
    assert not may_keep_state(source)
