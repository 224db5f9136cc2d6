"""A run: a session of the core, with the callback, failures, checkpoints and the result around it.

The session decides which trial is next, in which order outcomes are told, and when to stop.
`_loops` and `workers` evaluate the trials.
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from racecars._checkpoint import Checkpoint
from racecars._core import Session
from racecars._objective import Objective, Outcome
from racecars.optimizer import Optimizer

if TYPE_CHECKING:
    from racecars.result import Failure, OptimizeResult
    from racecars.trials import Plan

# The number of failures kept in full, and the letters of a traceback that a study keeps.
MAX_FAILURES = 20
MAX_TRACEBACK = 4000
# Seconds between lines of progress, and the most between checkpoints.
PERIOD = 1.0
# The share of the time that writing checkpoints may take, unless they are a period apart.
SAVING_SHARE = 0.05

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
        asked: Mapping[str, str] = MappingProxyType({}),
        disp: bool = False,
        maximize: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self.maximize, self.plan = maximize, plan
        self.optimizer, self.session, self.objective = optimizer, session, objective
        self.retries, self.on_error = retries, on_error
        self.callback = None if callback is None else adapted(callback)
        self.on_told = None if callback is None else self.call_back
        self.checkpoint, self.disp = checkpoint, disp
        self.asked = dict(asked)
        """What a run that resumes this one must ask for, too."""
        self.start = time.monotonic()
        self.next_line = self.start + PERIOD if disp else math.inf
        self.next_save = self.start if checkpoint is not None else math.inf
        self.saved: int | None = None
        """The number of trials told that the checkpoint has, if there is one."""
        self.save_error: OSError | None = None
        """Why the checkpoint could not be written, the last time."""
        self.failures: list[Failure] = []
        self.note = ""
        """What else a user should know of the run."""

    def resume(self, state: dict[str, Any], failures: list[Failure]) -> None:
        """Continues the run that was saved."""
        assert self.checkpoint is not None
        try:
            self.session.resume(state)
        except (TypeError, ValueError, OverflowError) as error:
            raise self.checkpoint.damaged(str(error)) from None
        self.failures, self.saved = failures, self.session.told

    def next(self) -> tuple[int, Any] | None:
        """The next trial to evaluate, its number and point; ``None`` if there is none for now."""
        return self.session.next(self.on_told)

    def settle(
        self, number: int, outcome: Outcome, seconds: float | None = None, worker: int = 0
    ) -> None:
        """Takes the outcome of a trial, and, if they are known, the time that its evaluation took
        and the worker that made it."""
        value, violation, failure, text, traceback, error, evaluated, constraints = outcome
        if failure is None:
            self.session.tell(
                number,
                value,
                violation,
                evaluated=evaluated,
                seconds=seconds,
                worker=worker,
                constraints=constraints,
            )
            return
        if self.on_error == "raise":
            if error is None:
                error = RuntimeError(f"evaluation {self.session.told}: {text}")
            raise error
        x = self.session.x_of(number)
        # What cannot be encoded is in the names of files that are no UTF-8.
        trace = traceback[-MAX_TRACEBACK:].encode(errors="backslashreplace").decode()
        place = self.session.tell(
            number, failure=failure, text=text, seconds=seconds, worker=worker, traceback=trace
        )
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
        """Writes the checkpoint and prints progress, as often as they are due."""
        if time.monotonic() >= self.next_save:
            self.save()
        if time.monotonic() >= self.next_line:
            print(self.line(), flush=True)
            self.next_line = time.monotonic() + PERIOD

    def seconds(self, idle: bool = False) -> float | None:
        """The seconds until the next tick; ``idle`` if no outcome is told until then."""
        has_news = not idle or self.session.told != self.saved
        due = min(self.next_save if has_news else math.inf, self.next_line)
        return None if due == math.inf else max(0.0, due - time.monotonic())

    def told_failures(self) -> list[Failure]:
        """The failures kept, of trials that the optimizer has been told of."""
        told = self.session.told
        return [failure for failure in self.failures if failure.number < told]

    def save(self) -> None:
        """Writes the checkpoint, if it is not up to date. Without room for it the run continues."""
        told = self.session.told
        if self.checkpoint is None or told == self.saved:
            return
        start, period = time.monotonic(), PERIOD
        try:
            state = {**self.session.state(), "asked": self.asked}
            self.checkpoint.write(state, self.told_failures())
        except OSError as error:
            if isinstance(error, BlockingIOError) and self.saved is None:
                raise
            if self.save_error is None:
                has = "there is none" if self.saved is None else f"it has {self.saved} evaluations"
                text = f"the checkpoint {self.checkpoint.path} could not be written: {error}"
                warn(f"{text}; {has}, the run continues, and tries again every {PERIOD:g} s")
            self.save_error = error
        else:
            self.saved, self.save_error = told, None
            period = min(PERIOD, (time.monotonic() - start) / SAVING_SHARE)
        self.next_save = time.monotonic() + period

    @property
    def worst(self) -> float:
        """The value of a run that has none."""
        return -math.inf if self.maximize else math.inf

    def line(self) -> str:
        """The progress, for people."""
        found, (_, failures, _) = self.session.best(), self.session.counts()
        value = self.worst if found is None or found[1] is None else found[1]
        failed = f", {failures} failed" if failures else ""
        elapsed = time.monotonic() - self.start
        return f"{self.session.told} evaluations, best {value:.6g}{failed} ({elapsed:.0f} s)"

    def result(self) -> OptimizeResult:
        """The result so far, as the callback gets it."""
        from racecars.result import OptimizeResult

        session, space = self.session, self.session.space
        found = session.best()
        x, value, violation, evaluations = found or (
            np.full(space.dimension, np.nan),
            None,
            None,
            0,
        )
        evaluated, failures, infeasible = session.counts()
        res = OptimizeResult(
            x=x,
            fun=self.worst if value is None else value,
            best_evaluations=evaluations,
            nfev=evaluated,
            nit=session.told,
            n_failed=failures,
            n_infeasible=infeasible,
            maxcv=violation or 0.0,
        )
        if session.space.is_by_name:
            res["params"] = None if found is None else session.space.params(x)
        return res

    def final_result(self) -> OptimizeResult:
        """The result of a run that has ended."""
        from racecars.trials import Trials

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
        if self.save_error is not None:
            message += f" The checkpoint could not be written: {self.save_error}."
        if self.note:
            message += f" {self.note}"
        history, data = self.session.history(), self.session.take_trials()
        plan = None if self.plan is None else self.plan._replace(stop_reason=reason)
        space, total = self.session.space, len(history)
        res.update(
            success=status >= 0,
            status=status,
            message=message,
            stop_reason=reason,
            history=history,
            trials=Trials(space, data, total, data.stride, self.maximize, history, plan),
            errors=failures,
            optimizer=self.optimizer,
            time=time.monotonic() - self.start,
        )
        if self.optimizer.portfolio is not None:
            res["portfolio"] = self.optimizer.portfolio
        return res


def warn(text: str, kind: type[Warning] = RuntimeWarning) -> None:
    """Warns as if from the line that called this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("racecars."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level + 1)


def adapted(callback: Callable[..., Any]) -> Callable[[Any], Any]:
    """A callback of either of SciPy's kinds: it takes ``intermediate_result``, or the best x."""
    try:
        names = set(inspect.signature(callback).parameters)
    except (TypeError, ValueError):
        names = set()
    if names == {"intermediate_result"}:
        return lambda res: callback(intermediate_result=res)
    return lambda res: callback(np.copy(res["x"]))
