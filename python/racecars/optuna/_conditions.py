"""Conditions of parameters, as they are seen in trials: a parameter that a trial does not have was
inactive there.

A parameter's parent is one that was suggested before it, a choice or an integer, such that its
values in trials with the parameter and in trials without it are apart: as sets for a choice, by a
threshold for an integer. Values not seen yet count as values with it, so that what is learned there
refutes the condition if it is wrong. Where there is no parent, the parameter is always active.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from racecars._axes import Axis

__all__ = ["Condition", "condition_of", "is_active"]


class Condition(NamedTuple):
    """A parameter is active where its parent is active and has no value of those without it."""

    parent: str
    without: tuple[Any, ...]
    """The values of a choice without the parameter."""
    above: int | None = None
    below: int | None = None
    """The ends of the values of an integer with the parameter, excluded."""

    def holds(self, value: Any) -> bool:
        """Whether a parameter is active where its parent has this value."""
        return (
            not any(value == other for other in self.without)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def text(self, name: str, axis: Axis) -> str:
        """The condition for the core, which knows the parent by this name."""
        if self.above is not None:
            return f"{name} > {axis.number(self.above)}"
        if self.below is not None:
            return f"{name} < {axis.number(self.below)}"
        numbers = [axis.number(value) for value in self.without]
        return f"not ({name} in ({', '.join(str(int(n)) for n in numbers if n is not None)}))"


def is_active(name: str, conditions: Mapping[str, Condition], params: Mapping[str, Any]) -> bool:
    """Whether a parameter is active in a trial with these parameters."""
    condition = conditions.get(name)
    if condition is None:
        return True
    return condition.parent in params and condition.holds(params[condition.parent])


def condition_of(
    name: str,
    known: Mapping[str, BaseDistribution],
    with_it: Sequence[Mapping[str, Any]],
    without_it: Sequence[Mapping[str, Any]],
) -> Condition | None:
    """The condition of a parameter by the parameters of trials with it and of trials without it.
    ``known`` are all parameters, in the order in which they were first seen."""
    before = list(known)[: list(known).index(name)]
    for kind in (CategoricalDistribution, IntDistribution):
        for parent in before:
            if isinstance(known[parent], kind):
                found = _of_parent(parent, kind, with_it, without_it)
                if found is not None:
                    return found
    return None


def _of_parent(
    parent: str,
    kind: type[BaseDistribution],
    with_it: Sequence[Mapping[str, Any]],
    without_it: Sequence[Mapping[str, Any]],
) -> Condition | None:
    if any(parent not in params for params in with_it):
        return None
    present = _distinct(params[parent] for params in with_it)
    absent = _distinct(params[parent] for params in without_it if parent in params)
    # If the parent was never there without it, both have the same condition.
    if not absent:
        return Condition(parent, ()) if without_it else None
    if kind is CategoricalDistribution:
        is_apart = not any(value == other for value in present for other in absent)
        return Condition(parent, tuple(absent)) if is_apart else None
    if max(absent) < min(present):
        return Condition(parent, (), above=max(absent))
    if max(present) < min(absent):
        return Condition(parent, (), below=min(absent))
    return None


def _distinct(values: Iterable[Any]) -> list[Any]:
    """The values, each once; they need not be hashable."""
    found: list[Any] = []
    for value in values:
        if not any(value == other for other in found):
            found.append(value)
    return found
