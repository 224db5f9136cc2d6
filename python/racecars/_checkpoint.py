"""The checkpoint file of a run: the state of its session, the optimizer, and the first failures.

The file is a line that says what it is, a line with the checksum of the rest, a line of JSON, and
what is not JSON: the optimizer as the core saves it, the values so far, and the encoded points of
the trials that were out.

A run holds a lock on its file, which the system releases when the process ends. A new version of
the file is locked before it replaces the old one, so the lock cannot be taken in between.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from racecars._files import sealed, unsealed, write_atomically

if TYPE_CHECKING:
    from racecars.result import Failure

try:
    import fcntl
except ImportError:  # Windows: no lock
    fcntl = None  # type: ignore[assignment]

KIND = b"racecars run "
MAGIC = KIND + b"3"
PARTS = ("optimizer", "values", "codes")
"""The keys of a session's state that are not JSON."""
ANEW = "resume='never' begins anew"


class Checkpoint:
    """A checkpoint file, which need not exist yet."""

    def __init__(self, path: Any) -> None:
        self.path = Path(path)
        if self.path.is_symlink():  # a new version replaces its target
            self.path = Path(os.path.realpath(path))
            if not self.path.exists():
                text = f"is a symbolic link to {self.path}, which does not exist"
                raise FileNotFoundError(f"checkpoint {path} {text}; remove the link, or mend it")
        self.file: int | None = None
        """The file that is locked, once there is one."""

    def __enter__(self) -> Checkpoint:
        if fcntl is not None:
            with contextlib.suppress(FileNotFoundError):
                self._hold(self._locked(self.path, os.O_RDWR))
        return self

    def __exit__(self, *_: object) -> None:
        self._hold(None)

    def write(self, state: dict[str, Any], failures: list[Failure]) -> None:
        """Writes a session's state and the failures, in place of the old file.

        An ``OSError`` leaves the old file as it was; it is a ``BlockingIOError`` where the file is
        another run's.
        """
        parts = {name: bytes(state[name]) for name in PARTS}
        head = {
            "sizes": {name: len(part) for name, part in parts.items()},
            "state": {name: value for name, value in state.items() if name not in PARTS},
            "failures": [
                [*kept._replace(x=kept.x.tolist(), error=None)]  # exceptions are not JSON
                for kept in failures
            ],
        }
        rest = b"".join((json.dumps(head).encode(), b"\n", *parts.values()))
        content = sealed(MAGIC, rest)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if fcntl is None:
            write_atomically(self.path, content)
            return
        beside = self.path.with_name(f"{self.path.name}.tmp")
        file = self._locked(beside, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(file, 0)
            with open(file, "wb", closefd=False) as writer:
                writer.write(content)
            os.fsync(file)
            self._publish(beside)
        except BaseException:
            beside.unlink(missing_ok=True)
            os.close(file)
            raise
        self._hold(file)

    def read(self) -> tuple[dict[str, Any], list[Failure]]:
        """The session's state, and the failures. Nothing is parsed before the checksum is right."""
        from racecars.result import Failure

        if self.path.exists() and not self.path.is_file():
            raise ValueError(f"checkpoint {self.path} is not a regular file")
        magic, content = unsealed(self.path.read_bytes())
        if magic != MAGIC:
            text = "is not the checkpoint of a racecars run"
            if magic.startswith(KIND):
                text = "is a checkpoint of another version of racecars"
            raise ValueError(f"{self.path} {text}; {ANEW}")
        if content is None:
            raise self.damaged("its checksum does not match")
        try:
            line, _, body = content.partition(b"\n")
            head: dict[str, Any] = json.loads(line)
            state = dict(head["state"])
            for name, size in head["sizes"].items():
                part, body = body[:size], body[size:]
                state[name] = part if name == "optimizer" else np.frombuffer(part)
            failures = [Failure(n, np.array(x), *more) for n, x, *more in head["failures"]]
        except Exception as error:
            raise self.damaged(f"{type(error).__name__}: {error}") from None
        return state, failures

    def check(self, state: dict[str, Any], asked: dict[str, str]) -> None:
        """Refuses to resume a run that was asked for something else."""
        saved = state.get("asked")
        if isinstance(saved, dict):
            saved.setdefault("goal", "to minimize")  # earlier files do not say so
        if not isinstance(saved, dict) or not asked.keys() <= saved.keys():
            raise self.damaged("it does not say what was asked for")
        other = [name for name in asked if asked[name] != saved[name]]
        if other:
            text = "; of ".join(f"{name} {saved[name]}, not {asked[name]}" for name in other)
            advice = f"ask for the same to resume it, or {ANEW}"
            raise ValueError(f"checkpoint {self.path} is of {text}; {advice}")

    def damaged(self, text: str) -> ValueError:
        """The error of a file that cannot be resumed from."""
        return ValueError(f"checkpoint {self.path} is damaged ({text}); restore a copy, or {ANEW}")

    def _locked(self, path: Path, flags: int) -> int:
        """Opens a file and locks it."""
        while True:
            file = os.open(path, flags, 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                raise self._in_use() from None
            except OSError:  # the file system has no locks
                return file
            if _is_at(file, path):
                return file
            os.close(file)  # a run that has just ended gave the name to another file

    def _publish(self, beside: Path) -> None:
        """Gives the checkpoint's name to a new file, unless a file that is not ours has it."""
        if self.file is not None and _is_at(self.file, self.path):
            os.replace(beside, self.path)
            return
        try:
            os.link(beside, self.path)
        except FileExistsError:
            raise self._in_use() from None
        except OSError:  # the file system has no hard links
            os.replace(beside, self.path)
        else:
            beside.unlink()

    def _in_use(self) -> BlockingIOError:
        text = "is in use by another run; give each run a file of its own"
        return BlockingIOError(f"checkpoint {self.path} {text}")

    def _hold(self, file: int | None) -> None:
        """Holds a locked file in place of the one so far."""
        if self.file in _HELD:
            _HELD.remove(self.file)
            os.close(self.file)
        self.file = file
        if file is not None:
            _HELD.add(file)


_HELD: set[int] = set()
"""The locked files of this process."""
_LENT: set[int] = set()
"""Those that belong to native code, which has the journals of studies."""


@contextlib.contextmanager
def held_here_only(files: Iterable[int]) -> Iterator[None]:
    """Meanwhile, forked processes do not have these files, and so not the locks on them."""
    ours = set(files)
    _LENT.update(ours)
    try:
        yield
    finally:
        _LENT.difference_update(ours)


def _let_go() -> None:
    """In a forked process, which would keep the lock if it outlived its parent."""
    while _HELD:
        os.close(_HELD.pop())
    if _LENT:
        nothing = os.open(os.devnull, os.O_RDWR)
        while _LENT:
            os.dup2(nothing, _LENT.pop(), inheritable=False)
        os.close(nothing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _is_at(file: int, path: Path) -> bool:
    """Whether a path leads to an open file."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
