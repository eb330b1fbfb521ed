"""Render typed documents for a terminal, a browser and other tools."""
