"""Read an endpoint's key and address; never show the key."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from urllib.parse import urlsplit

from kerneltruth.errors import UserError

HIDDEN = "[key]"
# A placeholder such as "x" or "none", which local servers accept, is no secret; hiding it would
# damage every text that contains it.
_SHORTEST_SECRET = 8
_PR_SET_DUMPABLE = 4
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Key:
    """A secret that prints as nothing, and that removes itself from other texts."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "Key(...)"

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")

    def reveal(self) -> str:
        """Return the secret, for the client alone."""
        return self._text

    def hide(self, text: str) -> str:
        """Remove the secret from a text."""
        return text.replace(self._text, HIDDEN) if self.is_secret else text

    @property
    def is_secret(self) -> bool:
        """Return whether it is long enough to be a secret."""
        return len(self._text) >= _SHORTEST_SECRET


def key_from(environment: Mapping[str, str], name: str) -> Key:
    """Read the key from an environment variable.

    Raises:
        UserError: the variable is empty, or its value does not fit a header.
    """
    text = environment.get(name, "").strip()
    if not text:
        raise UserError(
            f"no key: the environment variable {name} is empty; export it (any word for a server "
            "without keys), or name another variable with --key-variable"
        )
    if not text.isascii() or not text.isprintable():
        raise UserError(f"{name} holds characters that no key has; export the key alone")
    return Key(text)


def checked_url(url: str) -> str:
    """Check that an endpoint's base URL may be written down.

    Raises:
        UserError: not http(s) with a host, or with credentials, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UserError(
            f"--base-url {_safely(url)}: {error}; give it as https://HOST/v1"
        ) from error
    if parts.scheme not in ("http", "https") or not host:
        raise UserError(f"--base-url {_safely(url)}: must be http(s)://HOST[:PORT]/v1 or the like")
    if parts.username is not None or parts.password is not None:
        raise UserError(
            f"--base-url {_safely(url)}: must hold no credentials; the key comes from the "
            "environment alone"
        )
    if parts.query or parts.fragment:
        raise UserError(f"--base-url {_safely(url)}: must have no query and no fragment; drop them")
    return url.rstrip("/")


def _safely(url: str) -> str:
    _, at, after = url.rpartition("@")
    text = f"...@{after}" if at else url
    return repr(text.partition("?")[0].partition("#")[0])


def is_loopback(url: str) -> bool:
    """Return whether the endpoint is this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def travels_openly(url: str) -> bool:
    """Return whether requests can be read on the way."""
    return urlsplit(url).scheme == "http" and not is_loopback(url)


def shield_process() -> None:
    """Keep other processes of this user from reading this one's environment and memory.

    Candidates run as the user of the judge, and this process holds the key.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
