"""Statistics of runs: rates, speedups, deviance, trajectories. Reads runs only; needs no torch."""
