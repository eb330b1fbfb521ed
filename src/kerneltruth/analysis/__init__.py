"""Statistics of runs: rates, speedups, deviance, rounds. Needs no torch."""
