"""The user's function with its arguments and constraints, and what comes of calling it."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from racecars._constraints import Constraints


class Infeasible:
    """What ``fun`` may return instead of a value: the point breaks a constraint, by this much."""

    # No subclass of float: it must not pass for a value.
    def __init__(self, violation: float) -> None:
        self.violation = float(violation)

    def __repr__(self) -> str:
        return f"Infeasible({self.violation})"


class Outcome(NamedTuple):
    """What came of an evaluation, such as a worker process can send.

    ``kind`` is "value", "infeasible", "error" (an exception, or something that is no value),
    "died" or "timeout". ``amount`` is the value or the violation. ``evaluated`` is whether
    ``fun`` was called.
    """

    kind: str
    amount: float = math.nan
    text: str = ""
    traceback: str = ""
    error: BaseException | None = None
    evaluated: bool = True

    @property
    def is_failure(self) -> bool:
        return self.kind in ("error", "died", "timeout")

    @property
    def is_worth_another(self) -> bool:
        """Whether it may come out otherwise if tried again: not where a value was returned."""
        return self.kind != "error" or bool(self.traceback)


class Objective:
    """Calls ``fun(x, *args)``, unless ``x`` breaks a constraint."""

    def __init__(
        self, fun: Callable[..., Any], args: tuple[Any, ...], constraints: Constraints
    ) -> None:
        self.fun, self.args, self.constraints = fun, args, constraints

    def __call__(self, x: Any) -> Any:
        if self.constraints:
            violation = self.constraints.violation(x)
            if not violation <= 0.0:
                return Unevaluated(violation)
        return self.fun(x, *self.args)

    def outcome(self, x: Any) -> Outcome:
        """Calls and never raises, but for what is meant to end the program."""
        try:
            return outcome_of(self(x))
        except Exception as error:
            return failed(error)


class Unevaluated(Infeasible):
    """The violation of a point whose value was not asked for."""


def outcome_of(returned: Any) -> Outcome:
    """What a function's return value means."""
    if isinstance(returned, Infeasible):
        evaluated = not isinstance(returned, Unevaluated)
        violation = returned.violation
        if math.isfinite(violation) and violation >= 0.0:
            return Outcome("infeasible", violation, evaluated=evaluated)
        return Outcome("error", text=f"a constraint was violated by {violation}")
    try:
        value = _number(returned)
    except (TypeError, ValueError):
        shape = f" of shape {np.shape(returned)}" if isinstance(returned, np.ndarray) else ""
        kind = type(returned).__name__
        return Outcome("error", text=f"fun returned {kind}{shape}, not a number")
    if not math.isfinite(value):
        return Outcome("error", text=f"fun returned {value}")
    return Outcome("value", value)


def _number(returned: Any) -> float:
    if isinstance(returned, (float, int)):
        return float(returned)
    if returned is None or isinstance(returned, (str, bytes)):
        raise TypeError
    return float(np.asarray(returned, dtype=float).item())


def failed(error: BaseException) -> Outcome:
    """The outcome of an evaluation that raised."""
    # The first entries are ours.
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Outcome("error", text=described(error), traceback=trace, error=error)


def described(error: BaseException) -> str:
    """An exception in a line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
