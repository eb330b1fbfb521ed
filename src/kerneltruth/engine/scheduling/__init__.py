"""Many jobs at once: one protocol, on this machine or on a Ray cluster."""
