"""Search spaces in Python: pairs of bounds, SciPy's ``Bounds``, or a dict by name."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from racecars._core import Space

# What ``where`` takes.
Where = Union[str, Callable[..., Any], Sequence[Union[str, Callable[..., Any]]]]

__all__ = [
    "Choice",
    "Integer",
    "Permutation",
    "Real",
    "Simplex",
    "Space",
    "Subset",
    "When",
    "space_of",
    "when",
]


@dataclass(frozen=True)
class Real:
    """Every number from ``low`` to ``high``, or, with ``step``, every ``step``-th.

    ``count`` makes an array of this many under one name.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    count: int | None = None


@dataclass(frozen=True)
class Integer:
    """Every integer from ``low`` to ``high``, both included, or every ``step``-th."""

    low: int
    high: int
    log: bool = False
    step: int = 1
    count: int | None = None


@dataclass(frozen=True)
class Choice:
    """One of ``values``, any objects; ``ordered`` if neighbours are alike."""

    values: Sequence[Any]
    ordered: bool = False
    count: int | None = None


@dataclass(frozen=True)
class Permutation:
    """An order of ``items``, any objects; a number stands for ``range(items)``."""

    items: Sequence[Any] | int


@dataclass(frozen=True)
class Subset:
    """A selection of ``items``, any objects: ``size`` of them, or from one to the other number."""

    items: Sequence[Any]
    size: int | tuple[int, int]


@dataclass(frozen=True)
class Simplex:
    """``count`` numbers from 0 that add up to 1: the shares of a mixture."""

    count: int


@dataclass(frozen=True)
class When:
    """What :func:`when` returns."""

    given: Any
    condition: str


def when(condition: str, given: Any) -> When:
    """A parameter that is there only where a condition on others holds.

    >>> import racecars
    >>> space = {
    ...     "kernel": ["linear", "poly"],
    ...     "degree": racecars.when("kernel = poly", range(2, 6)),
    ... }
    >>> res = racecars.minimize(lambda p: p.get("degree", 9), space=space, maxfev=5, rng=1)
    >>> res.params["kernel"], res.fun
    ('poly', 2.0)
    """
    if not isinstance(condition, str):
        raise TypeError(f"the condition {condition!r} is not a text such as 'kernel = poly'")
    return When(given, condition)


def space_of(given: Any, integrality: Any = None, where: Any = None) -> Space:
    """The space that bounds or a dict describe. ``where`` has constraints that all points satisfy.

    >>> from racecars.space import Integer, space_of
    >>> space_of([(-5, 5), (0, 1)]).dimension
    2
    >>> space_of({"lr": (1e-5, 1e-1, "log"), "depth": range(1, 9), "act": ["relu", "tanh"]}).names
    ['lr', 'depth', 'act']
    >>> space_of({"width": Integer(8, 512, log=True), "bias": bool}).names
    ['width', 'bias']
    >>> space_of([(0, 1), (3, 1)])
    Traceback (most recent call last):
    ...
    ValueError: bounds[1]: low 3.0 is above high 1.0
    """
    constraints, functions = _constraints(where)
    if isinstance(given, Space):
        if constraints or functions:
            raise ValueError("`where` goes with bounds or a dict; the space has its constraints")
        return given
    if isinstance(given, Mapping):
        if integrality is not None:
            text = "`integrality` goes with bounds; in a dict, a range or Integer is integer"
            raise ValueError(text)
        if not given:
            raise ValueError("the space is an empty dict; it needs at least one name")
        _warn_of_integers(given)
        conditional = {name: part for name, part in given.items() if isinstance(part, When)}
        conditions = [(name, part.condition) for name, part in conditional.items()]
        plain = {
            name: getattr(conditional.get(name), "given", part) for name, part in given.items()
        }
        entries = [_entry(name, part) for name, part in plain.items()]
        space = Space(entries, True, conditions, constraints, functions)
    else:
        space = _from_bounds(given, integrality, constraints, functions)
    if space.narrow_note is not None:
        from racecars._run import warn

        warn(f"where: {space.narrow_note}", UserWarning)
    return space


Function = tuple[str, Callable[..., Any]]


def _constraints(where: Any) -> tuple[list[str], list[Function]]:
    """The constraints that are texts, and those that are functions, with distinct names."""
    given = [where] if isinstance(where, str) or callable(where) else list(where or ())
    texts, functions = [], dict[str, Callable[..., Any]]()
    for one in given:
        if isinstance(one, str):
            texts.append(one)
        elif callable(one):
            name = str(getattr(one, "__name__", type(one).__name__))
            same = sum(other == name or other.startswith(f"{name} (") for other in functions)
            functions[name if same == 0 else f"{name} ({same + 1})"] = one
        else:
            raise TypeError(
                f"where: {_short(one)} is neither a text such as 'a < b' nor a function that takes "
                "a point and returns True or False"
            )
    return texts, list(functions.items())


def _warn_of_integers(given: Mapping[Any, Any]) -> None:
    """Warns of pairs of integers, which look like integers and are floats: but for ``(0, 1)`` and
    pairs that begin below 0."""
    pairs = {
        name: pair
        for name, pair in given.items()
        if isinstance(pair, tuple)
        and len(pair) == 2
        and all(isinstance(end, numbers.Integral) for end in pair)
        and not any(isinstance(end, (bool, np.bool_)) for end in pair)
        and 0 <= pair[0] < pair[1]
        and pair != (0, 1)
    }
    if not pairs:
        return
    from racecars._run import warn

    name, (low, high) = next(iter(pairs.items()))
    names = ", ".join(f"`{name}`" for name in pairs)
    what = "is a pair of integers, which means" if len(pairs) == 1 else "are pairs of integers:"
    warn(
        f"{names} {what} every float in between. For integers write {name!r}: "
        f"range({low}, {high + 1}) or racecars.Integer({low}, {high}); for floats "
        f"({float(low)}, {float(high)})",
        UserWarning,
    )


def _from_bounds(
    given: Any, integrality: Any, constraints: list[str], functions: list[Function]
) -> Space:
    low, high = _ends(given)
    whole = _integrality(integrality, len(low))
    for end, values in (("low", low), ("high", high)):
        for i in np.flatnonzero(~np.isfinite(values)):
            raise ValueError(f"bounds[{i}]: {end} is {values[i]}, not a finite number")
    for i in np.flatnonzero(low > high):
        raise ValueError(f"bounds[{i}]: low {low[i]} is above high {high[i]}")
    # Equal neighbours make one entry.
    edges = np.flatnonzero((np.diff(low) != 0) | (np.diff(high) != 0) | np.diff(whole))
    starts = [0, *(int(edge) + 1 for edge in edges)]
    entries = []
    # Constraints name coordinates as x[0], x[1], ...
    places = {
        index: f"x{start}[{index - start}]"
        for start, stop in zip(starts, [*starts[1:], len(low)])
        for index in (range(start, stop) if constraints else ())
    }
    if len(starts) > 1:
        constraints = [
            re.sub(r"\bx\[(\d+)\]", lambda found: places.get(int(found[1]), found[0]), text)
            for text in constraints
        ]
    for start, stop in zip(starts, [*starts[1:], len(low)]):
        name = "x" if len(starts) == 1 else f"x{start}"
        a, b = float(low[start]), float(high[start])
        entries.append(_coordinate(name, stop - start, a, b, bool(whole[start]), start))
    return Space(entries, False, [], constraints, functions)


def _coordinate(name: str, count: int, low: float, high: float, whole: bool, index: int) -> Any:
    if whole:
        least, most = int(np.ceil(low)), int(np.floor(high))
        if least > most:
            raise ValueError(f"bounds[{index}]: no integer lies between {low} and {high}")
        return (name, count, "integer", [least, most], False, [], [])
    if low == high:  # fixed, which SciPy allows
        return (name, count, "levels", [], False, [low], [low])
    return (name, count, "real", [low, high], False, [], [])


def _ends(given: Any) -> tuple[Any, Any]:
    if hasattr(given, "lb") and hasattr(given, "ub"):
        low, high = np.broadcast_arrays(np.atleast_1d(given.lb), np.atleast_1d(given.ub))
        return low.astype(float), high.astype(float)
    try:
        pairs = np.array([(a, b) for a, b in given], dtype=float)
    except (TypeError, ValueError):
        text = "bounds must be pairs (low, high), a scipy.optimize.Bounds, or a dict by name"
        raise ValueError(f"{text}; got {_short(given)}") from None
    if len(pairs) == 0:
        raise ValueError("bounds are empty; at least one pair (low, high) is needed")
    return pairs[:, 0], pairs[:, 1]


def _integrality(given: Any, dimension: int) -> Any:
    if given is None:
        return np.zeros(dimension, dtype=bool)
    try:
        return np.broadcast_to(np.asarray(given, dtype=bool), (dimension,))
    except ValueError:
        shape = np.shape(given)
        text = f"integrality has shape {shape}; it takes one flag or {dimension}"
        raise ValueError(text) from None


def _entry(name: object, given: Any) -> tuple[Any, ...]:
    """The coordinate or array that one entry of a dict describes."""
    if not isinstance(name, str):
        raise TypeError(f"the name {name!r} is not a string")
    if isinstance(given, range):
        if len(given) == 0:
            raise ValueError(f"coordinate `{name}`: {given} is empty")
        low, high = sorted((given[0], given[-1]))
        return _integers(name, Integer(low, high, step=abs(given.step)))
    if isinstance(given, tuple) and len(given) in (2, 3) and _are_numbers(given[:2]):
        return _reals(name, _pair(name, given))
    if isinstance(given, Real):
        return _reals(name, given)
    if isinstance(given, Integer):
        return _integers(name, given)
    if given is bool:
        return (name, None, "boolean", [], False, [], [])
    if isinstance(given, Choice):
        return _choices(name, given)
    if isinstance(given, Permutation):
        items = given.items
        values = list(range(items)) if isinstance(items, int) else list(items)
        return (name, len(values), "permutation", [], False, [_label(v) for v in values], values)
    if isinstance(given, Subset):
        values = list(given.items)
        least, most = (given.size,) * 2 if isinstance(given.size, int) else given.size
        labels = [_label(value) for value in values]
        return (name, len(values), "subset", [least, most], False, labels, values)
    if isinstance(given, Simplex):
        return (name, given.count, "simplex", [], False, [], [])
    if isinstance(given, (list, tuple, np.ndarray)):
        return _choices(name, Choice(list(given)))
    raise ValueError(
        f"coordinate `{name}`: {_short(given)} is not a pair (low, high), (low, high, 'log'), a "
        "range, a list of choices, bool, Real, Integer, Choice, Permutation, Subset, Simplex or "
        "when"
    )


def _pair(name: str, given: tuple[Any, ...]) -> Real:
    scale = given[2] if len(given) == 3 else "linear"
    if scale not in ("linear", "log"):
        raise ValueError(f"coordinate `{name}`: scale {scale!r} is not one of 'linear', 'log'")
    return Real(float(given[0]), float(given[1]), log=scale == "log")


def _reals(name: str, real: Real) -> tuple[Any, ...]:
    ends = [float(real.low), float(real.high)]
    if real.step is not None:
        if real.log:
            raise ValueError(f"coordinate `{name}`: a step and a log scale exclude each other")
        if ends[0] == ends[1]:
            return (name, real.count, "levels", [], False, ends[:1], ends[:1])
        return (name, real.count, "grid", [*ends, float(real.step)], False, [], [])
    if ends[0] == ends[1] and np.isfinite(ends[0]):
        return (name, real.count, "levels", [], False, ends[:1], ends[:1])
    return (name, real.count, "real", ends, bool(real.log), [], [])


def _integers(name: str, integer: Integer) -> tuple[Any, ...]:
    if integer.step == 1:
        ends = [integer.low, integer.high]
        return (name, integer.count, "integer", ends, bool(integer.log), [], [])
    if integer.log or integer.step < 1:
        what = "a step and a log scale exclude each other"
        what = what if integer.log else f"step {integer.step} is not positive"
        raise ValueError(f"coordinate `{name}`: {what}")
    steps = range(int(integer.low), int(integer.high) + 1, int(integer.step))
    return _choices(name, Choice(list(steps), ordered=True, count=integer.count))


def _choices(name: str, choice: Choice) -> tuple[Any, ...]:
    values = list(choice.values)
    if not values:
        raise ValueError(f"coordinate `{name}`: the list of choices is empty")
    kind = "levels" if choice.ordered else "categorical"
    return (name, choice.count, kind, [], False, [_label(value) for value in values], values)


def _label(value: Any) -> Any:
    """The value that the core has for a choice: itself, or a name where it is no plain value."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, numbers.Integral) and -(2**63) <= int(value) < 2**63:
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, str):
        return value
    named = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{named}" if named and "<" not in named else repr(value)


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(v, numbers.Real) and not isinstance(v, bool) for v in values)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
