"""`python -m kerneltruth`."""

from kerneltruth.cli import main

main()
