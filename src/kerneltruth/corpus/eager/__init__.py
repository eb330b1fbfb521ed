"""Plain PyTorch as a candidate: a file of functions for each file of the suite, by entry."""
