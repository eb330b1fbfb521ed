"""The least time that a call can take on a device, and what bounds a kernel."""
