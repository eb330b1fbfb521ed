"""Foreign submissions and tasks: read as data here, run only inside the wall."""
