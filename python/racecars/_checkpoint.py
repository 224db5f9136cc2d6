"""The checkpoint file of a run: the state of its session, the optimizer, and the first failures.

The file is a line that says what it is, a line of JSON with the sizes and a checksum of the rest,
and the rest: the optimizer as the core saves it, the values so far, and the encoded points of the
trials that were out.
"""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from racecars._files import write_atomically

if TYPE_CHECKING:
    from racecars.result import Failure

KIND = b"racecars run "
MAGIC = KIND + b"2\n"
PARTS = ("optimizer", "values", "codes")
"""The keys of a session's state that are not JSON."""


class Checkpoint:
    """A checkpoint file, which need not exist yet."""

    def __init__(self, path: Any) -> None:
        self.path = Path(path)

    def write(self, state: dict[str, Any], failures: list[Failure]) -> None:
        """Writes a session's state and the failures, in place of the old file."""
        parts = {name: bytes(state[name]) for name in PARTS}
        body = b"".join(parts.values())
        head = {
            "sizes": {name: len(part) for name, part in parts.items()},
            "checksum": zlib.crc32(body),
            "state": {name: value for name, value in state.items() if name not in PARTS},
            "failures": [
                [*kept._replace(x=kept.x.tolist(), error=None)]  # exceptions are not JSON
                for kept in failures
            ],
        }
        line = json.dumps(head).encode() + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, MAGIC + line + body)

    def read(self) -> tuple[dict[str, Any], list[Failure]]:
        """The session's state, and the failures."""
        from racecars.result import Failure

        content = self.path.read_bytes()
        if not content.startswith(MAGIC):
            text = "is not the checkpoint of a racecars run"
            if content.startswith(KIND):
                text = "is a checkpoint of another version of racecars"
            raise ValueError(f"{self.path} {text}; resume='never' begins anew")
        line, _, body = content[len(MAGIC) :].partition(b"\n")
        try:
            head: dict[str, Any] = json.loads(line)
        except ValueError:
            head = {"checksum": math.nan}
        if zlib.crc32(body) != head["checksum"]:
            raise ValueError(f"checkpoint {self.path} is damaged: its checksum does not match")
        state = dict(head["state"])
        for name, size in head["sizes"].items():
            part, body = body[:size], body[size:]
            state[name] = part if name == "optimizer" else np.frombuffer(part)
        failures = [Failure(number, np.array(x), *rest) for number, x, *rest in head["failures"]]
        return state, failures
