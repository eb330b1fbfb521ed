"""A run's directory: manifest, append-only results, findings, inputs and sources."""
