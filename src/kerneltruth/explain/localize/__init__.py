"""Say where and how an output is wrong, and on which cases, in one or two sentences."""
