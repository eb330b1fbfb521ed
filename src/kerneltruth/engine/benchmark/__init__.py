"""Candidates timed beside their baselines: processes, the machine, and the document of a shape."""
