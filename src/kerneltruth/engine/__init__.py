"""Executors: many candidates at once, on this machine."""
