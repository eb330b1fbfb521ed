"""Spell out characters that a terminal obeys or that nobody sees, whoever wrote the text."""

from __future__ import annotations

import re

# Control characters except line ends and tabs, invisible ones and tags, writing directions,
# unpaired surrogates.
HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def harmless(text: str) -> str:
    r"""Replace each such character by its escape, as `\x1b`."""
    return HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text)


def visible(text: str) -> str:
    r"""Do the same to a text of one line, where line ends and tabs become `\n` and `\t`."""
    return harmless(text).replace("\n", r"\n").replace("\t", r"\t")
