"""Define the application that commands are added to."""

from __future__ import annotations

from typing import Annotated

import typer

from kerneltruth import __version__

EXIT_CODES = (
    "Exit codes: 0 all good; 1 the judged thing is bad; 2 a mistake in the command; 3 no judgement "
    "was possible here (no such device, unsupported_here, unrefereeable, disk or memory full); "
    "4 a bug of kerneltruth; 130 interrupted."
)

app = typer.Typer(
    name="kerneltruth",
    help="Judges GPU kernels (Triton, CUDA) written by language models.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    epilog=EXIT_CODES,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Judges GPU kernels (Triton, CUDA) written by language models."""
    if version:
        typer.echo(f"kerneltruth {__version__}")
        raise typer.Exit
