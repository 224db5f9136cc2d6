"""Constraints in SciPy's forms, and by how much a point violates them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from racecars._numbers import numbers

# The tolerance of equality constraints.
TOLERANCE = 1e-6
# The most numbers that are shown; of more, a checksum is.
MAX_SHOWN = 8


class Constraints:
    """A list of constraints. A point's violation is the sum of the violations of each.

    >>> both = Constraints([lambda x: x[0] - 1, {"type": "ineq", "fun": lambda x: x[1]}])
    >>> both.violation([3.0, 0.5])
    2.0
    >>> both.violation([3.0, -0.5])
    2.5
    """

    def __init__(self, given: Any) -> None:
        one = isinstance(given, Mapping) or callable(given) or hasattr(given, "lb")
        self.parts = [_part(part, i) for i, part in enumerate([given] if one else given)]

    def __bool__(self) -> bool:
        return bool(self.parts)

    def described(self) -> str:
        """What can be compared of them: their kinds and limits, but not their functions.

        >>> Constraints([lambda x: x[0] - 1, {"type": "ineq", "fun": lambda x: x[1]}]).described()
        'function from [-inf] to [0.0], ineq from [0.0] to [inf]'
        """
        return ", ".join(part.described() for part in self.parts) or "none"

    def values(self, x: Any) -> Any:
        """What must be at most 0, of each limit that is finite.

        >>> Constraints([{"type": "ineq", "fun": lambda x: x[0]}, lambda x: x[0] - 1]).values([3.0])
        array([-3.,  2.])
        """
        return np.concatenate([part.values(x) for part in self.parts])

    def violation(self, x: Any) -> float:
        """By how much a point violates them, 0 if it does not."""
        return float(sum(part(x).sum() for part in self.parts))

    def violations(self, columns: Any) -> Any:
        """The violations of many points, which are the columns of an array."""
        total = np.zeros(columns.shape[1])
        for part in self.parts:
            total += np.atleast_2d(part(columns)).sum(axis=0)
        return total


class _Limits:
    """``low <= fun(x) <= high``."""

    def __init__(
        self, kind: str, fun: Callable[..., Any], low: Any, high: Any, args: Any = ()
    ) -> None:
        self.kind, self.fun, self.args = kind, fun, tuple(args)
        self.low, self.high = np.atleast_1d(low).astype(float), np.atleast_1d(high).astype(float)

    def described(self) -> str:
        """Its kind and limits."""
        of = f" of {self.fun.described()}" if isinstance(self.fun, _Product) else ""
        return f"{self.kind}{of} from {_shown(self.low)} to {_shown(self.high)}"

    def __call__(self, x: Any) -> Any:
        values = np.atleast_1d(numbers(self.fun(x, *self.args)))
        low, high = self.low, self.high
        if values.ndim == 2:
            low, high = low[:, np.newaxis], high[:, np.newaxis]
        missed = np.maximum(low - values, 0.0) + np.maximum(values - high, 0.0)
        return np.where(np.isnan(values), np.nan, missed)

    def values(self, x: Any) -> Any:
        """How far each component is beyond its limits; negative where it is inside."""
        found = np.atleast_1d(numbers(self.fun(x, *self.args))).ravel()
        low, high = (np.broadcast_to(end, found.shape) for end in (self.low, self.high))
        below, above = np.isfinite(low), np.isfinite(high)
        return np.concatenate([(low - found)[below], (found - high)[above]])


class _Product:
    """The left side of a linear constraint."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def __call__(self, x: Any) -> Any:
        return self.matrix @ x

    def described(self) -> str:
        """The matrix, or its checksum."""
        if not hasattr(self.matrix, "tocsr"):
            return _shown(np.asarray(self.matrix, dtype=float))
        rows = self.matrix.tocsr()
        return " ".join(map(_shown, (rows.indptr, rows.indices, rows.data)))


def _shown(array: Any) -> str:
    if array.size <= MAX_SHOWN:
        return str(array.tolist())
    checksum = hashlib.blake2b(array.tobytes(), digest_size=8).hexdigest()
    return f"{array.size} numbers ({checksum})"


def _part(given: Any, index: int) -> _Limits:
    if hasattr(given, "A") and hasattr(given, "lb"):
        matrix = given.A if hasattr(given.A, "tocsr") else np.atleast_2d(given.A)
        return _Limits("linear", _Product(matrix), given.lb, given.ub)
    if hasattr(given, "fun") and hasattr(given, "lb"):
        return _Limits("nonlinear", given.fun, given.lb, given.ub)
    if isinstance(given, Mapping):
        kind, fun = given.get("type"), given.get("fun")
        if kind not in ("eq", "ineq") or not callable(fun):
            what = "a dict takes 'type', which is 'eq' or 'ineq', and 'fun', which is callable"
            raise ValueError(f"constraints[{index}]: {what}")
        ends = (-TOLERANCE, TOLERANCE) if kind == "eq" else (0.0, np.inf)
        return _Limits(kind, fun, *ends, given.get("args", ()))
    if callable(given):
        return _Limits("function", given, -np.inf, 0.0)
    raise ValueError(
        f"constraints[{index}]: {type(given).__name__} is not a NonlinearConstraint, a "
        "LinearConstraint, a dict, or a function whose values must be at most 0"
    )
