"""Small problems in KernelBench's form, of our own writing."""

from kerneltruth.importers.kernelbench.problem import problem_of

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
