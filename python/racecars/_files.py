"""Files that are whole: a crash leaves the old or the new one, and damage is noticed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a temporary file next to ``path``, syncs it to disk, and renames it."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def sealed(kind: bytes, content: bytes) -> bytes:
    """A file: a line that says what it is, a line with the checksum of the rest, and the rest."""
    return b"\n".join((kind, _checksum(content), content))


def unsealed(file: bytes) -> tuple[bytes, bytes | None]:
    """What a sealed file says it is, and its content, ``None`` where it is damaged."""
    kind, _, rest = file.partition(b"\n")
    checksum, _, content = rest.partition(b"\n")
    return kind, content if checksum == _checksum(content) else None


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()
