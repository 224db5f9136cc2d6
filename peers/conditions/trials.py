"""Runs under conditions, and what is saved of them.

Three parts: `horizon`, where ours know the budget or not; `workers`, where q candidates are out
and come back in another order; `noise`, where a value has noise and the true value at the
recommended point counts.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peers.coco.suites import Problem, run_of
from peers.conditions.askers import PEERS, asker_of
from peers.conditions.simulators import SIMULATORS, true_value
from peers.field.run import SIGMA, Run
from peers.kept import version_of, version_of_ours
from peers.problems import Vector

NOISE_HANDLING = "pycma-noise"


@dataclass(frozen=True)
class Trial:
    """The result of a run: the regret, or under noise the true value at the recommended point.
    `busy` is the share of the workers' time that they had something to evaluate."""

    part: str
    problem: str
    function: int
    dim: int
    instance: int
    method: str
    version: str
    budget: int
    condition: str
    value: float
    busy: float
    seconds: float
    note: str

    @property
    def key(self) -> Hashable:
        return (
            *(self.part, self.problem, self.function, self.dim, self.instance),
            *(self.method, self.version, self.budget, self.condition),
        )


@dataclass(frozen=True)
class Job:
    """A run on a problem of a suite, or on a simulator. The condition is `known` or `unknown`, the
    number of candidates out, or the standard deviation of the noise."""

    part: str
    problem: str
    function: int
    dim: int
    instance: int
    method: str
    budget: int
    condition: str

    @property
    def version(self) -> str:
        if self.method == NOISE_HANDLING:
            return version_of("cma")
        return version_of(PEERS[self.method][0]) if self.method in PEERS else version_of_ours()

    @property
    def key(self) -> Hashable:
        return (
            *(self.part, self.problem, self.function, self.dim, self.instance),
            *(self.method, self.version, self.budget, self.condition),
        )

    @property
    def effort(self) -> float:
        costs = {"ngopt": 5000, "pycma": 200, NOISE_HANDLING: 200, "optuna-tpe": 10000}
        return self.budget * (20 + costs.get(self.method, 5))

    @property
    def about(self) -> str:
        return f"{self.method} on {self.problem} {self.function}, {self.condition}"

    def accepts(self, trial: Trial) -> bool:
        return True

    def run(self) -> Trial:
        start = time.process_time()
        value, busy = self.result()
        return self.trial(value, busy, time.process_time() - start, "")

    def failed(self, note: str) -> Trial:
        return self.trial(math.inf, 0.0, 0.0, note)

    def trial(self, value: float, busy: float, seconds: float, note: str) -> Trial:
        return Trial(
            self.part,
            self.problem,
            self.function,
            self.dim,
            self.instance,
            self.method,
            self.version if not note else "",
            self.budget,
            self.condition,
            value,
            busy,
            seconds,
            note,
        )

    def result(self) -> tuple[float, float]:
        if self.problem in SIMULATORS:
            simulator = SIMULATORS[self.problem](self.instance)
            run = Run(simulator.low, simulator.high, self.instance, simulator.integers, True)
            count = 0

            def simulated(x: Vector) -> float:
                nonlocal count
                count += 1
                seed = self.instance * 10**5 + count  # of replications that are never repeated
                return float(simulator.costs(x, seed, 1)[0])

            return true_value(simulator, self.recommended(run, simulated)), 1.0
        identity = Problem(self.problem, self.function, self.dim, self.instance)
        optimum = identity.optimum()
        with identity.opened() as opened:
            run = run_of(opened, self.instance, is_central=True)

            def regret(x: Vector) -> float:
                return float(opened(x)) - optimum

            if self.part == "noise":
                noise = np.random.default_rng([self.function, self.instance, 7])
                deviation = float(self.condition)
                found = self.recommended(
                    run, lambda x: regret(x) + deviation * float(noise.standard_normal())
                )
                return regret(found), 1.0
            return self.best_value(run, regret)

    def best_value(self, run: Run, regret: Callable[[Vector], float]) -> tuple[float, float]:
        """The least regret, with the candidates of `workers` out at a time. Evaluations take from
        half to one and a half units of time, so that they end in another order."""
        workers = int(self.condition) if self.part == "workers" else 1
        budget = None if self.condition == "unknown" else self.budget
        asker = asker_of(self.method, run, budget, self.budget, workers)
        random = np.random.default_rng([run.seed, 5])
        out: list[tuple[float, int, object, Vector]] = []
        best, now, spent, asked = math.inf, 0.0, 0.0, 0
        while asked < self.budget or out:
            while asked < self.budget and len(out) < workers:
                given = asker.ask()
                if given is None:
                    break
                duration = float(random.uniform(0.5, 1.5))
                heapq.heappush(out, (now + duration, asked, *given))
                spent += duration
                asked += 1
            if not out:
                raise RuntimeError(f"{self.method} waits although nothing is out")
            now, _, candidate, x = heapq.heappop(out)
            value = regret(x)
            best = min(best, value)
            asker.tell(candidate, x, value)
        return best, spent / (now * workers)

    def recommended(self, run: Run, noisy: Callable[[Vector], float]) -> Vector:
        """The point that a method recommends when the budget is used."""
        if self.method == NOISE_HANDLING:
            return pycma_with_noise(run, noisy, self.budget)
        asker = asker_of(self.method, run, self.budget, self.budget, 1)
        for _ in range(self.budget):
            given = asker.ask()
            if given is None:
                raise RuntimeError(f"{self.method} waits although nothing is out")
            candidate, x = given
            asker.tell(candidate, x, noisy(x))
        return asker.recommended()


def pycma_with_noise(run: Run, noisy: Callable[[Vector], float], budget: int) -> Vector:
    """pycma with its handling of noise (N. Hansen et al., "A method for handling uncertainty in
    evolutionary optimization", 2009), which evaluates some points again."""
    import cma

    domain, used = run.relaxed(), 0
    width = domain.high - domain.low

    class Used(Exception):
        pass

    def evaluate(x: Vector) -> float:
        nonlocal used
        if used >= budget:
            raise Used
        used += 1
        return noisy(run.rounded(np.clip(x, domain.low, domain.high)))

    options: dict[str, Any] = {"seed": run.seed + 1, "verbose": -9, "verb_log": 0}
    options["bounds"] = [domain.low.tolist(), domain.high.tolist()]
    options["CMA_stds"] = (width / width.max()).tolist()
    es = cma.CMAEvolutionStrategy(run.start(), SIGMA * float(width.max()), options)
    handler = cma.NoiseHandler(es.N, maxevals=[1, 1, 30])
    try:
        while True:
            points, values = es.ask_and_eval(evaluate, evaluations=handler.evaluations)
            es.tell(points, values)
            es.sigma *= handler(points, values, evaluate, es.ask)
    except Used:
        favourite = es.result.xfavorite if es.countiter else run.start()
    return run.rounded(np.clip(np.array(favourite, dtype=float), domain.low, domain.high))
