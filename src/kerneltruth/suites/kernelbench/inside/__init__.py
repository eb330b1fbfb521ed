"""Run a KernelBench problem; only in a child process."""
