"""An objective that counts, times and stops a run in the same way for every optimizer."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from peers.problems import Vector


class Stop(BaseException):
    """Stops a run from the objective. Not an `Exception`, so that optimizers do not catch it."""


class Objective:
    """Calls a function until the budget or the time is used up, and keeps the best value.

    Time is processor time, which other processes do not disturb. All threads of an optimizer count,
    so it must not start threads that busy-wait.
    """

    def __init__(
        self, function: Callable[[Vector], float], budget: int, seconds: float = math.inf
    ) -> None:
        self.budget = budget
        self.evaluations = 0
        self.best = math.inf
        self.is_out_of_time = False
        self._outside = 0.0
        self._start = self._left = time.process_time()
        self._function = function
        self._seconds = seconds

    def __call__(self, x: Any) -> float:
        now = time.process_time()
        self._outside += now - self._left
        self.is_out_of_time = now - self._start > self._seconds
        if self.is_over:
            raise Stop
        value = self._function(np.asarray(x, dtype=float))
        self.evaluations += 1
        self.best = min(self.best, value)
        self._left = time.process_time()
        return value

    def run(self, optimizer: Callable[[Objective], None]) -> None:
        """Runs an optimizer until it returns or is stopped."""
        self._start = self._left = time.process_time()
        with contextlib.suppress(Stop):
            optimizer(self)

    @property
    def is_over(self) -> bool:
        """Whether the budget or the time is used up."""
        return self.is_out_of_time or self.evaluations >= self.budget

    @property
    def overhead_us(self) -> float:
        """Microseconds per evaluation outside of the objective."""
        return 1e6 * self._outside / max(self.evaluations, 1)
