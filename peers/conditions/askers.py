"""Optimizers that are asked and told, so that a run can be simulated: without a known budget, with
many candidates out, or with a recommended point that is not the best value seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from peers.field.models import names
from peers.field.optimizers import method_of
from peers.field.run import SIGMA, Run
from peers.problems import Vector


class Asker(Protocol):
    """An optimizer with any number of candidates out."""

    def ask(self) -> tuple[Any, Vector] | None:
        """A candidate and its point; `None` if it waits for values first."""

    def tell(self, candidate: Any, x: Vector, value: float) -> None:
        """The value of a candidate."""

    def recommended(self) -> Vector:
        """The point that it would give as its result."""


class Ours:
    def __init__(self, name: str, run: Run, budget: int | None) -> None:
        import racecars

        method, options = method_of(name)
        self.optimizer = racecars.Optimizer(
            run.bounds,
            integrality=run.is_integer,
            method=method,
            budget=budget,
            rng=run.seed,
            **options,
        )

    def ask(self) -> tuple[Any, Vector] | None:
        candidate = self.optimizer.ask()
        return candidate, np.array(candidate.x, dtype=float)

    def tell(self, candidate: Any, x: Vector, value: float) -> None:
        self.optimizer.tell(candidate, value)

    def recommended(self) -> Vector:
        best = self.optimizer.best
        if best is None:
            raise ValueError("no evaluation has a value")
        return np.array(best.x, dtype=float)


class Seen:
    """Recommends the point with the least value seen."""

    def __init__(self) -> None:
        self.best: tuple[float, Vector] | None = None

    def see(self, x: Vector, value: float) -> None:
        if self.best is None or value < self.best[0]:
            self.best = value, x

    def recommended(self) -> Vector:
        if self.best is None:
            raise ValueError("no evaluation has a value")
        return self.best[1]


class Random(Seen):
    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run, self.random = run, np.random.default_rng(run.seed)

    def ask(self) -> tuple[Any, Vector] | None:
        return None, self.run.rounded(self.random.uniform(self.run.low, self.run.high))

    def tell(self, candidate: Any, x: Vector, value: float) -> None:
        self.see(x, value)


class Pycma:
    """A generation at a time, of at least as many candidates as there are workers. It waits for
    the whole generation, as its interface does; a converged run is restarted."""

    def __init__(self, run: Run, workers: int) -> None:
        self.run, self.domain = run, run.relaxed()
        self.starts, self.workers = self.domain.starts(), workers
        self.count = 0
        self.best: tuple[float, Vector] | None = None
        self.begin()

    def begin(self) -> None:
        import cma

        width = self.domain.high - self.domain.low
        self.count += 1
        options: dict[str, Any] = {
            "seed": self.run.seed * 1000 + self.count,
            "verbose": -9,
            "verb_log": 0,
            "bounds": [self.domain.low.tolist(), self.domain.high.tolist()],
            "CMA_stds": (width / width.max()).tolist(),
            "popsize": max(4 + int(3 * np.log(self.run.dim)), self.workers),
        }
        if self.run.integers:
            options["integer_variables"] = list(range(self.run.integers))
        self.es = cma.CMAEvolutionStrategy(next(self.starts), SIGMA * float(width.max()), options)
        self.generate()

    def generate(self) -> None:
        self.generation = list(self.es.ask())
        self.values: list[float | None] = [None] * len(self.generation)
        self.asked = 0

    def ask(self) -> tuple[Any, Vector] | None:
        if self.asked == len(self.generation):
            return None
        self.asked += 1
        return self.asked - 1, self.run.rounded(self.generation[self.asked - 1])

    def tell(self, candidate: Any, x: Vector, value: float) -> None:
        self.values[candidate] = value
        if self.best is None or value < self.best[0]:
            self.best = value, x
        if None in self.values:
            return
        self.es.tell(self.generation, self.values)
        if self.es.stop():
            self.begin()
        else:
            self.generate()

    def recommended(self) -> Vector:
        """The mean of the distribution, which averages noise; the best value in the beginning."""
        if self.es.countiter:
            favourite = np.array(self.es.result.xfavorite, dtype=float)
            return self.run.rounded(np.clip(favourite, self.domain.low, self.domain.high))
        if self.best is None:
            raise ValueError("no evaluation has a value")
        return self.best[1]


class Ngopt:
    def __init__(self, run: Run, budget: int, workers: int) -> None:
        import nevergrad

        start = run.start()
        self.k = run.integers

        def array(of: slice) -> Any:
            return nevergrad.p.Array(init=start[of]).set_bounds(run.low[of], run.high[of])

        parts = []
        if self.k:
            parts.append(array(slice(self.k)).set_integer_casting())
        if self.k < run.dim:
            parts.append(array(slice(self.k, None)))
        space = nevergrad.p.Tuple(*parts)
        space.random_state.seed(run.seed)
        self.optimizer = nevergrad.optimizers.NGOpt(space, budget=budget, num_workers=workers)

    def ask(self) -> tuple[Any, Vector] | None:
        candidate = self.optimizer.ask()
        return candidate, np.concatenate(candidate.value).astype(float)

    def tell(self, candidate: Any, x: Vector, value: float) -> None:
        self.optimizer.tell(candidate, value)

    def recommended(self) -> Vector:
        found: Vector = np.concatenate(self.optimizer.recommend().value).astype(float)
        return found


class OptunaTpe(Seen):
    def __init__(self, run: Run) -> None:
        import optuna
        from optuna import distributions

        super().__init__()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=run.seed, constant_liar=True)
        self.study = optuna.create_study(sampler=sampler)
        real: Any = distributions.FloatDistribution
        whole: Any = distributions.IntDistribution
        self.space = {
            name: whole(int(low), int(high)) if is_integer else real(low, high)
            for name, (low, high), is_integer in zip(
                names(run), run.bounds, run.is_integer, strict=True
            )
        }

    def ask(self) -> tuple[Any, Vector] | None:
        trial = self.study.ask(self.space)
        return trial, np.array([trial.params[name] for name in self.space], dtype=float)

    def tell(self, candidate: Any, x: Vector, value: float) -> None:
        self.study.tell(candidate, value)
        self.see(x, value)


# The others, by name, with their packages.
PEERS: dict[str, tuple[str, Callable[[Run, int, int], Asker]]] = {
    "pycma": ("cma", lambda run, budget, workers: Pycma(run, workers)),
    "ngopt": ("nevergrad", Ngopt),
    "optuna-tpe": ("optuna", lambda run, budget, workers: OptunaTpe(run)),
    "random-search": ("numpy", lambda run, budget, workers: Random(run)),
}


def asker_of(method: str, run: Run, budget: int | None, evaluations: int, workers: int) -> Asker:
    """The optimizer of this name. Only ours can be without a budget."""
    if method in PEERS:
        return PEERS[method][1](run, evaluations, workers)
    return Ours(method, run, budget)
