"""Makes Triton's interpreter compute what the GPU computes.

`install()` replaces the parts of `triton.runtime.interpreter` that do not. Importing this
package imports neither Triton nor torch.
"""

from __future__ import annotations

from kerneltruth.runner.interpreter.settings import set_dot_precision
from kerneltruth.runner.interpreter.unsupported import UnsupportedHere
from kerneltruth.runner.interpreter.versions import LAST_TESTED, WINDOW, number

__all__ = ["UnsupportedHere", "install", "prepare", "refusal", "set_dot_precision"]

_refusal: str | None = None


def install() -> None:
    """Make the interpreter of this process faithful; a second call changes nothing.

    Call it after `TRITON_INTERPRET=1` was set and before any kernel is imported.

    Raises:
        UnsupportedHere: the installed Triton is not one that this fits.
    """
    import triton

    try:
        from kerneltruth.runner.interpreter import installation

        installation.install()
        if number(triton.__version__) > LAST_TESTED:
            from kerneltruth.runner.interpreter import probe

            probe.check()
    except Exception as error:
        # Whatever an unknown version changes is no fault of the kernels that it would run.
        reason = str(error) if isinstance(error, UnsupportedHere) else repr(error)
        raise UnsupportedHere(
            f"kernels run without a GPU with Triton {WINDOW}, this is {triton.__version__}: "
            f"{reason}"
        ) from error


def prepare() -> None:
    """As `install`, but a Triton that it does not fit is left for `refusal` to tell."""
    global _refusal
    try:
        install()
    except UnsupportedHere as error:
        _refusal = str(error)


def refusal() -> str | None:
    """Why `prepare` could not make this process interpret kernels; None if it could."""
    return _refusal
