"""Define the tasks: the operators that kernels must compute."""
