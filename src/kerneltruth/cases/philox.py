"""Random bits that are the same on every device, Python and torch version: Philox4x32-10.

Random numbers here are a function of a 64-bit key and a counter, computed in integers only, so a
case's inputs can be drawn again anywhere from its seed. Each purpose has its own stream, so drawing
more for one purpose changes no other.

Floats come from the words by exact operations alone: integer arithmetic, conversion, and single
IEEE multiplications in float64. There is no log, cos or division by a constant, whose last bits
differ between devices and library versions.
"""

from __future__ import annotations

import hashlib
import sys
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kerneltruth.errors import InternalError

ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK32 = 0xFFFFFFFF
_MASK16 = 0xFFFF

# For numpy: where a 64-bit word's halves lie, which key and multiplier a pair takes in each round,
# and what the rounds add to the keys.
_LOW, _HIGH = (0, 1) if sys.byteorder == "little" else (1, 0)
_ORDER = np.array([(~r & 1, r & 1) for r in range(ROUNDS)])
_FACTORS = np.array(_MULTIPLIERS, np.uint64)[[(0, 1), (1, 0)]][..., None]
_STEPS = np.array([[[r * _WEYL[i] & _MASK32] for i in _ORDER[r]] for r in range(ROUNDS)], np.uint32)

# Least number of counters to draw at once: a few more cost nothing, and the next draw has them.
_AHEAD = 64
# Two rows of this many int64 fit in a core's second-level cache together with their temporaries.
_CHUNK = 8192
# On a GPU, the number of launches determines the cost.
_CHUNK_ELSEWHERE = 2**20

# A sum of 8 uniforms has variance 8/12; this is sqrt(12/8), written out so that no library
# computes it, over the 2 * 65536 by which the integer sum is scaled.
_NORMAL_SCALE = 1.224744871391589 * 2.0**-17


def philox4x32(counter: Tensor, key: tuple[int, int]) -> Tensor:
    """Apply the ten rounds to `counter`, int64 of shape (4, n) holding 32-bit words.

    A 32 by 32 bit product does not fit an int64. Both multipliers m are at least 2**31, so c * m is
    computed as c * (m - 2**32) + c * 2**32: the first product is above -2**63, its low word is
    that of c * m, and its high word is short by c.

    The words cross over in each round. Rather than turning both pairs round, the even pair is kept
    in alternating order, and the odd pair in the opposite one.
    """
    even, odd = counter[0::2], counter[1::2].flip(0)
    factors, mask = _constants(str(counter.device))
    schedule = [(key[i] + r * _WEYL[i]) & _MASK32 for r in range(ROUNDS) for i in (~r & 1, r & 1)]
    round_keys = torch.tensor(schedule, dtype=torch.int64, device=counter.device)
    for r, round_key in enumerate(round_keys.view(ROUNDS, 2, 1).unbind(0)):
        factor = factors[r & 1]
        product = even * factor
        low = product & mask
        high = product.bitwise_right_shift_(32).add_(even)
        even = high.bitwise_xor_(odd).bitwise_xor_(round_key)
        odd = low.flip(0)
    return torch.stack((even[0], odd[1], even[1], odd[0]))


def philox4x32_numpy(first: int, count: int, key: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Return the rounds for counters first .. first + count - 1, as int64 of shape (count, 4).

    The same words as `philox4x32`, which the tests compare. On the CPU small draws are the rule,
    and there a call costs more than its arithmetic: torch spends ten times as long, and here both
    pairs go through each operation together. A product's halves are read where they lie, in turn
    in one of two buffers, since the low halves are still needed in the next round.
    """
    counter = np.arange(first, first + count, dtype=np.uint64).view(np.uint32).reshape(count, 2)
    even = np.zeros((2, count), np.uint32)
    odd = np.zeros((2, count), np.uint32)
    even[0], odd[1] = counter[:, _LOW], counter[:, _HIGH]
    products = [np.empty((2, count), np.uint64) for _ in (0, 1)]
    halves = [p.view(np.uint32).reshape(2, count, 2) for p in products]
    round_keys = _STEPS + np.array([[k] for k in key], np.uint32)[_ORDER]
    for r in range(ROUNDS):
        np.multiply(even, _FACTORS[r & 1], out=products[r & 1])
        np.bitwise_xor(halves[r & 1][..., _HIGH], odd, out=even)
        np.bitwise_xor(even, round_keys[r], out=even)
        odd = halves[r & 1][::-1, :, _LOW]
    words = np.empty((count, 4), np.int64)
    words[:, 0], words[:, 1], words[:, 2], words[:, 3] = even[0], odd[1], even[1], odd[0]
    return words


@lru_cache(maxsize=8)
def _constants(device: str) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Return the multipliers less 2**32 in both orders, and the mask of a word."""
    low, high = ([m - 2**32] for m in _MULTIPLIERS)
    make = partial(torch.tensor, dtype=torch.int64, device=device)
    return (make([low, high]), make([high, low])), make(_MASK32)


def derive(seed: int, *purpose: str) -> int:
    """Return a 64-bit seed for one purpose: Blake2b of the seed and the purpose's words.

    Every word is preceded by its length, so ("a", "bc") and ("ab", "c") differ.
    """
    if not 0 <= seed < 2**64:
        raise InternalError(f"seed {seed} is not in [0, 2**64)")
    parts = [seed.to_bytes(8, "little")]
    for word in purpose:
        text = word.encode()
        parts += (len(text).to_bytes(8, "little"), text)
    digest = hashlib.blake2b(b"".join(parts), digest_size=8, person=b"kerneltruth")
    return int.from_bytes(digest.digest(), "little")


class Stream:
    """Random draws for one purpose; each draw starts at a fresh counter.

    Every method returns a flat tensor of n elements on `device`; the device does not change them.
    """

    __slots__ = ("_ahead", "_ahead_from", "_key", "_position", "device")

    def __init__(self, key: int, device: str = "cpu", *, counter: int = 0) -> None:
        """Draw from this counter on."""
        self._key = (key & _MASK32, key >> 32)
        self._position = counter
        self._ahead = torch.empty(0, dtype=torch.int64)
        self._ahead_from = 0
        self.device = device

    def words(self, n: int, device: str | None = None) -> Tensor:
        """Draw n 32-bit words, as int64 in [0, 2**32)."""
        counters = -(-n // 4)
        start, self._position = self._position, self._position + counters
        where = device or self.device
        if counters <= _AHEAD and where == "cpu":
            return self._few(start, n)
        chunk = _CHUNK if where == "cpu" else _CHUNK_ELSEWHERE
        parts = [
            self._block(first, min(chunk, start + counters - first), where)
            for first in range(start, start + counters, chunk)
        ]
        if not parts:
            return torch.empty(0, dtype=torch.int64, device=where)
        return (parts[0] if len(parts) == 1 else torch.cat(parts))[:n]

    def _few(self, start: int, n: int) -> Tensor:
        """N words from the counter `start` on, drawn ahead if they were not yet."""
        at = 4 * (start - self._ahead_from)
        if at < 0 or at + n > self._ahead.numel():
            self._ahead, self._ahead_from, at = self._block(start, _AHEAD, "cpu"), start, 0
        return self._ahead[at : at + n].clone()

    def _block(self, first: int, n: int, device: str) -> Tensor:
        if device == "cpu":
            return torch.from_numpy(philox4x32_numpy(first, n, self._key).reshape(-1))
        counter = torch.zeros((4, n), dtype=torch.int64, device=device)
        position = torch.arange(first, first + n, dtype=torch.int64, device=device)
        if first + n <= 2**32:
            counter[0] = position
        else:
            counter[0] = position & _MASK32
            counter[1] = position >> 32
        return philox4x32(counter, self._key).t().reshape(-1)

    def uniform(self, n: int) -> Tensor:
        """Draw float64 in [0, 1) from 24 bits each, so that float32 holds them exactly."""
        return (self.words(n) >> 8).double().mul_(2.0**-24)

    def normal(self, n: int) -> Tensor:
        """Draw float64 of mean 0 and variance 1, in (-4.9, 4.9): sums of 8 uniforms of 16 bits.

        The sum is exact, so the values are too up to one rounding; their kurtosis is 2.85 (a
        Gaussian has 3), which is all that a test input needs.
        """
        words = self.words(4 * n)
        total = (words & _MASK16).add_(words >> 16).view(n, 4).sum(1)
        return total.mul_(2).sub_(8 * _MASK16).double().mul_(_NORMAL_SCALE)

    def integers(self, n: int, low: int, high: int) -> Tensor:
        """Draw int64 in [low, high); the bias is at most one part in 2**32 times the span."""
        span = high - low
        if span < 1:
            raise InternalError(f"no integer is in [{low}, {high})")
        if span <= 2**31:
            return ((self.words(n) * span) >> 32) + low
        words = self.words(2 * n)
        bits = ((words[:n] - 2**31) << 32) + words[n:]
        if span == 2**64:
            return bits
        return (bits & (2**63 - 1)) % span + low

    def coins(self, n: int) -> Tensor:
        """Draw n fair bools."""
        return self.words(n) >= 2**31


def stream(seed: int, *purpose: str, device: str = "cpu") -> Stream:
    """Return the stream of one purpose; the same seed and purpose give the same draws."""
    return Stream(derive(seed, *purpose), device)
