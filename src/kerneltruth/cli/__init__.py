"""The command line: parse, wire, print, exit code. No logic.

torch is imported by the commands that need it, never by this package: `--help` must be quick.
"""

from kerneltruth.cli.application import app
from kerneltruth.cli.entry import invoke, main

__all__ = ["app", "invoke", "main"]
