"""A stretch of the search that one worker makes on its own, where evaluations are short.

The worker gets the optimizer's state, proposes and evaluates one point after the other, and returns
the outcomes in order. An optimizer is a function of its state and the outcomes told, so the run
asks its own optimizer for the same points and tells it these outcomes. Every point is proposed with
all earlier outcomes known, as with one worker, and sending takes a fraction of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from racecars._core import Session, Space
from racecars._objective import Outcome, retried
from racecars.optimizer import Optimizer

if TYPE_CHECKING:
    from racecars._run import Run

# Seconds after which a worker returns what it has.
SECONDS = 0.05


class Stretch(NamedTuple):
    """What a worker needs for it."""

    space: Space
    state: dict[str, Any]
    """The session's state, but for what has happened before."""
    maxfev: int | None
    target: float | None
    retries: int
    ends_at_failure: bool
    maximize: bool

    @classmethod
    def of(cls, run: Run, maxfev: int | None, target: float | None) -> Stretch:
        """The stretch that begins with the only trial that is out."""
        session = run.session
        state = {**session.state(), "values": np.empty(0), "counts": [0] * 5}
        left = None if maxfev is None else maxfev - session.told
        ends_at_failure = run.on_error == "raise"
        how = (run.retries, ends_at_failure, run.maximize)
        return cls(session.space, state, left, target, *how)

    def outcomes(self, call: Callable[[Any], Outcome]) -> tuple[float, list[Outcome]]:
        """Searches, in a worker; returns the seconds that evaluations took, and the outcomes."""
        optimizer = Optimizer.from_bytes(self.state["optimizer"], self.space)
        limits: dict[str, Any] = {"maxfev": self.maxfev, "target": self.target}
        session = Session(optimizer, self.space, **limits, maximize=self.maximize)
        session.resume(self.state)
        outcomes: list[Outcome] = []
        seconds, end = 0.0, time.perf_counter() + SECONDS
        while (trial := session.next()) is not None:
            number, point = trial
            start = time.perf_counter()
            outcome = retried(call, point, call(point), self.retries)
            now = time.perf_counter()
            seconds += now - start
            outcomes.append(outcome)
            if now > end or (self.ends_at_failure and outcome.failure is not None):
                break
            session.tell(number, outcome.value, outcome.violation, outcome.failure, outcome.text)
        return seconds, outcomes
