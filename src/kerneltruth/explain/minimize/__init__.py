"""The smallest case that still fails: `search` knows no kernels, the others what is simpler."""
