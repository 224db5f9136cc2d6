"""Random embeddings: a search in many coordinates as one in few."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racecars import _core
from racecars.optimizer import seed_of
from racecars.space import space_of

__all__ = ["Embedding"]


class Embedding(_core.Embedding):
    """A random subspace of ``dim`` dimensions through the middle of ``space``, which has only
    continuous coordinates. Where few directions matter, it holds points as good as the best.

    >>> import racecars
    >>> def fun(x):  # of ten thousand coordinates two matter
    ...     return (x[7] - 1) ** 2 + (x[77] + 2) ** 2
    >>> many = [(-5, 5)] * 10_000
    >>> few = racecars.Embedding(many, 6, rng=1)
    >>> res = racecars.minimize(few.wrap(fun), few.bounds, maxfev=1000, rng=1)
    >>> bool(res.fun < 0.1), few.lift(res.x).shape
    (True, (10000,))

    The coordinates ``y`` are from -1 to 1. ``A @ y``, with a standard normal ``A``, is the point as
    shares of half the width of each coordinate, cut off at 1.

    With ``through``, a point of ``space``, its multiples are in the subspace, too: ``y`` then has
    one more coordinate, the first, and the point is at (1, 0, ..., 0).

    To search one random subspace after the other, each through the best point so far (sequential
    random embedding), use the method ``"embedding"``:

    >>> res = racecars.minimize(
    ...     fun, many, method="embedding", dimension=6, rounds=3, maxfev=900, rng=1)
    >>> bool(res.fun < 0.1)
    True
    """

    _made_of: tuple[Any, ...]

    def __new__(cls, space: Any, dim: int, *, rng: Any = None, through: Any = None) -> Embedding:
        core = space_of(space)
        if through is not None:
            through = core.x(through) if core.is_by_name else np.asarray(through, dtype=float)
        seed = seed_of(rng)
        self = super().__new__(cls, core, dim, seed, through)
        self._made_of = (space, dim, seed, through)
        return self

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The space of few coordinates, for :func:`racecars.minimize`."""
        return [(-1.0, 1.0)] * self.dimension

    def lift(self, y: Any) -> NDArray[np.float64]:
        """The point of ``space`` that ``y`` stands for."""
        return super().lift(np.ascontiguousarray(y, dtype=float))

    def params(self, y: Any) -> dict[str, Any]:
        """The parameters that ``y`` stands for, where ``space`` is a dict."""
        return self.space.params(self.lift(y))

    def wrap(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """A function on ``space`` as one of few coordinates; it can be pickled if ``fun`` can."""
        return functools.partial(_call, self, fun)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (type(self), *self._made_of)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.space.dimension} dimensions in {self.dimension}>"


def _call(embedding: Embedding, fun: Callable[..., Any], y: Any, *args: Any) -> Any:
    point = embedding.params(y) if embedding.space.is_by_name else embedding.lift(y)
    return fun(point, *args)


def _make(cls: type[Embedding], space: Any, dim: int, seed: int, through: Any) -> Embedding:
    core = space_of(space)
    if through is not None and core.is_by_name:
        through = core.params(through)
    return cls(space, dim, rng=seed, through=through)
