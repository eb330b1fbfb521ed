"""KernelBench's problems as tasks, derived from the problem files of a user's checkout."""
