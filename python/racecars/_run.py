"""A run: what it may spend, what it has come to, and what is said of it.

How candidates are evaluated is not its business: `_loops` and `workers` ask it for candidates and
give it outcomes.
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from racecars._checkpoint import Checkpoint
from racecars._core import Candidate, Record, SpaceExhausted
from racecars._objective import Objective, Outcome
from racecars.optimizer import Optimizer

if TYPE_CHECKING:
    from racecars.result import Failure, OptimizeResult

# So many failures are kept in full.
MOST_FAILURES = 20
# How often a checkpoint is written, and progress is said, at most.
PERIOD = 1.0

# Why a run ended: status and message.
ENDS = {
    "limit": (0, "The evaluations allowed (maxfev) have been used."),
    "target": (1, "The target was reached."),
    "time": (2, "The time allowed (maxtime) has passed."),
    "callback": (3, "The callback asked to stop."),
    "exhausted": (4, "Every point of the space has been evaluated."),
    "workers": (-3, "The workers are gone; this is the best so far."),
    "interrupted": (-1, "Interrupted; this is the best so far."),
}


class Run:
    """One call of ``minimize``."""

    def __init__(
        self,
        optimizer: Optimizer,
        objective: Objective,
        *,
        as_dict: bool,
        maxfev: int | None,
        maxtime: float | None,
        target: float | None,
        callback: Callable[..., Any] | None,
        retries: int,
        on_error: str,
        checkpoint: Checkpoint | None,
        disp: bool,
    ) -> None:
        self.optimizer, self.objective, self.as_dict = optimizer, objective, as_dict
        self.limit = math.inf if maxfev is None else maxfev
        self.target, self.retries, self.on_error = target, retries, on_error
        self.callback = None if callback is None else adapted(callback)
        self.checkpoint, self.disp = checkpoint, disp
        self.start = time.monotonic()
        self.deadline = math.inf if maxtime is None else self.start + maxtime
        self.next_tick = self.start + PERIOD
        self.record = Record()
        self.failures: list[Failure] = []
        self.queue: deque[Candidate] = deque()
        """What is to be evaluated before the optimizer is asked."""
        self.out: dict[int, Candidate] = {}
        """The candidates that are being evaluated, by their object's id."""
        self.reason: str | None = None

    def resume(self, checkpoint: Checkpoint) -> None:
        """Goes on with what a checkpoint file holds."""
        self.record, self.failures, pending = checkpoint.read(self.optimizer)
        self.queue.extend(pending)
        best = self.optimizer.best
        if best is not None and self.target is not None and best.fun <= self.target:
            self.stop("target")

    def stop(self, reason: str) -> None:
        """Ends the run; the first reason given stays."""
        self.reason = self.reason or reason

    def may_ask(self) -> bool:
        """Whether another candidate may be handed out."""
        if self.reason is None and self.record.told >= self.limit:
            self.stop("limit")
        if self.reason is None and self.deadline < math.inf and time.monotonic() >= self.deadline:
            self.stop("time")
        return self.reason is None and self.record.told + len(self.out) < self.limit

    def next(self) -> Candidate | None:
        """The next candidate to evaluate, ``None`` if there is none for now."""
        if not self.may_ask():
            return None
        try:
            candidate = self.queue.popleft() if self.queue else self.optimizer.ask()
        except SpaceExhausted:
            if not self.out:
                self.stop("exhausted")
            return None
        self.out[id(candidate)] = candidate
        return candidate

    def settle(self, candidate: Candidate, outcome: Outcome) -> None:
        """Enters what came of a candidate."""
        if outcome.kind == "value":
            self.optimizer.tell(candidate, outcome.amount)
            self.record.add_value(outcome.amount)
            if self.target is not None and outcome.amount <= self.target:
                self.stop("target")
        elif outcome.kind == "infeasible":
            self.optimizer.tell(candidate, violation=outcome.amount)
            self.record.add_infeasible(outcome.evaluated)
        else:
            self.fail(candidate, outcome)
        self.out.pop(id(candidate), None)
        self.after()

    def fail(self, candidate: Candidate, outcome: Outcome) -> None:
        """Enters a failed evaluation, and shows the first."""
        from racecars.result import Failure

        if self.on_error == "raise":
            if outcome.error is not None:
                raise outcome.error
            raise RuntimeError(f"evaluation {self.record.told}: {outcome.text}")
        x = candidate.x
        self.optimizer.tell(candidate, error=outcome.text)
        index = self.record.told
        self.record.add_failed()
        if len(self.failures) < MOST_FAILURES:
            kept = Failure(index, x, outcome.text, outcome.traceback, outcome.error)
            self.failures.append(kept)
        if self.record.failed == 1:
            text = f"evaluation {index} failed and counts as worse than all others"
            more = "the first failures are kept in res.errors; on_error='raise' stops at one"
            warn(f"{text}: {outcome.text} ({more})")

    def after(self) -> None:
        """What is done after each evaluation, or each batch of them."""
        if self.callback is not None and self.reason is None:
            try:
                if self.callback(self.result()):
                    self.stop("callback")
            except StopIteration:
                self.stop("callback")
        self.tick_if_due()

    def tick_if_due(self) -> None:
        if self.has_ticks and time.monotonic() >= self.next_tick:
            self.tick()

    @property
    def has_ticks(self) -> bool:
        return self.disp or self.checkpoint is not None

    def tick(self) -> None:
        """Writes the checkpoint and says how far the run is."""
        self.save()
        if self.disp:
            print(self.line(), flush=True)
        self.next_tick = time.monotonic() + PERIOD

    def seconds(self) -> float | None:
        """How long a loop may go on, or wait, by itself; after the deadline, for the next tick."""
        until = self.next_tick if self.has_ticks else math.inf
        if self.reason is None:
            until = min(until, self.deadline)
        return None if until == math.inf else max(0.0, until - time.monotonic())

    def save(self) -> None:
        if self.checkpoint is not None:
            pending = [*self.out.values(), *self.queue]
            self.checkpoint.write(self.optimizer, self.record, self.failures, pending)

    def line(self) -> str:
        best = self.optimizer._best()
        value = math.inf if best is None or best[1] is None else best[1]
        failed = f", {self.record.failed} failed" if self.record.failed else ""
        elapsed = time.monotonic() - self.start
        return f"{self.record.told} evaluations, best {value:.6g}{failed} ({elapsed:.0f} s)"

    def result(self, reason: str | None = None) -> OptimizeResult:
        """What the run has come to so far, or, with the reason of its end, at last."""
        from racecars.result import OptimizeResult

        found = self.optimizer._best()
        record, n = self.record, self.optimizer.space.dimension
        x, value, violation = found or (np.full(n, np.nan), None, None)
        res = OptimizeResult(
            x=x,
            fun=math.inf if value is None else value,
            nfev=record.evaluations,
            nit=record.told,
            n_failed=record.failed,
            n_infeasible=record.infeasible,
            maxcv=violation or 0.0,
        )
        if self.as_dict:
            res["params"] = None if found is None else self.optimizer.space.params(x)
        if reason is None:
            return res
        status, message = ENDS[reason]
        if value is None and status >= 0:
            status = -2
            message = f"No evaluation gave a value. {message}"
            if violation is not None:
                message = f"No feasible point was found; x is the least infeasible. {message}"
        if self.failures:
            message += f" {record.failed} of {record.told} evaluations failed, the first with "
            message += f"{self.failures[0].text}"
        res.update(
            success=status >= 0,
            status=status,
            message=message,
            history=record.values(),
            errors=self.failures,
            optimizer=self.optimizer,
            time=time.monotonic() - self.start,
        )
        return res

    def starts(self, points: Iterable[Any]) -> None:
        """Has these points evaluated first."""
        self.queue.extend(self.optimizer.known(point) for point in points)


def warn(text: str) -> None:
    """Warns as if from the line that called this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("racecars."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level + 1)


def adapted(callback: Callable[..., Any]) -> Callable[[Any], Any]:
    """A callback in either of SciPy's manners: ``intermediate_result`` by name, or the best x."""
    try:
        names = set(inspect.signature(callback).parameters)
    except (TypeError, ValueError):
        names = set()
    if names == {"intermediate_result"}:
        return lambda res: callback(intermediate_result=res)
    return lambda res: callback(np.copy(res["x"]))
