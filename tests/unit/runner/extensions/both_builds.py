"""Builds one extension with few or all of PyTorch's headers, and prints what its functions answer.

python both_builds.py lean|full
"""

import re
import sys

import torch
from torch.utils import cpp_extension

from kerneltruth.runner import extensions

SOURCE = """
torch::Tensor scale(torch::Tensor x, double f, int k) {
    TORCH_CHECK(x.dim() == 2, "x must be 2-D, got ", x.dim(), " of ", x.sizes());
    TORCH_CHECK(x.numel() < 100);
    auto y = torch::empty_like(x);
    auto n = x.numel();
    for (int64_t i = 0; i < n; ++i) y.data_ptr<float>()[i] = x.data_ptr<float>()[i] * f + k;
    return y;
}
std::vector<torch::Tensor> two(const torch::Tensor& x) { return {x, x.t().contiguous()}; }
torch::Tensor view(torch::Tensor x, std::vector<int64_t> sizes) { return x.view(sizes); }
void fill(torch::Tensor x) { x.fill_(3.5); }
double total(torch::Tensor x) { return x.sum().item<float>(); }
std::tuple<torch::Tensor, int64_t> pair(torch::Tensor x, bool b) {
    return {torch::zeros({x.size(0), 3}, x.options()), b ? x.numel() : -1};
}
torch::Tensor first(std::vector<torch::Tensor> xs) { return xs.at(0); }
torch::Tensor nothing() { return torch::Tensor(); }
bool given(std::optional<torch::Tensor> x) { return x.has_value(); }
int64_t made(torch::Tensor x) {
    auto y = torch::zeros({2, 2}, torch::TensorOptions().dtype(torch::kInt32).device(x.device()));
    auto z = torch::ones({2}, torch::kFloat64);
    return (y.scalar_type() == torch::kInt32) + 2 * (y.sizes() != x.sizes()) +
        4 * (z.dtype() == torch::kDouble) + 8 * (x.stride(-1) == 1) + 16 * x.device().is_cuda();
}
float dispatched(torch::Tensor x) {
    float s = 0;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "dispatched", [&] {
        s = x.data_ptr<scalar_t>()[0];
    });
    return s;
}
torch::Tensor moved(torch::Tensor x) {
    return x.transpose(0, 1).unsqueeze(0).expand({2, 3, 2}).permute({2, 0, 1}).flatten(1);
}
torch::Tensor relu(torch::Tensor x) { return at::relu(x) + torch::full_like(x, 2).sigmoid(); }
bool asks(torch::Tensor x) {
    auto y = torch::zeros({2}, torch::TensorOptions().requires_grad(true));
    return y.requires_grad() && !torch::empty_like(x, x.options()).requires_grad();
}
torch::Tensor counted(int n) {
    return torch::arange(n, torch::kFloat32) * torch::tensor({1.5, 2.5});
}
std::string written(torch::Tensor x) { return c10::str(x.sizes(), x.scalar_type(), x[0]); }
void thrown() { throw std::invalid_argument("a bad argument"); }
"""
NAMES = re.findall(r"^\S.* (\w+)\(.*\{", SOURCE, re.MULTILINE)


def say(function, *arguments, **named):
    """Print what a call gives; of a refused argument only that it is refused."""
    try:
        answer = function(*arguments, **named)
    except TypeError:
        answer = "TypeError"
    except Exception as error:
        answer = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    print(function.__name__, str(answer).replace("\n", " "))


def main():
    extensions.install("no-kit" if sys.argv[1] == "lean" else None)
    module = cpp_extension.load_inline(name="both", cpp_sources=SOURCE, functions=NAMES)
    print("lean:", extensions.lean())
    x = torch.arange(6.0).view(2, 3)
    for arguments in (
        *((x, 2.0, 1), (x, 2, True), (x[0], 2.0, 1), (x, 2.0, 1.5), (x, 2.0), (x, 2.0, 2**40)),
        *((x.double(), 2.0, 1), (x.numpy(), 2.0, 1), (None, 1.0, 1), (torch.ones(10, 10), 1.0, 1)),
        (x, torch.tensor(2.0), 1),
    ):
        say(module.scale, *arguments)
    say(module.scale, x, f=2.0, k=1)
    for sizes in ([3, 2], (6,), [5], [3.0, 2.0], "ab"):
        say(module.view, x, sizes)
    for one in ([x], (x,), [], x, "ab", [1]):
        say(module.first, one)
    for flag in (True, 1, None, "yes"):
        say(module.pair, x, flag)
    for tensor in (x, x.double(), x.half(), x.int()):
        say(module.dispatched, tensor)
        say(module.made, tensor)
    for function in (module.two, module.total, module.moved, module.fill, module.given):
        say(function, x)
    say(module.total, torch.nn.Parameter(x))
    for function in (module.relu, module.asks, module.written):
        say(function, torch.nn.Parameter(x[0].clone()))
    say(module.counted, 2)
    say(module.counted, 3)
    say(module.given, None)
    say(module.nothing)
    say(module.thrown)
    print("filled", x.tolist())


if __name__ == "__main__":
    main()
