"""Runs on COCO's problems: what a run is given, and what is saved of it."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from dataclasses import asdict, dataclass

from peers.coco.suites import MARKS, Problem, Watched, run_of
from peers.field.optimizers import PEERS, ours
from peers.kept import version_of, version_of_ours
from peers.objective import Objective


@dataclass(frozen=True)
class Trial:
    """The result of a run with `budget` evaluations. `hits` has the number of evaluations after
    which each target was hit, for the targets that were hit, in order; `bests` the best regret
    after each number of evaluations in `MARKS`."""

    suite: str
    function: int
    dim: int
    instance: int
    method: str
    version: str
    budget: int
    evaluations: int
    best: float
    seconds: float
    hits: str
    bests: str
    note: str

    @property
    def hit_at(self) -> list[int]:
        return [int(evaluations) for evaluations in self.hits.split()]

    def best_at(self, evaluations: int) -> float:
        """The best regret after as many evaluations: one of `MARKS`, or the budget."""
        for mark, best in zip(MARKS, self.bests.split(), strict=False):
            if mark == evaluations:
                return float(best)
        return self.best

    @property
    def problem(self) -> Problem:
        return Problem(self.suite, self.function, self.dim, self.instance)

    @property
    def key(self) -> Hashable:
        return self.problem, self.method, self.version


@dataclass(frozen=True)
class Job:
    """A run of a method on a problem with a number of evaluations."""

    problem: Problem
    method: str
    budget: int
    seconds: float
    is_central: bool = False
    may_be_longer: bool = False
    """Whether a run with a larger budget will do: the run is that of an anytime method."""

    @property
    def version(self) -> str:
        """The version of the method, to detect trials of another version."""
        if self.method in PEERS:
            return version_of(PEERS[self.method].package)
        return version_of_ours()

    @property
    def key(self) -> Hashable:
        return self.problem, self.method, self.version

    def accepts(self, trial: Trial) -> bool:
        """A run that was cut is accepted unless it may take more time now."""
        if trial.note and trial.seconds < self.seconds:
            return False
        return trial.budget == self.budget or (self.may_be_longer and trial.budget > self.budget)

    @property
    def effort(self) -> float:
        """Microseconds, roughly."""
        n = self.problem.dim
        cost = PEERS[self.method].cost_us if self.method in PEERS else 4 + 0.1 * n
        return min(self.budget * (10 + 0.25 * n + cost), 1e6 * self.seconds)

    @property
    def about(self) -> str:
        problem = self.problem
        return f"{self.method} on {problem.suite} f{problem.function} n = {problem.dim}"

    def run(self) -> Trial:
        problem = self.problem
        optimum = problem.optimum()
        with problem.opened() as opened:
            watched = Watched(opened, optimum)
            objective = Objective(watched, self.budget, self.seconds)
            run = run_of(opened, problem.instance, self.is_central)
            start = time.process_time()
            if self.method in PEERS:
                objective.run(lambda objective: PEERS[self.method].run(run, objective))
            else:
                objective.run(lambda objective: ours(self.method, run, objective))
            seconds = time.process_time() - start
        is_cut = objective.is_out_of_time and objective.evaluations < self.budget
        return Trial(
            **asdict(problem),
            method=self.method,
            version=self.version,
            budget=self.budget,
            evaluations=objective.evaluations,
            best=watched.best,
            seconds=seconds,
            hits=" ".join(map(str, watched.hits)),
            bests=" ".join(f"{best:.6g}" for best in watched.bests),
            note=f"stopped after {self.seconds:g} s" if is_cut else "",
        )

    def failed(self, note: str) -> Trial:
        return Trial(
            **asdict(self.problem),
            method=self.method,
            version="",
            budget=self.budget,
            evaluations=0,
            best=math.inf,
            seconds=0.0,
            hits="",
            bests="",
            note=note,
        )
