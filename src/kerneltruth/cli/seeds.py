"""Choose the seed of a run: given, recorded in the run that continues, or new.

A fixed default seed would let candidates memorize the answers.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path

# Short enough to retype, long enough that it cannot be guessed.
_BITS = 32


def settled_seed(given: int | None, out: Path | None) -> int:
    """Return the master seed of a command that writes to `out`."""
    if given is not None:
        return given
    recorded = None if out is None else _recorded(out)
    return secrets.randbits(_BITS) if recorded is None else recorded


def _recorded(out: Path) -> int | None:
    """Return the seed of the run in `out`; None if it holds none that can be read.

    Opening the run later reports what is wrong with it.
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
