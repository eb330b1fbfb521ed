"""The clock: side-by-side times with intervals, what the device could do at best, its state."""
