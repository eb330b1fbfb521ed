"""Read foreign submissions and tasks as data; run them only in a child."""
