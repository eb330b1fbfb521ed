"""Containment: what the system's kernel forbids a child, in four levels.

`process`: no new privileges, no capabilities, limits on resources. `syscalls`: a seccomp filter
besides. `strict`: besides that, Landlock lets the child open only the files that it needs.
`namespaces`: besides that, it has a user, processes, a network and temporary files of its own,
and sees no others.
SECURITY.md says what each level stops, and what it does not.
"""

from __future__ import annotations

from typing import Literal, get_args

Level = Literal["process", "syscalls", "strict", "namespaces"]
LEVELS: tuple[Level, ...] = get_args(Level)
