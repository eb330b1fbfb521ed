"""Decide whether a batch counts, and whether the judge doubts a candidate."""
