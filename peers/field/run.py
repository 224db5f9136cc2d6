"""What the other optimizers are given, and what is known of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from peers.objective import Objective
from peers.problems import HIGH, LOW, Vector

# The initial step size of CMA-ES and of local searches, relative to the domain's width.
SIGMA = 0.2


@dataclass(frozen=True)
class Run:
    """The domain and the seed. The first `integers` coordinates are integers.

    Methods that need a start begin at the centre of the domain if `is_central`, else at random.
    """

    low: Vector
    high: Vector
    seed: int
    integers: int = 0
    is_central: bool = False

    @classmethod
    def cube(cls, dim: int, seed: int) -> Run:
        """A run on [-10, 10]^n."""
        return cls(np.full(dim, LOW), np.full(dim, HIGH), seed)

    @property
    def dim(self) -> int:
        return len(self.low)

    @property
    def is_integer(self) -> list[bool]:
        return [i < self.integers for i in range(self.dim)]

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return list(zip(self.low.tolist(), self.high.tolist(), strict=True))

    def start(self) -> Vector:
        return self.rounded(next(self.starts()))

    def starts(self) -> Iterator[Vector]:
        """The first start and those of restarts, which are random."""
        random = np.random.default_rng(self.seed)
        if self.is_central:
            yield (self.low + self.high) / 2
        while True:
            yield random.uniform(self.low, self.high)

    def relaxed(self) -> Run:
        """The domain with real coordinates and equal intervals for integers: see `rounded`."""
        margin = np.where(self.is_integer, 0.5, 0.0)
        return replace(self, low=self.low - margin, high=self.high + margin, integers=0)

    def rounded(self, x: Any) -> Vector:
        """A point of the relaxed domain with its integers rounded."""
        point = np.array(x, dtype=float)
        k = self.integers
        point[:k] = np.clip(np.round(point[:k]), self.low[:k], self.high[:k])
        return point


@dataclass(frozen=True)
class Peer:
    """Another optimizer, its package, and the most similar of our algorithms.

    A run of an anytime method does not depend on the budget: its first evaluations are those of a
    run with a smaller budget.
    """

    name: str
    package: str
    run: Callable[[Run, Objective], None]
    counterpart: str
    about: str
    is_slow: bool = False
    is_anytime: bool = False
    cost_us: float = 50.0
    """A rough estimate of its time per evaluation at n = 20."""
    most: int | None = None
    most_dim: int | None = None

    def refuses(self, dim: int, budget: int) -> str | None:
        """Why it is not run in this dimension with this budget; `None` if it is run."""
        if self.most is not None and budget > self.most:
            return f"left out, because it is too slow for more than {self.most} evaluations"
        if self.most_dim is not None and dim > self.most_dim:
            return f"left out, because it is too slow for more than {self.most_dim} coordinates"
        return None
