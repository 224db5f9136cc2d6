"""Runs on bits and categories, and what is saved of them."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from peers.bits.methods import PEERS, SLOW, ours
from peers.bits.problems import Problem
from peers.kept import version_of, version_of_ours
from peers.objective import Stop


@dataclass(frozen=True)
class Trial:
    """The result of a run."""

    problem: str
    instance: int
    dim: int
    budget: int
    method: str
    version: str
    evaluations: int
    best: float
    seconds: float
    note: str

    @property
    def key(self) -> Hashable:
        return self.problem, self.instance, self.dim, self.budget, self.method, self.version


@dataclass(frozen=True)
class Job:
    """A run of a method on a problem. The instance is also the seed."""

    problem: Problem
    budget: int
    method: str

    @property
    def version(self) -> str:
        return version_of(PEERS[self.method][1]) if self.method in PEERS else version_of_ours()

    @property
    def key(self) -> Hashable:
        problem = self.problem
        return (
            problem.name,
            problem.instance,
            problem.dim,
            self.budget,
            self.method,
            self.version,
        )

    @property
    def effort(self) -> float:
        return self.budget * (100 if self.method in SLOW else 1)

    @property
    def about(self) -> str:
        return f"{self.method} on {self.problem.name}, n = {self.problem.dim}"

    def accepts(self, _: Trial) -> bool:
        return True

    def trial(self, evaluations: int, best: float, seconds: float, note: str) -> Trial:
        problem = self.problem
        place = (problem.name, problem.instance, problem.dim, self.budget)
        return Trial(*place, self.method, self.version, evaluations, best, seconds, note)

    def run(self) -> Trial:
        function, evaluations, best = self.problem.function(), 0, math.inf

        def watched(x: Any) -> float:
            nonlocal evaluations, best
            if evaluations >= self.budget:
                raise Stop
            evaluations += 1
            value = function(x)
            best = min(best, value)
            return value

        search = PEERS[self.method][0] if self.method in PEERS else ours(self.method)
        start = time.process_time()
        with contextlib.suppress(Stop):
            search(self.problem, watched, self.budget, self.problem.instance)
        return self.trial(evaluations, best, time.process_time() - start, "")

    def failed(self, note: str) -> Trial:
        return self.trial(0, math.inf, 0.0, note)
