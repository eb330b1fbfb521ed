"""Tasks: what kernels must compute."""
