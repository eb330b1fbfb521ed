"""Evaluate, benchmark, audit and replay candidates; one at a time or many at once."""
