"""Timed calls: the judge's messages, and what the child does with them."""
