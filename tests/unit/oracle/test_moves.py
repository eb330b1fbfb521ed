"""Moved inputs: the same to the bit however many are held at once."""

import torch

from kerneltruth.oracle import moves

ULP = 2.0**-24
INPUTS = {
    "x": torch.linspace(-3, 3, 3 * 257, dtype=torch.float64).reshape(3, 257),
    "none": None,
    "index": torch.arange(5),
    "scalar": torch.tensor(2.0, dtype=torch.float64),
    "empty": torch.empty(0, 4, dtype=torch.float64),
}


def test_large_inputs_are_moved_one_way_at_a_time_and_alike():
    together = list(moves.each_move(INPUTS, ULP, 7))
    apart = list(moves.each_move(INPUTS, ULP, 7, at_once=100, piece=64))
    assert len(together) == len(apart) == len(moves.MOVES)
    for one, other in zip(together, apart, strict=True):
        assert list(one) == list(other) == ["x", "scalar", "empty"]
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_pieces_are_moved_as_the_whole():
    whole = moves.moved_each_way(INPUTS, ULP, 7)
    pieces = moves.moved_each_way(INPUTS, ULP, 7, piece=64)
    for name, rows in whole.items():
        assert all(torch.equal(a, b) for a, b in zip(rows, pieces[name], strict=True))


def test_no_move_goes_further_than_one_ulp():
    for moved in moves.each_move(INPUTS, ULP, 7):
        off = (moved["x"] - INPUTS["x"]).abs()
        assert bool((off <= ULP * INPUTS["x"].abs() * (1 + 1e-6)).all())
        assert bool((off > 0).any())
