"""The runner: the wall between judge and candidate, and what stands on the child's side of it."""
