"""The page that `report` writes: one plain document, made of what analysis finds of runs."""
