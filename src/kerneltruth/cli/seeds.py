"""The seed of a run: as given, as recorded in the run that goes on, else drawn anew.

A default seed would be the same for everyone, and answers could be learned by heart.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path

# Short enough to be typed again, long enough not to be guessed.
_BITS = 32


def settled_seed(given: int | None, out: Path | None) -> int:
    """The master seed of a command that writes to `out`."""
    if given is not None:
        return given
    recorded = None if out is None else _recorded(out)
    return secrets.randbits(_BITS) if recorded is None else recorded


def _recorded(out: Path) -> int | None:
    """The seed of the run that `out` holds; None where it holds none that can be read.

    Whoever opens the run says what is wrong with it.
    """
    for name, place in (("run.json", ("seed",)), ("generation.json", ("feedback", "seed"))):
        try:
            found = json.loads((out / name).read_bytes())
            for key in place:
                found = found[key]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if type(found) is int:
            return found
    return None
