"""What a source replaces outside of itself is read off its text."""

import pytest

from kerneltruth.runner.source_patches import patches

REPLACES = {
    "import torch\ntorch.allclose = torch.equal = None\n": (
        "torch.allclose (line 2)",
        "torch.equal (line 2)",
    ),
    "import torch as t\nt.Tensor.double = lambda self: self\n": ("torch.Tensor.double (line 2)",),
    "from torch import cuda\ncuda.Event = None\n": ("torch.cuda.Event (line 2)",),
    "import torch.cuda\nsetattr(torch.cuda, 'synchronize', None)\n": (
        "torch.cuda.synchronize (line 2)",
    ),
    "import torch\nsetattr(torch, 'a' + 'b', None)\n": ("torch.... (line 2)",),
    "from kerneltruth.runner.child import placing\ndef f():\n    placing.place = None\n": (
        "kerneltruth.runner.child.placing.place (line 3)",
    ),
    "import sys\nsys.modules['torch'] = None\n": ("sys.modules (line 2)",),
    "import time\ndel time.perf_counter\n": ("time.perf_counter (line 2)",),
    "import torch\ntorch.__dict__['relu'] = None\n": ("torch.__dict__ (line 2)",),
}
REPLACES_NOT = {
    "settings": "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
    "torch._inductor.config.max_autotune = True\n",
    "an instance": "import torch\nclass A(torch.nn.Module):\n    def f(self): self.x = 1\n",
    "a tensor": "import torch\ndef f(x):\n    x[0] = torch.ones(1)\n    x.grad = None\n",
    "a shim of Triton's": "import triton.language as tl\ntl.tanh = tl.math.tanh\n",
    "its own names": "relu = None\nclass torch_like:\n    pass\ntorch_like.relu = None\n",
    "no Python": "import torch\ntorch.relu = (",
}


@pytest.mark.parametrize(("source", "names"), REPLACES.items(), ids=range(len(REPLACES)))
def test_names_that_a_source_replaces_are_named(source, names):
    assert patches(source) == names


@pytest.mark.parametrize("source", REPLACES_NOT.values(), ids=REPLACES_NOT.keys())
def test_what_a_kernel_may_set_is_left_alone(source):
    assert patches(source) == ()
