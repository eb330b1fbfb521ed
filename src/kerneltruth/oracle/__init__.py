"""The oracle: float64 reference, bounds, statistics, verdicts, and the peers' checks."""
