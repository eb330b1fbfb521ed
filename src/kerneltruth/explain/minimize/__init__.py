"""Find the smallest case that still fails: `search` knows no kernels; the others define simpler."""
