"""Messages of the engine in the words of the library, which has arguments in place of options."""

from __future__ import annotations

import re

# Options of the command that are called otherwise here; the others are only spelled otherwise.
_CALLED = {"dtype": "dtypes", "strategy": "strategies", "target": "targets"}
_SPELLED = (
    *("against", "bounds", "budget", "cases", "contract", "device", "domain", "entry", "explain"),
    *("isolation", "out", "reference", "require-kernel", "seed", "suite", "task", "tasks"),
    *("timeout", "twice", "workers"),
)
_OPTION = re.compile(rf"(?<![\w-])--({'|'.join((*_CALLED, *_SPELLED))})(?![\w-])( (?=[A-Z]+\b))?")


def as_argument(text: str) -> str:
    """Name arguments where a text names options of the command, but for commands that it shows."""
    parts = text.split("`")
    for place in range(0, len(parts), 2):
        parts[place] = _OPTION.sub(_argument, parts[place])
    return "`".join(parts)


def _argument(found: re.Match[str]) -> str:
    option, has_value = found.groups()
    return _CALLED.get(option, option.replace("-", "_")) + ("=" if has_value else "")
