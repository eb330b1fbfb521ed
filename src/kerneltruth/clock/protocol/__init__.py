"""What judge and child say to each other while calls are timed."""
