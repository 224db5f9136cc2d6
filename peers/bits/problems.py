"""Problems with bits and categories: IOHprofiler's PBO suite, NK landscapes, MaxSAT, a knapsack
with several constraints, and quadratic assignment.

Every instance has its own data or, in PBO, its own transformation of the values and coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[[Any], float]
PBO = [f"F{i}" for i in range(1, 26)]
# Every second function is for choosing settings, the others for reporting.
HALVES = {
    "choose": [*PBO[::2], "maxsat", "assignment"],
    "report": [*PBO[1::2], "nk", "knapsack"],
}


@dataclass(frozen=True)
class Problem:
    """A function of `count` coordinates that take the values 0 to `values` - 1."""

    name: str
    instance: int
    dim: int

    @property
    def count(self) -> int:
        return math.isqrt(self.dim) if self.name == "assignment" else self.dim

    @property
    def values(self) -> int:
        return self.count if self.name == "assignment" else 2

    def function(self) -> Function:
        if self.name in PBO:
            return pbo(int(self.name[1:]), self.instance, self.dim)
        random = np.random.default_rng([self.instance, self.dim])
        return FUNCTIONS[self.name](random, self.count)


def pbo(number: int, instance: int, dim: int) -> Function:
    import ioh

    kind = ioh.ProblemClass.PBO
    problem = ioh.get_problem(number, instance=instance, dimension=dim, problem_class=kind)
    return lambda x: -float(problem([int(bit) for bit in x]))


def nk(random: np.random.Generator, n: int, k: int = 4) -> Function:
    """Each bit contributes a number that depends on it and on k others."""
    others = [random.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)]
    neighbours = np.column_stack([np.arange(n), np.array(others)])
    table, powers = random.random((n, 2 ** (k + 1))), 2 ** np.arange(k + 1)

    def function(x: Any) -> float:
        indices = (np.asarray(x, dtype=int)[neighbours] * powers).sum(axis=1)
        return -float(table[np.arange(n), indices].mean())

    return function


def maxsat(random: np.random.Generator, n: int, ratio: float = 4.2) -> Function:
    """The clauses of three literals that are not satisfied."""
    clauses = int(ratio * n)
    variables = np.array([random.choice(n, 3, replace=False) for _ in range(clauses)])
    signs = random.integers(0, 2, (clauses, 3))

    def function(x: Any) -> float:
        return float((np.asarray(x, dtype=int)[variables] != signs).all(axis=1).sum())

    return function


def knapsack(random: np.random.Generator, n: int, constraints: int = 5) -> Function:
    """Profits that go with weights; what is over a capacity costs twice as much."""
    weights = random.integers(1, 1000, (constraints, n))
    capacities = weights.sum(axis=1) // 2
    profits = weights.mean(axis=0) + 500 * random.random(n)

    def function(x: Any) -> float:
        chosen = np.asarray(x, dtype=int)
        excess = np.maximum(0, weights @ chosen - capacities).sum()
        return float(2 * excess - profits @ chosen)

    return function


def assignment(random: np.random.Generator, n: int) -> Function:
    """Flows times distances; a place that is taken again has a price."""
    flows, distances = random.integers(0, 100, (2, n, n))

    def function(x: Any) -> float:
        places = np.asarray(x, dtype=int)
        repeated = n - len(np.unique(places))
        return float((flows * distances[np.ix_(places, places)]).mean() + 500 * repeated)

    return function


FUNCTIONS = {"nk": nk, "maxsat": maxsat, "knapsack": knapsack, "assignment": assignment}
