"""COCO's suites: the problems that are run, how they are opened, and their optimal values; and our
own functions in the same form.

N. Hansen et al., "COCO: a platform for comparing continuous optimizers in a black-box setting",
2021.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peers import problems
from peers.field.run import Run
from peers.problems import Vector

# The target precisions: f - f_opt from 100 down to 1e-8.
TARGETS: list[float] = (10 ** np.linspace(2, -8, 51)).tolist()
FUNCTIONS = 24
# A suite of our own functions, with the coordinates of their minima before they are shifted.
OWN = "own"
OWN_CENTERS = {
    "ackley": 0.2,
    "levy": 1.0,
    "rastrigin": 0.0,
    "sphere": 0.2,
    "rosenbrock": 1.0,
    "griewank": 0.0,
    "schwefel": 420.96874635998203 / 50,
    "ellipsoid": 0.0,
}
# The functions of bbob on a grid: all coordinates are integers, and count STEP each.
GRID = "bbob-grid"
STEP = 0.05
# The numbers of evaluations after which the best value is recorded.
MARKS = {mantissa * 10**power: None for power in range(1, 7) for mantissa in (1, 2, 3, 5)}


@dataclass(frozen=True)
class Suite:
    """A suite with the default dimensions, and those that `--full` adds."""

    name: str
    dims: tuple[int, ...]
    all_dims: tuple[int, ...]
    about: str


SUITES = {
    suite.name: suite
    for suite in (
        Suite("bbob", (10, 40), (10, 20, 40), "24 continuous functions"),
        Suite("bbob-largescale", (80, 320), (80, 160, 320, 640), "the same in many dimensions"),
        Suite(
            "bbob-mixint", (20, 80), (10, 20, 40, 80, 160), "the same, four fifths of x integers"
        ),
    )
}


def quiet_coco() -> Any:
    """The package, without its messages."""
    import cocoex

    cocoex.log_level("warning")
    return cocoex


@dataclass(frozen=True)
class Problem:
    """The identity of a problem of COCO."""

    suite: str
    function: int
    dim: int
    instance: int

    @contextlib.contextmanager
    def opened(self) -> Iterator[Any]:
        if self.suite == OWN:
            yield OwnProblem(self)
            return
        cocoex = quiet_coco()
        options = f"dimensions: {self.dim} function_indices: {self.function}"
        name = "bbob" if self.suite == GRID else self.suite
        suite = cocoex.Suite(name, f"instances: {self.instance}", options)
        problem = suite.next_problem()
        try:
            yield GridProblem(problem) if self.suite == GRID else problem
        finally:
            problem.free()

    @functools.cache  # noqa: B019
    def optimum(self) -> float:
        """The optimal value, which COCO reveals only in the files of an observer."""
        if self.suite == OWN:
            return 0.0
        if self.suite == GRID:
            return Problem("bbob", self.function, self.dim, self.instance).optimum()
        cocoex = quiet_coco()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            observer = cocoex.Observer("bbob", "result_folder: optimum")
            with self.opened() as problem:
                problem.observe_with(observer)
                problem(problem.initial_solution)
            texts = [path.read_text() for path in Path(folder).rglob("*.dat")]
        found = [match for text in texts for match in re.findall(r"Fopt \(([^)]*)\)", text)]
        if len(found) != 1:
            raise ValueError(f"{self}: COCO wrote {len(found)} optima instead of one")
        return float(found[0])


class GridProblem:
    """A function of bbob at integers times `STEP`."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self.lower_bounds = np.asarray(problem.lower_bounds) / STEP
        self.upper_bounds = np.asarray(problem.upper_bounds) / STEP
        self.number_of_integer_variables = len(self.lower_bounds)

    def __call__(self, x: Vector) -> float:
        return float(self.problem(np.asarray(x) * STEP))


class OwnProblem:
    """One of our functions with its optimum at a random place; every second one is rotated."""

    number_of_integer_variables = 0

    def __init__(self, identity: Problem) -> None:
        name = list(OWN_CENTERS)[identity.function - 1]
        dim = identity.dim
        random = np.random.default_rng([identity.function, dim, identity.instance])
        minimizer = random.uniform(0.8 * problems.LOW, 0.8 * problems.HIGH, dim)
        rotation = np.linalg.qr(random.standard_normal((dim, dim)))[0]
        is_rotated = identity.function % 2 == 0
        self.lower_bounds = np.full(dim, problems.LOW)
        self.upper_bounds = np.full(dim, problems.HIGH)
        self.function = problems.Problem(
            name, dim, name, OWN_CENTERS[name], minimizer, rotation if is_rotated else None
        )

    def __call__(self, x: Vector) -> float:
        return self.function(x)


class Watched:
    """A problem's function that records after how many evaluations each target was hit, and the
    best regret after each number of evaluations in `MARKS`."""

    def __init__(self, problem: Any, optimum: float) -> None:
        self.problem, self.optimum = problem, optimum
        self.evaluations = 0
        self.best = math.inf
        self.hits: list[int] = []
        self.bests: list[float] = []

    def __call__(self, x: Vector) -> float:
        value = float(self.problem(x))
        self.evaluations += 1
        reached = value - self.optimum
        if reached < self.best:
            self.best = reached
            while len(self.hits) < len(TARGETS) and reached <= TARGETS[len(self.hits)]:
                self.hits.append(self.evaluations)
        if self.evaluations in MARKS:
            self.bests.append(self.best)
        return value


def run_of(problem: Any, seed: int, is_central: bool) -> Run:
    """The domain of an opened problem; COCO has the integers first."""
    low, high = np.array(problem.lower_bounds), np.array(problem.upper_bounds)
    return Run(low, high, seed, problem.number_of_integer_variables, is_central)
