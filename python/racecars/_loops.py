"""Loops that evaluate in this process: one point after the other, and many as columns."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from racecars._core import Space
from racecars._objective import Objective, Outcome, Unevaluated, failed, outcome_of, retried
from racecars._run import Run


def sequential(run: Run) -> None:
    """One evaluation after the other. The common case is a native loop."""
    session, objective = run.session, run.objective
    fun, args = (objective, ()) if objective.constraints else (objective.fun, objective.args)
    while session.reason is None:
        odd = session.drive(fun, args, run.on_told, run.seconds())
        if odd is not None:
            number, returned, is_raised, seconds = odd
            outcome = failure_of(returned) if is_raised else outcome_of(returned)
            if run.retries and outcome.is_retryable:
                point = session.point_of(number)
                start = time.perf_counter()
                outcome = retried(objective.outcome, point, outcome, run.retries)
                seconds += time.perf_counter() - start
            run.settle(number, outcome, seconds)
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
        start = time.perf_counter()
        found = outcomes(run.objective, run.session.space, [point for _, point in batch])
        seconds = (time.perf_counter() - start) / len(batch)
        for (number, _), outcome in zip(batch, found):
            run.settle(number, outcome, seconds)


def outcomes(objective: Objective, space: Space, points: list[Any]) -> list[Outcome]:
    """The outcomes of points that ``fun`` gets together. An exception fails every one."""
    try:
        broken = violations(objective, space, points)
        kept = np.flatnonzero(broken <= 0.0)
        values: Any = np.empty(0)
        if len(kept):
            values = objective.fun(together(space, [points[i] for i in kept]), *objective.args)
            if not isinstance(values, np.ma.MaskedArray):
                values = np.asarray(values)
    except Exception as error:
        return [failed(error)] * len(points)
    if values.shape != kept.shape:
        what = "in arrays by name" if space.is_by_name else "which are columns"
        text = f"fun returned shape {values.shape} for {len(kept)} points, {what}"
        raise ValueError(f"{text}; with vectorized=True it must return shape ({len(kept)},)")
    found = [outcome_of(Unevaluated([violation])) for violation in broken]
    for place, value in zip(kept, values):
        found[place] = outcome_of(value)
    return found


def violations(objective: Objective, space: Space, points: list[Any]) -> Any:
    """By how much each of the points violates the constraints."""
    if not objective.constraints:
        return np.zeros(len(points))
    if space.is_by_name:
        return np.array([objective.constraints.violation(point) for point in points])
    return objective.constraints.violations(together(space, points))


def together(space: Space, points: list[Any]) -> Any:
    """Many points as ``fun`` gets them with ``vectorized``: the columns of an array, or a dict of
    arrays whose last axis is the points.

    >>> from racecars.space import Real, space_of
    >>> space = space_of({"n": range(9), "w": Real(0, 1, count=2), "mode": ["a", "b"]})
    >>> points = [{"n": i, "w": np.zeros(2), "mode": "b"} for i in range(4)]
    >>> {name: (array.shape, array.dtype.kind) for name, array in together(space, points).items()}
    {'n': ((4,), 'i'), 'w': ((2, 4), 'f'), 'mode': ((4,), 'O')}
    """
    if not space.is_by_name:
        return np.stack(points, axis=1)
    return {name: array_of([point.get(name) for point in points]) for name in space.names}


def array_of(values: list[Any]) -> Any:
    """An array of the values of one parameter: of numbers where they are, else of objects."""
    if isinstance(values[0], (np.ndarray, list)):
        rows = [array_of(list(row)) for row in zip(*values)]
        return np.stack(rows)
    if all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in values):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
