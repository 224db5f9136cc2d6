"""An objective that counts, times and ends a run, the same way for every optimizer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from peers.problems import Vector


class Stop(BaseException):
    """Ends a run from inside the objective. No `Exception`, so that no optimizer swallows it."""


class Objective:
    """Calls a function until the budget or the time is used up, and keeps the best value."""

    def __init__(
        self, function: Callable[[Vector], float], budget: int, seconds: float = math.inf
    ) -> None:
        self.budget = budget
        self.evaluations = 0
        self.best = math.inf
        self.elapsed = 0.0
        self._outside = 0.0
        self._left = time.process_time()
        self._function = function
        self._seconds = seconds
        self._start = time.perf_counter()

    def __call__(self, x: Any) -> float:
        self._outside += time.process_time() - self._left
        if self.evaluations >= self.budget or time.perf_counter() - self._start > self._seconds:
            raise Stop
        value = self._function(np.asarray(x, dtype=float))
        self.evaluations += 1
        self.best = min(self.best, value)
        self._left = time.process_time()
        return value

    def run(self, optimizer: Callable[[Objective], None]) -> None:
        """Runs an optimizer until it returns or is stopped."""
        self._start, self._left = time.perf_counter(), time.process_time()
        try:
            optimizer(self)
        except Stop:
            pass
        finally:
            self.elapsed = time.perf_counter() - self._start

    @property
    def overhead_us(self) -> float:
        """Microseconds of processor time per evaluation that were not spent in here.

        Processor time, because other processes do not disturb it. All of the optimizer's threads
        count, so it must be kept from starting any that only wait.
        """
        return 1e6 * self._outside / max(self.evaluations, 1)
