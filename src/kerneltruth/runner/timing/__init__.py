"""Time calls: the judge's messages, and how the child executes them."""
