"""Calls of the `racecars` binary."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DEFAULT = f"{os.environ.get('CARGO_TARGET_DIR', 'target')}/release/racecars"


class BinaryError(Exception):
    """The binary refused a command; the message is its own."""


@dataclass(frozen=True)
class Cell:
    """The results of one of our algorithms on one problem."""

    budget: int
    finals: list[float]
    evaluations: int
    overhead_us: float


@dataclass(frozen=True)
class Binary:
    path: str = DEFAULT

    def bench(
        self,
        algorithm: str,
        problem: str,
        dim: int,
        budget: str,
        trials: int,
        seed: int = 0,
        jobs: int | None = None,
    ) -> Cell:
        """Trials with seeds from `seed` on; `seed` is also that of the problem."""
        command = ["bench", "--algorithm", algorithm, "--problem", problem, "--dim", str(dim)]
        command += ["--budget", budget, "--trials", str(trials), "--seed", str(seed)]
        command += ["--jobs", str(jobs)] if jobs else []
        result = self._json(command)["results"][0]
        finals = [float("inf") if value is None else value for value in result["finals"]]
        return Cell(result["budget"], finals, result["evaluations"], result["overhead_us"])

    def knows(self, algorithm: str) -> bool:
        """Whether there is such an algorithm."""
        try:
            self.bench(algorithm, "sphere", 2, "4", trials=1)
        except BinaryError as error:
            if "is not one of" in str(error):
                return False
            raise
        return True

    def describe(self, problem: str, dim: int, seed: int) -> Any:
        """The output of `racecars problem`."""
        return self._json(["problem", problem, "--dim", str(dim), "--seed", str(seed)])

    def values(
        self, problem: str, dim: int, seed: int, points: Sequence[Sequence[float]]
    ) -> list[float]:
        """Our values at points of a problem."""
        command = ["problem", problem, "--dim", str(dim), "--seed", str(seed), "--at", "-"]
        lines = "\n".join(json.dumps(list(point)) for point in points)
        values: list[float] = self._json(command, lines)["values"]
        return values

    def _json(self, command: list[str], given: str | None = None) -> Any:
        return json.loads(self._output([*command, "--json"], given))

    def _output(self, command: list[str], given: str | None = None) -> str:
        try:
            done = subprocess.run(
                [self.path, *command], capture_output=True, text=True, input=given, check=True
            )
        except FileNotFoundError:
            text = f"there is no {self.path}; `cargo build --release` makes {DEFAULT}"
            raise BinaryError(text) from None
        except subprocess.CalledProcessError as error:
            raise BinaryError(error.stderr.strip().removeprefix("error: ")) from None
        return done.stdout
