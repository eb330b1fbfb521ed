"""Compare one output with the reference as the peers do: None if it passes, else the reason."""

from __future__ import annotations

from collections.abc import Callable

import torch

OutputCheck = Callable[[torch.Tensor, torch.Tensor], str | None]


def all_close(*, atol: float, rtol: float, shape: bool) -> OutputCheck:
    """Compare by `torch.allclose`, which broadcasts: shapes count only if compared before."""

    def compare(got: torch.Tensor, want: torch.Tensor) -> str | None:
        if shape and got.shape != want.shape:
            return f"shape {tuple(got.shape)}, not {tuple(want.shape)}"
        try:
            close = torch.allclose(want, got, atol=atol, rtol=rtol)
        except RuntimeError as error:
            # Shapes that do not broadcast, or another dtype: a failed comparison for the peer.
            return f"allclose refuses: {str(error).splitlines()[0]}"
        return None if close else f"not close: atol {atol:g}, rtol {rtol:g}"

    return compare


def asserted_close(tolerance: float) -> OutputCheck:
    """Compare as `torch.testing.assert_close` does with equal_nan: shape and dtype count.

    Torch's own function is avoided: it imports torch.distributed first, which takes a second.
    """

    def compare(got: torch.Tensor, want: torch.Tensor) -> str | None:
        if got.shape != want.shape:
            return f"shape {tuple(got.shape)}, not {tuple(want.shape)}"
        if got.dtype != want.dtype:
            return f"dtype {got.dtype}, not {want.dtype}"
        close = torch.isclose(got, want, atol=tolerance, rtol=tolerance, equal_nan=True)
        apart = int((~close).sum())
        return f"{apart} of {close.numel()} elements are not close" if apart else None

    return compare


def both_exceed(*, atol: float, rtol: float) -> OutputCheck:
    """Fail an element if its absolute and relative errors are both too large; NaN and Inf fail.

    A NaN in the reference alone matches anything, because every comparison with it is false.
    """

    def compare(got: torch.Tensor, want: torch.Tensor) -> str | None:
        if got.shape != want.shape:
            return f"shape {tuple(got.shape)}, not {tuple(want.shape)}"
        if got.dtype != want.dtype:
            return f"dtype {got.dtype}, not {want.dtype}"
        x, y = got.float(), want.float()
        if not bool(x.isfinite().all()):
            return "NaN or Inf in the output"
        error = (x - y).abs()
        wrong = (error > atol) & (error / (y.abs() + 1e-8) > rtol)
        count = int(wrong.sum())
        return f"{count} of {wrong.numel()} elements differ" if count else None

    return compare


def absolute(tolerance: float) -> OutputCheck:
    """Require that the largest absolute error is within a tolerance; a NaN in the output fails.

    It fails even where the reference is NaN too. Equal infinities agree.
    """

    def compare(got: torch.Tensor, want: torch.Tensor) -> str | None:
        if got.shape != want.shape:
            return f"shape {tuple(got.shape)}, not {tuple(want.shape)}"
        x, y = got.double(), want.double()
        if bool(x.isnan().any()):
            return "NaN in the output"
        error = torch.where(x == y, torch.zeros_like(x), (x - y).abs())
        exceeding = int((error > tolerance).sum())
        return f"{exceeding} elements are off by more than {tolerance:g}" if exceeding else None

    return compare


def similar(*, cosine: float, l1: float, rmse: float) -> OutputCheck:
    """Compare quantized results by cosine similarity, relative L1 and root-mean-square error."""

    def compare(got: torch.Tensor, want: torch.Tensor) -> str | None:
        if got.shape != want.shape:
            return f"shape {tuple(got.shape)}, not {tuple(want.shape)}"
        x, y = got.double().flatten(), want.double().flatten()
        if torch.equal(x, y):
            return None
        found_cosine = float(torch.nn.functional.cosine_similarity(x, y, dim=0))
        found_l1 = float((x - y).abs().sum() / y.abs().sum().clamp_min(1e-12))
        found_rmse = float((x - y).square().mean().sqrt())
        # Written so that NaN fails.
        if found_cosine >= cosine and found_l1 <= l1 and found_rmse <= rmse:
            return None
        return f"cosine {found_cosine:.4g}, relative L1 {found_l1:.3g}, RMSE {found_rmse:.3g}"

    return compare
