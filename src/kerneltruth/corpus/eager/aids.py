"""What goes around faults of PyTorch's own, for the functions of this folder."""

import functools
import inspect

import torch


def in_float32_on_a_cpu(function):
    """Half precision on a CPU overflows in partial sums, and loses infinities beside NaN."""

    @functools.wraps(function)
    def aided(input, *given, **options):
        if input.device.type != "cpu" or input.dtype not in (torch.float16, torch.bfloat16):
            return function(input, *given, **options)

        arguments = inspect.signature(function).bind(input, *given, **options).arguments
        own = {n: t for n, t in arguments.items() if torch.is_tensor(t) and n != "out"}
        wide = {name: t.float() for name, t in own.items()}
        result = function(**{**arguments, **wide})
        for name, t in own.items():
            # What the operator updates, such as running statistics.
            if not torch.equal(wide[name].nan_to_num(), t.float().nan_to_num()):
                t.copy_(wide[name])
        return result.to(input.dtype)

    return aided
