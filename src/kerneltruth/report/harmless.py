"""Escape characters that a terminal obeys or hides, whoever wrote the text."""

from __future__ import annotations

import re

# Control characters except line ends and tabs, writing directions, unpaired surrogates.
_OBEYED = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def harmless(text: str) -> str:
    r"""Replace each such character by its escape, as `\x1b`."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)
