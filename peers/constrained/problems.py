"""The problems: COCO's bbob-constrained and those of CEC 2006, in one form."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from peers.coco.suites import Problem as CocoProblem
from peers.constrained.cec2006 import PROBLEMS

BBOB = "bbob-constrained"
CEC = "cec2006"
FUNCTIONS = 54
# The target precisions: f - f_opt of a feasible point, from 100 down to 1e-6.
TARGETS: list[float] = (10 ** np.linspace(2, -6, 41)).tolist()


@dataclass(frozen=True)
class Problem(CocoProblem):
    """The identity of a problem. An instance of CEC 2006 is another start."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[Opened]:
        if self.suite == CEC:
            yield Opened(self)
            return
        with super().opened() as problem:
            yield Opened(self, problem)


class Opened:
    """A problem whose function can be called: the objective and the constraints, each at most 0
    where it is met."""

    def __init__(self, identity: Problem, problem: Any = None) -> None:
        self.problem = problem
        if problem is None:
            definition = PROBLEMS[identity.function]
            self.definition = definition
            self.low, self.high = np.array(definition.low), np.array(definition.high)
            # Precisions are relative to the optimum where that is large.
            self.optimum, self.scale = definition.optimum, max(1.0, abs(definition.optimum))
            random = np.random.default_rng([identity.function, identity.instance])
            self.start = random.uniform(self.low, self.high)
        else:
            self.low, self.high = np.array(problem.lower_bounds), np.array(problem.upper_bounds)
            coco = CocoProblem(identity.suite, identity.function, identity.dim, identity.instance)
            self.optimum, self.scale = coco.optimum(), 1.0
            self.start = np.array(problem.initial_solution)
        self.constraints = len(self(self.start)[1])

    def __call__(self, x: Any) -> tuple[float, Any]:
        if self.problem is None:
            return self.definition(x)
        return float(self.problem(x)), np.array(self.problem.constraint(x))


class Watched:
    """A problem's function that records after how many evaluations each target was hit. A point
    that is asked for again, as by methods that want the objective and the constraints apart, is one
    evaluation."""

    def __init__(self, opened: Opened, budget: int) -> None:
        self.opened, self.budget = opened, budget
        self.evaluations = 0
        self.best, self.violation = math.inf, math.inf
        self.hits: list[int] = []
        self.recent: dict[bytes, tuple[float, Any]] = {}

    def __call__(self, x: Any) -> tuple[float, Any]:
        x = np.array(x, dtype=float)
        key = x.tobytes()
        if key in self.recent:
            return self.recent[key]
        if self.evaluations >= self.budget:
            raise Stop
        value, constraints = self.opened(np.clip(x, self.opened.low, self.opened.high))
        self.evaluations += 1
        violation = float(np.maximum(constraints, 0.0).sum())
        if not violation > 0.0:
            self.violation = 0.0
            regret = (value - self.opened.optimum) / self.opened.scale
            if regret < self.best:
                self.best = regret
                while len(self.hits) < len(TARGETS) and regret <= TARGETS[len(self.hits)]:
                    self.hits.append(self.evaluations)
        self.violation = min(self.violation, violation)
        # Populations are asked for the constraints of all, then for the objective.
        while len(self.recent) > 1000:
            self.recent.pop(next(iter(self.recent)))
        self.recent[key] = value, constraints
        return value, constraints


class Stop(Exception):
    """The budget is used up."""
