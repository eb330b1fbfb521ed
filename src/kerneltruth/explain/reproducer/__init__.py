"""Write a failing case as one standalone script."""
