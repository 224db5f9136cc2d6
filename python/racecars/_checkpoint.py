"""The checkpoint file of a run: its counts, the values so far, what is out, and the optimizer.

The file is a line that says what it is, a line of JSON with the sizes and a checksum of the rest,
and the rest: the optimizer as the core saves it, the values, and the encoded points that were out.
"""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from racecars._core import Candidate, Record
from racecars._files import write_atomically
from racecars.optimizer import Optimizer

if TYPE_CHECKING:
    from racecars.result import Failure

MAGIC = b"racecars run 1\n"


class Checkpoint:
    """A checkpoint file, which need not exist yet."""

    def __init__(self, path: Any) -> None:
        self.path = Path(path)

    def write(
        self,
        optimizer: Optimizer,
        record: Record,
        failures: list[Failure],
        pending: list[Candidate],
    ) -> None:
        """Writes all, in place of what was there."""
        state = optimizer.to_bytes()
        values = record.values().tobytes()
        codes = b"".join(candidate.code.tobytes() for candidate in pending)
        body = state + values + codes
        head = {
            "state": len(state),
            "values": len(values),
            "checksum": zlib.crc32(body),
            "evaluations": record.evaluations,
            "failed": record.failed,
            "infeasible": record.infeasible,
            "pending": [candidate.id for candidate in pending],
            "failures": [
                [kept.number, kept.x.tolist(), kept.text, kept.traceback] for kept in failures
            ],
        }
        line = json.dumps(head).encode() + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, MAGIC + line + body)

    def optimizer(self, space: Any) -> Optimizer:
        """The optimizer in the file."""
        head, body = self._parts()
        try:
            return Optimizer.from_bytes(body[: head["state"]], space)
        except ValueError as error:
            raise ValueError(f"checkpoint {self.path}: {error}") from None

    def read(self, optimizer: Optimizer) -> tuple[Record, list[Failure], list[Candidate]]:
        """The rest of the file: counts and values, failures, and the candidates that were out."""
        from racecars.result import Failure

        head, body = self._parts()
        ends = head["state"], head["state"] + head["values"]
        values = np.frombuffer(body[ends[0] : ends[1]])
        record = Record(values, head["evaluations"], head["failed"], head["infeasible"])
        failures = [
            Failure(number, np.array(x), text, trace, None)
            for number, x, text, trace in head["failures"]
        ]
        codes = np.frombuffer(body[ends[1] :]).reshape(-1, optimizer.space.dimension)
        pairs = zip(head["pending"], codes)
        return record, failures, [optimizer.restore(number, code) for number, code in pairs]

    def _parts(self) -> tuple[dict[str, Any], bytes]:
        content = self.path.read_bytes()
        if not content.startswith(MAGIC):
            raise ValueError(f"{self.path} is not the checkpoint of a racecars run")
        line, _, body = content[len(MAGIC) :].partition(b"\n")
        try:
            head: dict[str, Any] = json.loads(line)
        except ValueError:
            head = {"checksum": math.nan}
        if zlib.crc32(body) != head["checksum"]:
            raise ValueError(f"checkpoint {self.path} is damaged: its checksum does not match")
        return head, body
