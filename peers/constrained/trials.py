"""Runs on problems with constraints: what a run is given, and what is saved of it."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from dataclasses import asdict, dataclass

from peers.constrained.methods import PEERS, run
from peers.constrained.problems import Problem, Watched
from peers.kept import version_of, version_of_ours


@dataclass(frozen=True)
class Trial:
    """The result of a run. `hits` are the targets hit, `best` the regret of the best feasible
    point."""

    suite: str
    function: int
    dim: int
    instance: int
    method: str
    version: str
    budget: int
    evaluations: int
    best: float
    violation: float
    hits: int
    seconds: float
    note: str

    @property
    def key(self) -> Hashable:
        return self.suite, self.function, self.dim, self.instance, self.method, self.version


@dataclass(frozen=True)
class Job:
    """A run of a method on a problem with a number of evaluations."""

    problem: Problem
    method: str
    budget: int

    @property
    def version(self) -> str:
        if self.method in PEERS:
            return version_of(PEERS[self.method].package)
        return version_of_ours()

    @property
    def key(self) -> Hashable:
        problem = self.problem
        return (*asdict(problem).values(), self.method, self.version)

    @property
    def effort(self) -> float:
        cost = PEERS[self.method].cost_us if self.method in PEERS else 20
        return self.budget * (30 + cost)

    @property
    def about(self) -> str:
        return f"{self.method} on {self.problem.suite} f{self.problem.function}"

    def accepts(self, trial: Trial) -> bool:
        return trial.budget == self.budget

    def run(self) -> Trial:
        with self.problem.opened() as opened:
            watched = Watched(opened, self.budget)
            start = time.process_time()
            run(self.method, watched, opened, self.problem.instance)
            seconds = time.process_time() - start
        return self._trial(watched.evaluations, watched, seconds, "")

    def _trial(self, evaluations: int, watched: Watched | None, seconds: float, note: str) -> Trial:
        return Trial(
            **asdict(self.problem),
            method=self.method,
            version=self.version if watched else "",
            budget=self.budget,
            evaluations=evaluations,
            best=watched.best if watched else math.inf,
            violation=watched.violation if watched else math.inf,
            hits=len(watched.hits) if watched else 0,
            seconds=seconds,
            note=note,
        )

    def failed(self, note: str) -> Trial:
        return self._trial(0, None, 0.0, note)
