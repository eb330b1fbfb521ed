"""The device: what it can do, how it is doing, and which processes may use it."""
