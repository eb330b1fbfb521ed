"""Small problems in KernelBench's form, of our own writing."""

from kerneltruth.suites.kernelbench.problem import problem_of
from kerneltruth.suites.kernelbench.schema import Input, Outline

HEAD = "import torch\nfrom torch import nn\n"
NO_INIT = "def get_init_inputs():\n    return []\n"

LINEAR = (
    HEAD
    + '''
class Model(nn.Module):
    """Multiplies rows by weights and cuts off what is below 0."""

    def __init__(self, features, outputs):
        super().__init__()
        self.layer = nn.Linear(features, outputs)

    def forward(self, x):
        return torch.relu(self.layer(x))


rows = 64 * 4
features = 512
outputs = 128


def get_inputs():
    return [torch.rand(rows, features)]


def get_init_inputs():
    return [features, outputs]
'''
)

GROUPED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, channels, groups, weight_shape):
        super().__init__()
        assert channels % groups == 0
        self.norm = nn.GroupNorm(groups, channels)
        self.scale = nn.Parameter(torch.randn(weight_shape))

    def forward(self, x):
        return self.norm(x) * self.scale


batch, channels = 32, 256
groups = 8
weight_shape = (channels, 1)


def get_inputs():
    return [torch.rand(batch, channels, 100)]


def get_init_inputs():
    return [channels, groups, weight_shape]
"""
)

# The model reads `rows`, made of `half`, beside what its constructor is given.
REMEMBERING = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.last = torch.zeros(rows, features)

    def forward(self, x):
        self.last = self.last.to(x) * 0 + x.cumsum(0)
        return self.last


half = 20
rows = half * 2
features = 100


def get_inputs():
    return [torch.rand(rows, features)]


def get_init_inputs():
    return [features]
"""
)

# Its constructor reads numbers, and it has a recurrent layer.
STACKED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        rates = [x.item() for x in torch.linspace(0, 0.5, 3)]
        self.rate = rates[-1]
        self.turns = torch.arange(4.0)
        self.layer = nn.GRU(features, hidden, 2, batch_first=True)

    def forward(self, x):
        out, last = self.layer(x)
        return out * self.rate, last.sum() + self.turns.sum()


batch, steps, features, hidden = 64, 2048, 256, 256


def get_inputs():
    return [torch.rand(batch, steps, features)]


def get_init_inputs():
    return [features, hidden]
"""
)

# What its constructor draws after the weights is no parameter, and a call writes to some of it.
DRAWING = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.layer = nn.Linear(features, hidden)
        self.state = torch.randn(rows, hidden)
        self.both = [torch.randn(hidden), {"order": torch.randperm(hidden)}]
        self.factor = 1 + torch.rand(1).item()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        first, last = self.both[0], self.both[1]["order"]
        self.state = self.factor * (self.layer(x) + self.state.to(x.device)) * self.calls
        return (self.state + first.to(x.device))[:, last]


rows, features, hidden = 64, 256, 128


def get_inputs():
    return [torch.rand(rows, features)]


def get_init_inputs():
    return [features, hidden]
"""
)


NORMALIZED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x):
        return torch.relu(self.norm(x))


batch, channels = 128, 96


def get_inputs():
    return [torch.rand(batch, channels)]


def get_init_inputs():
    return [channels]
"""
)

DROPPED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, features, outputs, p):
        super().__init__()
        self.layer = nn.Linear(features, outputs)
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        return torch.softmax(self.dropout(self.layer(x)), dim=1)


batch, features, outputs = 128, 96, 80


def get_inputs():
    return [torch.rand(batch, features)]


def get_init_inputs():
    return [features, outputs, 0.2]
"""
)

# Two numbers of 4 bits in each byte.
PACKED = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.levels = levels

    def forward(self, packed):
        low = packed & 15
        high = (packed >> 4) & 15
        return torch.stack((low, high), -1).flatten(1).float() / self.levels


LEVELS = 256
rows, columns = 128, 512


def get_inputs():
    return [torch.randint(0, 256, (rows, columns), dtype=torch.uint8)]


def get_init_inputs():
    return [LEVELS]
"""
)

# Halves of an odd dim, of sizes 1 and 2, would broadcast.
ROTARY = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, x, angle):
        half = x.shape[-1] // 2
        first, second = x[..., :half], x[..., half:]
        cos, sin = angle[..., :half].cos(), angle[..., :half].sin()
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


rows, dim = 256, 64


def get_inputs():
    return [torch.rand(rows, dim), torch.rand(rows, dim)]


def get_init_inputs():
    return []
"""
)


def function(body, inputs, constants=""):
    """A problem without weights: the model's forward, and what get_inputs returns."""
    names = ", ".join(f"a{i}" for i in range(inputs.count("torch.") or 1))
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return (
        f"{HEAD}\nclass Model(nn.Module):\n    def forward(self, {names}):\n{lines}\n\n"
        f"n = 64\nm = 48\n{constants}\n"
        f"def get_inputs():\n    return [{inputs}]\n\n{NO_INIT}"
    )


def problem(source, number=1):
    return problem_of(1, number, "A_problem", source)


def outline(shape, *, flops=None, weights=()):
    count = 1
    for n in shape:
        count *= n
    return Outline(
        init="[]",
        plain=True,
        names=("x",),
        inputs=(Input(shape=tuple(shape), dtype="float32"),),
        state={"w": tuple(weights)},
        parameters=("w",),
        outputs=(Input(shape=tuple(shape), dtype="float32"),),
        flops=count if flops is None else flops,
        terms=1,
        products=0,
    )
