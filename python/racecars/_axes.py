"""Coordinates of other packages' search spaces, as coordinates of ours.

Their steps, choices and quanta become integers, from which values are computed as those packages
compute them. So a grid of a billion steps costs nothing, choices can be any objects, and proposals
are always inside the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from racecars.space import Choice, Integer, Real, Space, space_of, when

__all__ = ["Axis", "space_of_axes"]


@dataclass(frozen=True)
class Axis:
    """Numbers from ``low`` to ``high``, with ``step`` only ``base + k * step``; or choices."""

    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    step: float | None = None
    base: float = 0.0
    choices: Sequence[Any] | None = None

    def domain(self) -> Real | Integer | Choice:
        """The coordinate as one of our spaces."""
        if self.choices is not None:
            return Choice(range(len(self.choices)))
        if self.step is not None:
            low, high = self._steps(self.low), self._steps(self.high)
            return Integer(math.ceil(low), math.floor(high), log=self.log)
        if self.whole:
            return Integer(int(self.low), int(self.high), log=self.log)
        return Real(self.low, self.high, log=self.log)

    def value(self, number: float) -> Any:
        """The value that a coordinate's number stands for."""
        if self.choices is not None:
            return self.choices[round(number)]
        if self.step is not None:
            number = self.base + round(number) * self.step
        number = min(max(number, self.low), self.high)
        return round(number) if self.whole else float(number)

    def number(self, value: Any) -> float | None:
        """The coordinate's number for a value, the nearest step if need be; ``None`` outside."""
        if self.choices is not None:
            return _position(self.choices, value)
        try:
            number = float(value)
        except (TypeError, ValueError):
            return None
        if not self.low <= number <= self.high:
            return None
        if self.step is not None:
            domain = self.domain()
            assert isinstance(domain, Integer)
            number = min(max(round((number - self.base) / self.step), domain.low), domain.high)
        return float(round(number)) if self.whole else float(number)

    def _steps(self, value: float) -> float:
        """The number of steps below a value; rounding errors do not lose one."""
        assert self.step is not None
        steps = (value - self.base) / self.step
        nearest = round(steps)
        return nearest if math.isclose(steps, nearest, rel_tol=1e-9, abs_tol=1e-9) else steps


def space_of_axes(
    axes: Iterable[tuple[str, Axis]], conditions: Mapping[str, str] = MappingProxyType({})
) -> Space:
    """The space of these coordinates, in which a point is the array of their numbers. Those with a
    condition are NaN where it does not hold."""
    domains = {name: axis.domain() for name, axis in axes}
    return space_of(
        {
            name: when(conditions[name], domain) if name in conditions else domain
            for name, domain in domains.items()
        }
    )


def _position(choices: Sequence[Any], value: Any) -> float | None:
    """The index of a value: by identity, else by type and equality (``1`` is not ``True``)."""
    for place, choice in enumerate(choices):
        if choice is value or (type(choice) is type(value) and bool(choice == value)):
            return float(place)
    for place, choice in enumerate(choices):
        if bool(choice == value):
            return float(place)
    return None
