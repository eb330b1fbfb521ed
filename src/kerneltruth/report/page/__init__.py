"""The page that `report` writes: one document, made from the tables of analysis."""
