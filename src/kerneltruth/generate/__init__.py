"""Methods: ways to obtain candidates from a model."""
