"""Reports: typed documents and their rendering for a terminal."""
