"""COCO's suites: the problems that are run, how they are opened, and their optimal values.

N. Hansen et al., "COCO: a platform for comparing continuous optimizers in a black-box setting",
2021.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peers.field.optimizers import Run
from peers.problems import Vector

# The target precisions: f - f_opt from 100 down to 1e-8.
TARGETS: list[float] = (10 ** np.linspace(2, -8, 51)).tolist()
FUNCTIONS = 24


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
        cocoex = quiet_coco()
        options = f"dimensions: {self.dim} function_indices: {self.function}"
        suite = cocoex.Suite(self.suite, f"instances: {self.instance}", options)
        problem = suite.next_problem()
        try:
            yield problem
        finally:
            problem.free()

    def optimum(self) -> float:
        """The optimal value, which COCO reveals only in the files of an observer."""
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


class Watched:
    """A problem's function that records after how many evaluations each target was hit."""

    def __init__(self, problem: Any, optimum: float) -> None:
        self.problem, self.optimum = problem, optimum
        self.evaluations = 0
        self.hits: list[int] = []

    def __call__(self, x: Vector) -> float:
        value = float(self.problem(x))
        self.evaluations += 1
        reached = value - self.optimum
        while len(self.hits) < len(TARGETS) and reached <= TARGETS[len(self.hits)]:
            self.hits.append(self.evaluations)
        return value


def run_of(problem: Any, seed: int) -> Run:
    """The domain of an opened problem; COCO has the integers first."""
    low, high = np.array(problem.lower_bounds), np.array(problem.upper_bounds)
    return Run(low, high, seed, problem.number_of_integer_variables)
