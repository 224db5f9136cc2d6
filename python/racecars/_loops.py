"""Loops that evaluate in this process: one point after the other, and many as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from racecars._objective import Objective, Outcome, Unevaluated, failed, outcome_of, retried
from racecars._run import Run


def sequential(run: Run) -> None:
    """One evaluation after the other. The common case is a native loop."""
    session, objective = run.session, run.objective
    fun, args = (objective, ()) if objective.constraints else (objective.fun, objective.args)
    while session.reason is None:
        odd = session.drive(fun, args, run.on_told, run.seconds())
        if odd is not None:
            number, returned, is_raised = odd
            outcome = failure_of(returned) if is_raised else outcome_of(returned)
            if run.retries and outcome.is_retryable:
                point = session.point_of(number)
                outcome = retried(objective.outcome, point, outcome, run.retries)
            run.settle(number, outcome)
        else:
            run.tick_if_due()


def failure_of(error: BaseException) -> Outcome:
    """The failure of an exception, unless it is meant to end the run or the program."""
    if not isinstance(error, Exception):
        raise error
    return failed(error)


def vectorized(run: Run, size: int) -> None:
    """``fun`` gets many points at once, which are the columns of an array."""
    while True:
        batch: list[tuple[int, Any]] = []
        while len(batch) < size and (trial := run.next()) is not None:
            batch.append(trial)
        run.tick_if_due()
        if not batch:
            return
        columns = np.stack([x for _, x in batch], axis=1)
        for (number, _), outcome in zip(batch, outcomes(run.objective, columns)):
            run.settle(number, outcome)


def outcomes(objective: Objective, columns: Any) -> list[Outcome]:
    """The outcomes of points that are columns. An exception fails every column."""
    try:
        broken = np.zeros(columns.shape[1])
        if objective.constraints:
            broken = objective.constraints.violations(columns)
        kept = np.flatnonzero(broken <= 0.0)
        values: Any = np.empty(0)
        if len(kept):
            values = objective.fun(columns[:, kept], *objective.args)
            if not isinstance(values, np.ma.MaskedArray):
                values = np.asarray(values)
    except Exception as error:
        return [failed(error)] * columns.shape[1]
    if values.shape != kept.shape:
        text = f"fun returned shape {values.shape} for {len(kept)} points, which are columns"
        raise ValueError(f"{text}; with vectorized=True it must return shape ({len(kept)},)")
    found = [outcome_of(Unevaluated(violation)) for violation in broken]
    for place, value in zip(kept, values):
        found[place] = outcome_of(value)
    return found
