"""What makes a batch count, and what makes the judge doubt a candidate."""
