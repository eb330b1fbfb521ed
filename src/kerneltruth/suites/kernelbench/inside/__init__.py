"""What runs a KernelBench problem, in a child process and nowhere else."""
