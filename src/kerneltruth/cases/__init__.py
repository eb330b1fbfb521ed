"""Cases as pure data, and their projection to tensors."""
