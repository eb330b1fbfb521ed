"""Define what kernels must compute."""
