"""A run: a session of the core, with the callback, failures, checkpoints and the result around it.

The session decides which trial is next, in which order outcomes are told, and when to stop.
`_loops` and `workers` evaluate the trials.
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from racecars._checkpoint import Checkpoint
from racecars._core import Session
from racecars._objective import Objective, Outcome
from racecars.optimizer import Optimizer

if TYPE_CHECKING:
    from racecars.result import Failure, OptimizeResult

# The number of failures kept in full.
MAX_FAILURES = 20
# Seconds between checkpoints, and between lines of progress.
PERIOD = 1.0

# SciPy's status and message for each of the core's stop reasons.
STATUS = {
    "evaluations": (0, "The evaluations allowed (maxfev) have been used."),
    "target": (1, "The target was reached."),
    "time": (2, "The time allowed (maxtime) has passed."),
    "observer": (3, "The callback asked to stop."),
    "exhausted": (4, "Every point of the space has been evaluated."),
    "no-improvement": (5, "The best value has not improved for as long as the patience."),
    "interrupted": (-1, "Interrupted; this is the best so far."),
    "workers-lost": (-3, "The workers are gone; this is the best so far."),
    "first-failures": (-4, "The first evaluations all failed."),
}
# The status of a run without a feasible value.
NO_VALUE = -2


class Run:
    """One call of ``minimize``."""

    def __init__(
        self,
        optimizer: Optimizer,
        session: Session,
        objective: Objective,
        *,
        callback: Callable[..., Any] | None = None,
        retries: int = 0,
        on_error: str = "penalize",
        checkpoint: Checkpoint | None = None,
        disp: bool = False,
    ) -> None:
        self.optimizer, self.session, self.objective = optimizer, session, objective
        self.retries, self.on_error = retries, on_error
        self.callback = None if callback is None else adapted(callback)
        self.on_told = None if callback is None else self.call_back
        self.checkpoint, self.disp = checkpoint, disp
        self.has_ticks = disp or checkpoint is not None
        self.start = time.monotonic()
        self.next_tick = self.start + PERIOD
        self.failures: list[Failure] = []

    def next(self) -> tuple[int, Any] | None:
        """The next trial to evaluate, its number and point; ``None`` if there is none for now."""
        return self.session.next(self.on_told)

    def settle(self, number: int, outcome: Outcome) -> None:
        """Takes the outcome of a trial."""
        value, violation, failure, text, traceback, error, evaluated = outcome
        if failure is None:
            self.session.tell(number, value, violation, evaluated=evaluated)
            return
        if self.on_error == "raise":
            raise error or RuntimeError(f"evaluation {self.session.told}: {text}")
        x = self.session.x_of(number)
        place = self.session.tell(number, failure=failure, text=text)
        if not self.failures:
            shown = f"evaluation {place} failed and counts as worse than all others: {text}"
            more = "the first failures are kept in res.errors; on_error='raise' stops at one"
            warn(f"{shown} ({more})")
        if len(self.failures) < MAX_FAILURES:
            from racecars.result import Failure

            self.failures.append(Failure(place, x, failure, text, traceback, error))

    def call_back(self) -> None:
        """Calls the callback, which may stop the run, after an outcome was told."""
        assert self.callback is not None
        if self.session.reason is not None:
            return
        try:
            wants_stop = self.callback(self.result())
        except StopIteration:
            wants_stop = True
        if wants_stop:
            self.session.stop("observer")

    def tick_if_due(self) -> None:
        """Writes the checkpoint and prints progress, once per period."""
        if self.has_ticks and time.monotonic() >= self.next_tick:
            self.save()
            if self.disp:
                print(self.line(), flush=True)
            self.next_tick = time.monotonic() + PERIOD

    def seconds(self) -> float | None:
        """The seconds until the next tick."""
        return max(0.0, self.next_tick - time.monotonic()) if self.has_ticks else None

    def told_failures(self) -> list[Failure]:
        """The failures kept, of trials that the optimizer has been told of."""
        told = self.session.told
        return [failure for failure in self.failures if failure.number < told]

    def save(self) -> None:
        if self.checkpoint is not None:
            self.checkpoint.write(self.session.state(), self.told_failures())

    def line(self) -> str:
        """The progress, for people."""
        found, failures = self.session.best(), self.session.failures
        value = math.inf if found is None or found[1] is None else found[1]
        failed = f", {failures} failed" if failures else ""
        elapsed = time.monotonic() - self.start
        return f"{self.session.told} evaluations, best {value:.6g}{failed} ({elapsed:.0f} s)"

    def result(self) -> OptimizeResult:
        """The result so far, as the callback gets it."""
        from racecars.result import OptimizeResult

        session, space = self.session, self.optimizer.space
        found = session.best()
        x, value, violation, evaluations = found or (
            np.full(space.dimension, np.nan),
            None,
            None,
            0,
        )
        res = OptimizeResult(
            x=x,
            fun=math.inf if value is None else value,
            best_evaluations=evaluations,
            nfev=session.evaluated,
            nit=session.told,
            n_failed=session.failures,
            n_infeasible=session.infeasible,
            maxcv=violation or 0.0,
        )
        if session.space.is_by_name:
            res["params"] = None if found is None else session.space.params(x)
        return res

    def final_result(self) -> OptimizeResult:
        """The result of a run that has ended."""
        res, reason, failures = self.result(), self.session.reason, self.told_failures()
        assert reason is not None
        status, message = STATUS[reason]
        if math.isinf(res["fun"]) and status >= 0:
            status, text = NO_VALUE, "No evaluation gave a value."
            if self.session.best() is not None:
                text = "No feasible point was found; x is the least infeasible."
            message = f"{text} {message}"
        if failures:
            message += f" {res['n_failed']} of {res['nit']} evaluations failed, the first with "
            message += failures[0].text
        res.update(
            success=status >= 0,
            status=status,
            message=message,
            stop_reason=reason,
            history=self.session.history(),
            errors=failures,
            optimizer=self.optimizer,
            time=time.monotonic() - self.start,
        )
        if self.optimizer.portfolio is not None:
            res["portfolio"] = self.optimizer.portfolio
        return res


def warn(text: str) -> None:
    """Warns as if from the line that called this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("racecars."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level + 1)


def adapted(callback: Callable[..., Any]) -> Callable[[Any], Any]:
    """A callback of either of SciPy's kinds: it takes ``intermediate_result``, or the best x."""
    try:
        names = set(inspect.signature(callback).parameters)
    except (TypeError, ValueError):
        names = set()
    if names == {"intermediate_result"}:
        return lambda res: callback(intermediate_result=res)
    return lambda res: callback(np.copy(res["x"]))
