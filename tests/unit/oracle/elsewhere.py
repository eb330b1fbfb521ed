"""A second device without a GPU: tensors that say they lie there, and refuse to meet the CPU's.

Their elements are on the CPU, so that every operator runs; but, as on a GPU, an operator takes
tensors of one device only (numbers without dims aside), and a generator of the CPU draws nothing
there. It goes by the name of torch's `meta` device, which `torch.device` accepts anywhere.
"""

import contextlib

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

NAME = "meta"
_THERE = torch.device(NAME)
# What copies from one device to another.
_MOVES = ("_to_copy", "copy_", "copy")
# What takes indices of the CPU on any device.
_INDEXED = ("index", "index_put_", "index_put", "_index_put_impl_", "_unsafe_index_put")


class Elsewhere(torch.Tensor):
    """A tensor of the second device."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=_THERE,
        )

    def __init__(self, held):
        self.held = held

    def tolist(self):
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


def _run(func, args, kwargs):
    name = func.overloadpacket.__name__
    flat, form = tree_flatten((args, kwargs))
    given = [a for a in flat if isinstance(a, torch.Tensor)]
    there = [isinstance(t, Elsewhere) for t in given]
    wanted = kwargs.get("device")
    if wanted is None and not any(there):
        return func(*args, **kwargs)
    on_cpu = wanted is not None and torch.device(wanted).type == "cpu"
    if name in _INDEXED and there[:1] == [True]:
        # The tensor and what is put there; indices may come from the CPU.
        given, there = given[:1], [True]
    mixed = any(there) and not all(
        t or not g.ndim or g.numel() == 0 for t, g in zip(there, given, strict=True)
    )
    if mixed and name not in _MOVES:
        raise RuntimeError(f"Expected all tensors to be on the same device: {name}")
    lies_there = any(there) if wanted is None else not on_cpu
    if name in ("copy_", "copy"):
        lies_there = there[0]
    generator = kwargs.get("generator")
    if lies_there and generator is not None:
        raise RuntimeError("Expected another device's type for generator but found 'cpu'")
    plain, named = tree_unflatten([a.held if isinstance(a, Elsewhere) else a for a in flat], form)
    result = func(*plain, **(named if wanted is None else {**named, "device": torch.device("cpu")}))
    if name.endswith("_") and given and there[0]:
        return args[0]
    if not lies_there:
        return result
    if type(result) is torch.Tensor:
        return Elsewhere(result)
    return tree_map(lambda r: Elsewhere(r) if type(r) is torch.Tensor else r, result)


class _NumbersThere(TorchFunctionMode):
    """What makes tensors of Python's numbers asks no dispatcher where they go."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.tensor and torch.device(kwargs.get("device") or "cpu") == _THERE:
            return func(*args, **{**kwargs, "device": "cpu"}).to(_THERE)
        if func is torch.Tensor.__getitem__:
            where = args[1] if isinstance(args[1], tuple) else (args[1],)
            args = args[0], tuple(_index(i) for i in where)
        return func(*args, **kwargs)


def _index(part):
    return torch.tensor(part, device="cpu") if isinstance(part, list) else part


class _Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


@contextlib.contextmanager
def second_device():
    """Within it there is the second device."""
    with _Dispatched(), _NumbersThere():
        yield
