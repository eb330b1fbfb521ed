"""Run candidates in child processes behind a wall: the judge's end, the wire, the child's end."""
