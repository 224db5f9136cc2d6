"""Optuna's distributions as coordinates, and what becomes of one that changes within a study."""

from __future__ import annotations

import math
from typing import Any, Union

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from racecars._axes import Axis

Numeric = Union[FloatDistribution, IntDistribution]


def axis(distribution: BaseDistribution) -> Axis:
    """The coordinate of a distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return Axis(choices=distribution.choices)
    if not isinstance(distribution, (FloatDistribution, IntDistribution)):
        raise ValueError(f"RaceCarsSampler does not know the distribution {distribution!r}")
    whole = isinstance(distribution, IntDistribution)
    step = distribution.step
    return Axis(
        low=distribution.low,
        high=distribution.high,
        log=distribution.log,
        whole=whole,
        step=None if whole and step == 1 else step,
        base=distribution.low,
    )


def center(distribution: BaseDistribution) -> Any:
    """The value in the middle, ``None`` where there is no order."""
    here = axis(distribution)
    if here.choices is not None:
        return None
    if here.log:
        middle = math.exp(0.5 * (math.log(here.low) + math.log(here.high)))
    else:
        middle = 0.5 * here.low + 0.5 * here.high
    number = here.number(min(max(middle, here.low), here.high))
    return None if number is None else here.value(number)


def merged(old: BaseDistribution, new: BaseDistribution) -> BaseDistribution:
    """The distribution that has the values of both.

    Optuna itself refuses other changes of a parameter than of its bounds and step.
    """
    if isinstance(old, FloatDistribution) and isinstance(new, FloatDistribution):
        low, high = min(old.low, new.low), max(old.high, new.high)
        step = old.step if _are_aligned(old, new) else None
        return FloatDistribution(low, high, log=old.log, step=step)
    if isinstance(old, IntDistribution) and isinstance(new, IntDistribution):
        low, high = min(old.low, new.low), max(old.high, new.high)
        step = old.step if _are_aligned(old, new) else 1
        return IntDistribution(low, high, log=old.log, step=step)
    return old


def _are_aligned(old: Numeric, new: Numeric) -> bool:
    """Whether both have the same step, from bounds that are whole steps apart."""
    if old.step is None or old.step != new.step:
        return False
    steps = (new.low - old.low) / old.step
    return abs(steps - round(steps)) < 1e-8
