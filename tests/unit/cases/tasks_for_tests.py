"""Small tasks that the tests of cases share; references are not needed here."""

from kerneltruth.tasks.spec import Dim, task


def _never(*_args, **_kwargs):
    raise AssertionError("making a case calls no reference")


def declare(signature, dims, **more):
    return task(
        signature,
        category="Test",
        dims=dims,
        reference=_never,
        description="",
        flops="1",
        **more,
    )


RELU = declare("relu(x[M, N])", {"M": "batch", "N": "spatial"}, benchmark={"M": 16, "N": 256})
FLAT = declare("flat(x[N], y[N])", {"N": "channel"}, extended_dtypes=("float64", "int32"))
RMS_NORM = declare("rms_norm(x[M, N], weight[N]?, eps=1e-6)", {"M": "batch", "N": "reduced"})
MATMUL = declare("matmul(a[M, K], b[K, N])", {"M": "batch", "N": "channel", "K": "contracted"})
CROSS_ENTROPY = declare(
    "cross_entropy(x[N, C], target[N]: index(C), weight[C]?: positive, reduction='mean')",
    {"N": "batch", "C": Dim(symbol="C", role="reduced", low=1)},
    attributes={"reduction": ("sum", "none")},
)
CONV = declare(
    "conv(x[B, C, H, W], weight[O, C // groups, K, K], groups=1, stride=1)",
    {
        "B": "batch",
        "C": Dim(symbol="C", role="channel", low=1),
        "H": Dim(symbol="H", role="spatial", low=1),
        "W": Dim(symbol="W", role="spatial", low=1),
        "O": "channel",
        "K": Dim(symbol="K", role="spatial", low=1, high=7),
    },
    attributes={"groups": (2, 3), "stride": (2,)},
    constraints=("C % groups == 0", "O % groups == 0", "K <= min(H, W)"),
)
EVERYTHING = declare(
    "everything(x[M, N], p[M, N]: probability, u[M, N]: unit, s[N]: positive, "
    "i[M]: index(N), m[M, N]: mask, b[M]: bool, q[M, N]: int8, w[M]: int32, l[M]: int64, "
    "f[N]: float32, beta=1.0)",
    {"M": "batch", "N": "channel"},
)
IN_PLACE = declare("add_(x[M, N], y[M, N])", {"M": "batch", "N": "spatial"}, mutates=("x",))
ALL = (RELU, FLAT, RMS_NORM, MATMUL, CROSS_ENTROPY, CONV, EVERYTHING, IN_PLACE)
