"""The protocol between judge and child while calls are timed."""
