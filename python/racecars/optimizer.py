"""Ask and tell."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from racecars import _core
from racecars._files import write_atomically
from racecars.space import Where, space_of

__all__ = ["Best", "Optimizer", "seed_of"]


def seed_of(rng: Any) -> int:
    """A seed from what SPEC 7 calls ``rng``: an integer is the seed itself, ``None`` takes one from
    the system, and a generator or seed sequence is drawn from.

    >>> seed_of(7)
    7
    """
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        if not 0 <= int(rng) < 2**64:
            raise ValueError(f"rng is {rng}; as a seed it must be from 0 to 2**64 - 1")
        return int(rng)
    if isinstance(rng, np.random.RandomState):
        return int(rng.randint(0, 2**63, dtype=np.int64))
    return int(np.random.default_rng(rng).integers(0, 2**63))


class Best(NamedTuple):
    """The best evaluation told.

    ``fun`` is infinite while only infeasible points are known. It is the mean of ``evaluations``
    values, of 1 unless the function is known to be noisy.
    """

    x: NDArray[np.float64]
    fun: float
    params: dict[str, Any]
    violation: float
    evaluations: int


class Optimizer(_core.Optimizer):
    """An optimizer to drive yourself: :meth:`ask` for a point, evaluate it, :meth:`tell` the value.

    ``space`` is a sequence of bounds, a ``scipy.optimize.Bounds``, or a dict by name, see
    :func:`racecars.minimize`; ``method`` one of ``racecars.METHODS``, by default ``"auto"``;
    ``budget`` the number of evaluations planned, if known; ``rng`` a seed or a generator (SPEC 7);
    ``options`` the settings of the method, see :func:`racecars.settings`. Settings without a method
    that ``"auto"`` does not have are those of ``"race-cars"``.

    >>> import racecars
    >>> optimizer = racecars.Optimizer([(-5, 5)] * 3, budget=300, rng=1)
    >>> for _ in range(300):
    ...     candidate = optimizer.ask()
    ...     optimizer.tell(candidate, float((candidate.x**2).sum()))
    >>> optimizer.best.fun < 0.1
    True

    Any number of points may be out at a time, told in any order, late, or never. ``ask(n)`` gives
    the rows of an array, and ``tell`` takes such rows back, in any order; rows that were not asked
    are points known from elsewhere.

    >>> X = optimizer.ask(4)
    >>> X.shape
    (4, 3)
    >>> optimizer.tell(X, (X**2).sum(axis=1))

    A list of candidates, arrays or dicts takes a list of values:

    >>> points = [optimizer.ask() for _ in range(3)]
    >>> optimizer.tell(points, [float((point.x**2).sum()) for point in points])
    >>> optimizer.tell(np.zeros(3), 0.0)
    >>> optimizer.best.fun
    0.0

    Failed evaluations and violated constraints (by how much) are told, too:

    >>> optimizer.tell(optimizer.ask(), error="the simulator crashed")
    >>> optimizer.tell(optimizer.ask(), violation=0.3)

    Constraints that evaluations measure, each at most 0 where it is met, are told of feasible
    points as well:

    >>> optimizer.tell(optimizer.ask(), 1.5, constraints=[-0.5, 2.0])

    The methods may be called from several threads.
    """

    def __new__(
        cls,
        space: Any,
        method: str | None = None,
        *,
        budget: int | None = None,
        rng: Any = None,
        integrality: Any = None,
        where: Where | None = None,
        **options: Any,
    ) -> Optimizer:
        core = space_of(space, integrality, where)
        return super().__new__(cls, core, method, budget, seed_of(rng), options)

    @property
    def best(self) -> Best | None:
        """The best evaluation told, ``None`` while all have failed."""
        found = self._best()
        if found is None:
            return None
        x, value, violation, evaluations = found
        fun = np.inf if value is None else value
        return Best(x, float(fun), self.space.params(x), violation or 0.0, evaluations)

    @property
    def portfolio(self) -> dict[str, Any] | None:
        """Where the method is a portfolio: what was decided and why, and what each member did.

        >>> import racecars
        >>> optimizer = racecars.Optimizer([(-5, 5)] * 10, budget=1000, rng=1)
        >>> for _ in range(1000):
        ...     candidate = optimizer.ask()
        ...     optimizer.tell(candidate, float((candidate.x**2).sum()))
        >>> [member["name"] for member in optimizer.portfolio["members"]]
        ['survey', 'race-cars', 'polish', 'sep-cma-es', 'quadratic']
        >>> optimizer.portfolio["decisions"][0]["what"][:29]
        'coordinates do not interact ('
        """
        text = self._portfolio()
        return None if text is None else dict(json.loads(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole state, random generator included, to a file.

        The new file replaces the old one by a rename, so that a crash leaves one of them whole.
        """
        write_atomically(Path(path), self.to_bytes())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], space: Any = None, where: Where | None = None
    ) -> Optimizer:
        """The optimizer that was saved to a file; it continues exactly as that one would have.

        Choices that are neither numbers nor strings come back as such only with ``space``.
        Functions of ``where`` are not saved: give ``space`` and ``where`` again.
        """
        return cls.from_bytes(Path(path).read_bytes(), space, where)

    @classmethod
    def from_bytes(cls, saved: bytes, space: Any = None, where: Where | None = None) -> Optimizer:
        """The optimizer that :meth:`to_bytes` gave these bytes for.

        >>> import racecars
        >>> one = racecars.Optimizer({"x": (0, 1), "n": range(5)}, rng=1)
        >>> two = racecars.Optimizer.from_bytes(one.to_bytes())
        >>> one.ask().params == two.ask().params
        True
        """
        core = None if space is None else space_of(space, None, where)
        return _core.Optimizer.__new__(cls, core, None, None, 0, {}, saved)

    def __reduce__(self) -> tuple[Any, ...]:
        space = self.space if self.space.functions else None
        return type(self).from_bytes, (self.to_bytes(), space)

    def __repr__(self) -> str:
        name, n = type(self).__name__, self.space.dimension
        best = self._best()
        value = "" if best is None or best[1] is None else f", best {best[1]:.6g}"
        return f"<{name} {self.method} in {n} dimensions, {self.told} told{value}>"
