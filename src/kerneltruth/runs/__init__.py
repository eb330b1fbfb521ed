"""Runs: the directory with the manifest, the append-only results, findings, inputs and sources."""
