"""Explain a failure: the smallest case, where and how the output is wrong, a script."""
