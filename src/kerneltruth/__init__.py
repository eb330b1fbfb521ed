"""kerneltruth judges GPU kernels that a language model wrote."""

__version__ = "0.1.0"
