"""A failing case as one standalone script."""
