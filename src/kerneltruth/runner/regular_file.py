"""Read files that anyone may have put there: only regular files, whose reading ends."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

# A source, or a document of a run, is far smaller.
MOST_BYTES = 64 * 2**20
_CHUNK = 2**20


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read its bytes; a pipe or a device would keep the reader waiting.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        raise OSError(errno.EINVAL, "no file has such a name") from error
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, *, most: int = MOST_BYTES) -> bytes:
    """Return a file's bytes.

    Raises:
        OSError: it cannot be read, is no regular file, or holds more than `most` bytes.
    """
    with open_regular(path) as file:
        # Space for what it says that it holds; files of the system say 0.
        data = file.read(min(os.fstat(file.fileno()).st_size, most) + 1)
        while len(data) <= most and (more := file.read(_CHUNK)):
            data += more
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it holds more than {most} bytes")
    return data
