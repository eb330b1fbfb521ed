"""Cases: what to try, as pure data, and its projection to tensors."""
