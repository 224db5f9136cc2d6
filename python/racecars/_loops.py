"""Loops that evaluate in this process: one point after the other, and many as columns."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from racecars._core import Candidate
from racecars._objective import Objective, Outcome, Unevaluated, failed, outcome_of
from racecars._run import Run


def sequential(run: Run) -> None:
    """One evaluation after the other. The common case is a loop of the core's own."""
    while run.queue:
        candidate = run.next()
        if candidate is None:
            return
        evaluate(run, candidate)
    optimizer, record, objective = run.optimizer, run.record, run.objective
    fun, args = (objective, ()) if objective.constraints else (objective.fun, objective.args)
    while run.may_ask():
        most = record.told + 1 if run.callback else min(run.limit, sys.maxsize)
        why, candidate, returned = optimizer._drive(
            fun, args, record, int(most), run.seconds(), run.target, run.as_dict
        )
        if candidate is not None:
            run.out[id(candidate)] = candidate
            if why == "value":
                run.settle(candidate, outcome_of(returned))
            else:
                again(run, candidate, returned)
            continue
        if why in ("target", "exhausted"):
            run.stop(why)
        run.after()


def evaluate(run: Run, candidate: Candidate) -> None:
    """Evaluates a candidate here, and again if it fails and that is allowed."""
    point: Any = candidate.params if run.as_dict else candidate.x
    try:
        run.settle(candidate, outcome_of(run.objective(point)))
    except Exception as error:
        if id(candidate) not in run.out:  # it was not the objective
            raise
        again(run, candidate, error)


def again(run: Run, candidate: Candidate, error: BaseException) -> None:
    """After an exception: tries again as often as allowed."""
    outcome = stopped(error)
    for _ in range(run.retries):
        if not (outcome.is_failure and outcome.is_worth_another):
            break
        point: Any = candidate.params if run.as_dict else candidate.x
        try:
            outcome = outcome_of(run.objective(point))
        except Exception as another:
            outcome = failed(another)
    run.settle(candidate, outcome)


def stopped(error: BaseException) -> Outcome:
    """The outcome of an exception, unless it is meant to end the run or the program."""
    if not isinstance(error, Exception):
        raise error
    return failed(error)


def vectorized(run: Run, size: int) -> None:
    """``fun`` gets many points at once, which are the columns of an array."""
    objective = run.objective
    while run.may_ask():
        batch: list[Candidate] = []
        while len(batch) < size and (candidate := run.next()) is not None:
            batch.append(candidate)
        if not batch:
            return
        columns = np.stack([candidate.x for candidate in batch], axis=1)
        for candidate, outcome in zip(batch, outcomes(objective, columns)):
            run.settle(candidate, outcome)


def outcomes(objective: Objective, columns: Any) -> list[Outcome]:
    """What comes of points that are columns. An exception is every column's."""
    try:
        broken = np.zeros(columns.shape[1])
        if objective.constraints:
            broken = objective.constraints.violations(columns)
        kept = np.flatnonzero(broken <= 0.0)
        values = np.empty(0)
        if len(kept):
            values = np.asarray(objective.fun(columns[:, kept], *objective.args))
    except Exception as error:
        return [failed(error)] * columns.shape[1]
    if values.shape != kept.shape:
        text = f"fun returned shape {values.shape} for {len(kept)} points, which are columns"
        raise ValueError(f"{text}; with vectorized=True it must return shape ({len(kept)},)")
    found = [outcome_of(Unevaluated(violation)) for violation in broken]
    for place, value in zip(kept, values):
        found[place] = outcome_of(value)
    return found
