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

        call = inspect.signature(function).bind(input, *given, **options)
        out = call.arguments.get("out")
        wide = {
            name: value.float() if torch.is_tensor(value) and value is not out else value
            for name, value in call.arguments.items()
        }
        result = function(**wide)
        return result.to(input.dtype)

    return aided
