"""The user's function with its arguments and constraints, and the outcome of calling it."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from racecars._constraints import Constraints
from racecars._core import RETRYABLE
from racecars._numbers import numbers


class Infeasible:
    """What ``fun`` may return instead of a value: the point violates a constraint by this much."""

    # No subclass of float: it must not pass for a value.
    def __init__(self, violation: float, value: float | None = None) -> None:
        self.violation = float(violation)
        self.value = None if value is None else float(value)

    def __repr__(self) -> str:
        value = "" if self.value is None else f", {self.value}"
        return f"Infeasible({self.violation}{value})"


class Measured:
    """What ``fun`` may return instead of a value: the value, and constraints that the evaluation
    measured, each at most 0 where it is met. Return them for feasible points, too. The value may be
    ``None`` where a constraint is violated.

    >>> Measured(1.5, [-0.5, 2.0])
    Measured(1.5, [-0.5, 2.0])
    """

    def __init__(self, value: float | None, constraints: Any) -> None:
        self.value = None if value is None else float(value)
        self.constraints: list[float] = np.atleast_1d(numbers(constraints)).ravel().tolist()

    def __repr__(self) -> str:
        return f"Measured({self.value}, {self.constraints})"


class Outcome(NamedTuple):
    """The outcome of an evaluation, as a worker process sends it.

    One of ``value``, ``violation`` and ``failure`` is given; a violation and ``constraints`` may
    come with a value. ``failure`` is the name of one of the
    core's kinds of failure, which ``text`` explains. ``evaluated`` is whether ``fun`` was called.
    """

    value: float | None = None
    violation: float | None = None
    failure: str | None = None
    text: str = ""
    traceback: str = ""
    error: BaseException | None = None
    evaluated: bool = True
    constraints: list[float] | None = None

    @property
    def is_retryable(self) -> bool:
        """Whether it failed, and another attempt may succeed."""
        return self.failure in RETRYABLE


class Objective:
    """Calls ``fun(x, *args)``, unless ``x`` violates a constraint."""

    def __init__(
        self, fun: Callable[..., Any], args: tuple[Any, ...], constraints: Constraints
    ) -> None:
        self.fun, self.args, self.constraints = fun, args, constraints

    def __call__(self, x: Any) -> Any:
        if not self.constraints:
            return self.fun(x, *self.args)
        constraints = self.constraints.values(x)
        if not (constraints <= 0.0).all():
            return Unevaluated(constraints)
        returned = self.fun(x, *self.args)
        # How far a feasible point is from the limits is of use, too.
        return Measured(returned, constraints) if isinstance(returned, (float, int)) else returned

    def outcome(self, x: Any) -> Outcome:
        """Calls, and turns exceptions into failures; only those meant to end the program pass."""
        try:
            return outcome_of(self(x))
        except Exception as error:
            return failed(error)


def retried(call: Callable[[Any], Outcome], point: Any, outcome: Outcome, retries: int) -> Outcome:
    """The outcome of a point after the retries allowed, given the first outcome."""
    for _ in range(retries):
        if not outcome.is_retryable:
            break
        outcome = call(point)
    return outcome


class Unevaluated(Measured):
    """The constraints of a point that was not evaluated."""

    def __init__(self, constraints: Any) -> None:
        super().__init__(None, constraints)


def outcome_of(returned: Any) -> Outcome:
    """The outcome that a function's return value stands for."""
    if isinstance(returned, Infeasible):
        violation = returned.violation
        if math.isfinite(violation) and violation >= 0.0:
            value = returned.value
            if value is not None and not math.isfinite(value):
                value = None
            return Outcome(value, violation)
        return Outcome(failure="nan", text=f"a constraint was violated by {violation}")
    if isinstance(returned, Measured):
        return _measured(returned)
    try:
        value = _number(returned)
    except Exception as error:
        shape = f" of shape {np.shape(returned)}" if isinstance(returned, np.ndarray) else ""
        why = "" if isinstance(error, (TypeError, ValueError)) else f" ({described(error)})"
        kind = type(returned).__name__
        return Outcome(failure="nan", text=f"fun returned {kind}{shape}, not a number{why}")
    if math.isnan(value) and np.ma.is_masked(returned):
        return Outcome(failure="nan", text="fun returned a masked value")
    if not math.isfinite(value):
        return Outcome(failure="nan", text=f"fun returned {value}")
    return Outcome(value)


def _measured(returned: Measured) -> Outcome:
    value, constraints = returned.value, returned.constraints
    odd = [by for by in constraints if not math.isfinite(by)]
    if odd:
        text = f"a constraint was violated by {odd[0]}"
        if math.isnan(odd[0]):
            text = "a constraint returned NaN or a masked value"
        return Outcome(failure="nan", text=text)
    evaluated = not isinstance(returned, Unevaluated)
    if value is not None and not math.isfinite(value):
        return Outcome(failure="nan", text=f"fun returned {value}")
    if value is None and all(by <= 0.0 for by in constraints):
        return Outcome(failure="nan", text="fun returned no value for a feasible point")
    return Outcome(value, evaluated=evaluated, constraints=constraints)


def _number(returned: Any) -> float:
    if isinstance(returned, (float, int)):
        return float(returned)
    if returned is None or isinstance(returned, (str, bytes)):
        raise TypeError
    return float(numbers(returned).item())


def failed(error: BaseException) -> Outcome:
    """The outcome of an evaluation that raised."""
    # The first entries are ours.
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Outcome(failure="error", text=described(error), traceback=trace, error=error)


def described(error: BaseException) -> str:
    """An exception in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception as other:
        text = f"its text cannot be shown, since __str__ raised {type(other).__name__}"
    # File names that are no UTF-8 are in Python strings as what cannot be encoded.
    text = text.encode(errors="backslashreplace").decode()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
