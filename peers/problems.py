"""Our test problems in NumPy: the same functions, shifted and rotated by the same numbers.

The numbers come from `racecars problem NAME --json`, and `load` checks the values against ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from peers.binary import Binary

Vector = NDArray[np.float64]
LOW, HIGH = -10.0, 10.0
# The tolerance of values relative to ours; the ellipsoid's weights go up to a million.
TOLERANCE = 1e-9
CHECKED_POINTS = 5


def ackley(x: Vector) -> float:
    square = np.mean((x - 0.2) ** 2)
    ripple = np.mean(np.sin(np.pi * (x - 0.2)) ** 2)
    return float(-20 * np.expm1(-0.2 * np.sqrt(square)) - np.e * np.expm1(-2 * ripple))


def levy(x: Vector) -> float:
    v = (x - 1) / 4
    middle = np.sum(v[:-1] ** 2 * (1 + 10 * np.sin(np.pi * v[:-1] + 1) ** 2))
    last = v[-1] ** 2 * (1 + np.sin(2 * np.pi * v[-1]) ** 2)
    return float(np.sin(np.pi * v[0]) ** 2 + middle + last)


def rastrigin(x: Vector) -> float:
    return float(np.sum(x**2 + 20 * np.sin(np.pi * x) ** 2))


def sphere(x: Vector) -> float:
    return float(np.sum((x - 0.2) ** 2))


def rosenbrock(x: Vector) -> float:
    if len(x) == 1:
        return float((1 - x[0]) ** 2)
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def griewank(x: Vector) -> float:
    counts = np.arange(1, len(x) + 1)
    return float(1 + np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(counts))))


def schwefel(x: Vector) -> float:
    """Scaled to a smaller box; outside of it, the value at the edge plus a penalty."""
    inside = np.clip(x, LOW, HIGH)
    z = 50 * inside
    terms = 418.9828872724337 - z * np.sin(np.sqrt(np.abs(z)))
    return float(np.sum(terms) + np.sum((x - inside) ** 2))


def ellipsoid(x: Vector) -> float:
    return float(np.sum(np.logspace(0, 6, len(x)) * x**2))


FUNCTIONS: dict[str, Callable[[Vector], float]] = {
    function.__name__: function
    for function in (ackley, levy, rastrigin, sphere, rosenbrock, griewank, schwefel, ellipsoid)
}


@dataclass(frozen=True)
class Problem:
    """A function on [-10, 10]^n: g(center + R (x - minimizer))."""

    name: str
    dim: int
    function: str
    center: float
    minimizer: Vector
    rotation: Vector | None

    def __call__(self, x: Vector) -> float:
        offset = x - self.minimizer
        if self.rotation is not None:
            offset = self.rotation @ offset
        return FUNCTIONS[self.function](self.center + offset)


def load(binary: Binary, name: str, dim: int, seed: int) -> Problem:
    """The problem of this name and seed, checked against ours at random points."""
    given = binary.describe(name, dim, seed)
    made = given["transformation"]
    if made is None or made["jumps"]:
        raise ValueError(f"{name}: only continuous problems without jumps are known in Python")
    problem = Problem(
        name,
        dim,
        made["function"],
        made["center"],
        np.array(given["minimizer"]),
        None if made["rotation"] is None else np.array(made["rotation"]),
    )
    check(binary, problem, seed)
    return problem


def check(binary: Binary, problem: Problem, seed: int) -> None:
    """Raises `ValueError` if our values and these differ."""
    random = np.random.default_rng(seed)
    points = random.uniform(LOW, HIGH, (CHECKED_POINTS, problem.dim))
    close = problem.minimizer + 0.01 * random.standard_normal(problem.dim)
    points = np.vstack([points, np.clip(close, LOW, HIGH)])
    ours = binary.values(problem.name, problem.dim, seed, points.tolist())
    for point, expected in zip(points, ours, strict=True):
        value = problem(point)
        if abs(value - expected) > TOLERANCE * (1 + abs(expected)):
            raise ValueError(f"{problem.name}: {value} in Python, {expected} in racecars")
