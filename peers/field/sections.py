"""The sections of the comparison: problems, dimensions, budgets and seeds."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

PROBLEMS = (
    "ackley",
    "levy",
    "rastrigin",
    "sphere",
    "rosenbrock",
    "ellipsoid",
    "shifted-ackley",
    "shifted-rastrigin",
    "shifted-rotated-ackley",
    "shifted-rotated-rastrigin",
)
OURS = ("auto", "race-cars", "sracos", "de", "l-shade", "zo-adam", "cma-es", "sep-cma-es")
THEIRS = (
    "zoopt",
    "pycma",
    "scipy-de",
    "scipy-da",
    "ngopt",
    "optuna-cma",
    "optuna-tpe",
    "numpy-random",
)

# Slow peers get only one seed if the budget is above this.
SMALL_BUDGET = 1000


@dataclass(frozen=True)
class Section:
    """One table: every method on these problems, in one dimension with one budget."""

    title: str
    problems: tuple[str, ...]
    dim: int
    budget: str
    seeds: int
    jobs: int
    seconds: float
    """The processor time limit of a peer's trial."""

    @property
    def evaluations(self) -> int:
        """The budget as a number; `100n` means 100 for each dimension."""
        if self.budget.endswith("n"):
            return max(1, round(float(self.budget[:-1]) * self.dim))
        return int(float(self.budget))

    def seeds_of(self, is_slow: bool) -> int:
        return 1 if is_slow and self.evaluations > SMALL_BUDGET else self.seeds


def default(jobs: int) -> list[Section]:
    overhead = ("ackley", "sphere", "shifted-rotated-rastrigin")
    return [
        Section("Many evaluations", PROBLEMS, 50, "100n", 5, jobs, 120),
        Section("Few evaluations", PROBLEMS, 20, "300", 5, jobs, 120),
        Section("Many coordinates", overhead, 500, "20n", 2, 1, 60),
    ]


def quick(jobs: int) -> list[Section]:
    few = ("ackley", "rosenbrock", "shifted-rotated-rastrigin")
    return [
        Section("Few coordinates", few, 10, "50n", 2, jobs, 20),
        Section("Many coordinates", ("ackley",), 500, "10n", 1, 1, 10),
    ]


def chosen(options: argparse.Namespace) -> list[Section]:
    """The sections that the options select."""
    if options.dims or options.budget:
        todo = own(options)
    else:
        todo = quick(options.jobs) if options.quick else default(options.jobs)
    if options.problems:
        todo = [replace(section, problems=tuple(options.problems.split(","))) for section in todo]
    if options.seeds:
        todo = [replace(section, seeds=options.seeds) for section in todo]
    if options.seconds:
        todo = [replace(section, seconds=options.seconds) for section in todo]
    return todo


def own(options: argparse.Namespace) -> list[Section]:
    """A section for each given dimension."""
    dims = [int(dim) for dim in (options.dims or "50").split(",")]
    budget = options.budget or "100n"
    return [Section("Comparison", PROBLEMS, dim, budget, 5, options.jobs, 120) for dim in dims]
