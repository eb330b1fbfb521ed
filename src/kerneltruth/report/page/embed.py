"""Embedded data that no text in it can break out of, and the policy of a page.

Candidates choose what stands in the data. In HTML a script element ends at `</script` and is
confused by `<!--`, whatever its type, so data holds no `<` at all; long data is compressed, and as
base64 holds nothing but letters.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kerneltruth.documents.model import plain

# What one part holds before it is compressed: quick to unpack, and long enough to compress well.
PART_CHARACTERS = 400_000
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A list in compressed parts.

    Attributes:
        parts: each the base64 of zlib's bytes of a JSON list.
        starts: number of the first item of each part.
    """

    parts: tuple[str, ...]
    starts: tuple[int, ...]
    count: int

    @property
    def size(self) -> int:
        """Bytes that the parts take on the page."""
        return sum(map(len, self.parts))


def as_json(value: object) -> str:
    """Write JSON that may stand between script tags: ASCII without `<`, `>` and `&`."""
    text = json.dumps(plain(value), separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def packed(items: Iterable[object], *, most_bytes: int | None = None) -> Packed:
    """Compress a list up to a number of bytes; the rest is left out."""
    parts: list[str] = []
    starts: list[int] = []
    waiting: list[str] = []
    size = held = count = 0

    def flush() -> bool:
        nonlocal size, held, count
        if not waiting:
            return True
        raw = ("[" + ",".join(waiting) + "]").encode("ascii")
        part = base64.b64encode(zlib.compress(raw, 9)).decode("ascii")
        if most_bytes is not None and size + len(part) > most_bytes:
            return False
        parts.append(part)
        starts.append(count)
        size += len(part)
        count += len(waiting)
        waiting.clear()
        held = 0
        return True

    for item in items:
        text = json.dumps(plain(item), separators=(",", ":"), allow_nan=False)
        waiting.append(text)
        held += len(text)
        if held >= PART_CHARACTERS and not flush():
            break
    else:
        flush()
    return Packed(parts=tuple(parts), starts=tuple(starts), count=count)


def policy(*, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return a content security policy: these styles and scripts, and no network.

    Trusted types make a slip of our own script, text taken as HTML, an error.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hashes(styles)}",
            f"script-src {_hashes(scripts)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests) or "'none'"
