"""What is kept of sampled calls, and that keeping it leaves no trace."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.runner.timing.messages import SpotCheck
from kerneltruth.runner.timing.spot_checks import SpotRecorder, plain_tensors, unwatched

REQUEST = SpotCheck(buffers=(7, 5), sources=(0, 1), elements=(6,), spots=((5, 0),))


class Memory(TorchDispatchMode):
    """Operators that gave memory which was in none of their arguments."""

    def __init__(self):
        super().__init__()
        self.taken = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        given = [*args, *(kwargs or {}).values()]
        known = {v.untyped_storage().data_ptr() for v in given if isinstance(v, torch.Tensor)}
        if isinstance(made, torch.Tensor) and made.untyped_storage().data_ptr() not in known:
            self.taken.append(str(func))
        return made


@pytest.mark.parametrize("result", [torch.arange(6.0), torch.ones(2, 6)[:, ::2]])
def test_keeping_elements_takes_no_memory(result):
    samples = SpotRecorder(REQUEST, result)
    with Memory() as memory:
        samples.keep(7, result)
        torch.zeros(3)
    # What would be seen is seen.
    assert memory.taken == ["aten.zeros.default"]


def test_lines_belong_to_the_requested_buffers():
    samples = SpotRecorder(REQUEST, torch.zeros(6))
    samples.keep(5, torch.arange(6.0))
    samples.keep(7, -torch.arange(6.0))
    (kept,) = samples.results()
    lines = torch.frombuffer(bytearray(kept.data), dtype=torch.float32).reshape(kept.shape)
    assert lines.tolist() == [[-5.0, 0.0], [5.0, 0.0]]


def test_results_are_kept_where_they_lie_and_may_not_change_places():
    samples = SpotRecorder(REQUEST, torch.zeros(6, device="meta"))
    samples.keep(7, torch.zeros(6, device="meta"))
    samples.keep(5, torch.zeros(6))
    (odd,) = samples.results()
    assert "results on" in odd.text
    assert "cpu" in odd.text


def test_a_call_that_was_not_made_is_not_right():
    samples = SpotRecorder(REQUEST, torch.ones(6))
    samples.keep(7, torch.ones(6))
    lines = torch.frombuffer(bytearray(samples.results()[0].data), dtype=torch.float32)
    assert lines.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_a_class_of_the_candidate_runs_no_code():
    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("asked")

    mine = torch.ones(6).as_subclass(Mine)
    with unwatched():
        assert list(plain_tensors([mine])) == []
        samples = SpotRecorder(REQUEST, mine)
        samples.keep(7, mine)
    assert samples.results()[0].type == "sample"


ASKS = {
    "view": lambda t: t.view(-1),
    "numel": lambda t: t.numel(),
    "detach": lambda t: t.detach(),
    "dtype": lambda t: t.dtype,
    "layout": lambda t: t.layout,
    "resolve_conj": lambda t: t.resolve_conj(),
}


@pytest.mark.parametrize("name", ASKS)
def test_a_function_that_a_candidate_replaced_is_not_called(monkeypatch, name):
    class ToldError(Exception):
        pass

    def tell(self, *args):
        raise ToldError

    tensor = torch.ones(6)
    replaced = property(tell) if name in ("dtype", "layout") else tell
    monkeypatch.setattr(torch.Tensor, name, replaced, raising=False)
    with pytest.raises(ToldError):
        ASKS[name](tensor)
    with unwatched():
        samples = SpotRecorder(REQUEST, tensor)
        samples.keep(7, tensor)
    monkeypatch.undo()
    assert samples.results()[0].shape == (2, 2)
