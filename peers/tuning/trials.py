"""Runs on tuning tasks, and what is saved of them."""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Hashable
from dataclasses import dataclass

from peers.kept import version_of, version_of_ours
from peers.objective import Stop
from peers.tuning.methods import PEERS, ours
from peers.tuning.tasks import TASKS, Config, Values, active


@dataclass(frozen=True)
class Trial:
    """The result of a run; `bests` has the least value after each evaluation."""

    task: str
    method: str
    version: str
    seed: int
    budget: int
    seconds: float
    bests: str
    note: str

    @property
    def key(self) -> Hashable:
        return self.task, self.method, self.version, self.seed

    def best_at(self, evaluations: int) -> float:
        return float(self.bests.split()[:evaluations][-1]) if self.bests else math.inf


@functools.cache
def values() -> Values:
    """The file of values, opened once by each process."""
    return Values()


class Watched:
    """The loss of configurations until the budget is used; every evaluation counts, also if its
    value is known."""

    def __init__(self, task: str, budget: int) -> None:
        self.task, self.budget = TASKS[task], budget
        self.bests: list[float] = []

    def __call__(self, config: Config) -> float:
        if len(self.bests) >= self.budget:
            raise Stop
        value = values().of(self.task, active(self.task.space, config))
        self.bests.append(min(value, self.bests[-1] if self.bests else math.inf))
        return value


@dataclass(frozen=True)
class Job:
    """A run of a method on a task."""

    task: str
    method: str
    seed: int
    budget: int

    @property
    def version(self) -> str:
        return version_of(PEERS[self.method][1]) if self.method in PEERS else version_of_ours()

    @property
    def is_anytime(self) -> bool:
        return self.method in PEERS and PEERS[self.method][2]

    @property
    def key(self) -> Hashable:
        return self.task, self.method, self.version, self.seed

    @property
    def effort(self) -> float:
        return self.budget

    @property
    def about(self) -> str:
        return f"{self.method} on {self.task}"

    def accepts(self, trial: Trial) -> bool:
        return trial.budget == self.budget or (self.is_anytime and trial.budget > self.budget)

    def run(self) -> Trial:
        search = PEERS[self.method][0] if self.method in PEERS else ours(self.method)
        watched = Watched(self.task, self.budget)
        start = time.process_time()
        with contextlib.suppress(Stop):
            search(TASKS[self.task].space, watched, self.budget, self.seed)
        return Trial(
            self.task,
            self.method,
            self.version,
            self.seed,
            self.budget,
            time.process_time() - start,
            " ".join(f"{best:.8g}" for best in watched.bests),
            "",
        )

    def failed(self, note: str) -> Trial:
        return Trial(self.task, self.method, "", self.seed, self.budget, 0.0, "", note)
