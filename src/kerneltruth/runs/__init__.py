"""Runs: the directory with the manifest, the append-only results, findings and sources; replay."""
