"""Obtain candidates from a model."""
