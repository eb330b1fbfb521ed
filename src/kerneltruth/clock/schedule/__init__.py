"""Which side is timed when, and for how long."""
