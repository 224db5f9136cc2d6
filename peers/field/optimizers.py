"""The other optimizers and ours, each run as documented, from a random start in the domain. Ours
are those of the Python package.

A run ends when the objective raises `Stop`, or when the optimizer returns because it has converged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peers.objective import Objective
from peers.problems import HIGH, LOW, Vector

# The initial step size of CMA-ES, relative to the domain's width.
SIGMA = 0.2
# TPE's time per evaluation grows with the number of evaluations, that of Optuna's CMA-ES with n³.
MAX_TPE_EVALUATIONS = 300
MAX_OPTUNA_CMA_DIM = 100


@dataclass(frozen=True)
class Run:
    """The domain and the seed. The first `integers` coordinates are integers."""

    low: Vector
    high: Vector
    seed: int
    integers: int = 0

    @classmethod
    def cube(cls, dim: int, seed: int) -> Run:
        """A run on [-10, 10]^n."""
        return cls(np.full(dim, LOW), np.full(dim, HIGH), seed)

    @property
    def dim(self) -> int:
        return len(self.low)

    @property
    def is_integer(self) -> list[bool]:
        return [i < self.integers for i in range(self.dim)]

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return list(zip(self.low.tolist(), self.high.tolist(), strict=True))

    def start(self) -> Vector:
        return self.rounded(np.random.default_rng(self.seed).uniform(self.low, self.high))

    def relaxed(self) -> Run:
        """The domain with real coordinates and equal intervals for integers: see `rounded`."""
        margin = np.where(self.is_integer, 0.5, 0.0)
        return Run(self.low - margin, self.high + margin, self.seed)

    def rounded(self, x: Any) -> Vector:
        """A point of the relaxed domain with its integers rounded."""
        point = np.array(x, dtype=float)
        k = self.integers
        point[:k] = np.clip(np.round(point[:k]), self.low[:k], self.high[:k])
        return point


def zoopt_sracos(run: Run, objective: Objective) -> None:
    from zoopt import Dimension, Opt, Parameter
    from zoopt import Objective as ZooptObjective
    from zoopt.utils.tool_function import ToolFunction

    ToolFunction.log = staticmethod(lambda text: None)  # it prints every solution
    np.random.seed(run.seed)  # the only generator that zoopt has
    ends = [
        [int(low), int(high)] if integer else [low, high]
        for (low, high), integer in zip(run.bounds, run.is_integer, strict=True)
    ]
    is_real = [not integer for integer in run.is_integer]
    space = Dimension(run.dim, ends, is_real, run.is_integer)  # the last: integers are ordered
    wrapped = ZooptObjective(lambda solution: objective(solution.get_x()), space)
    Opt.min(wrapped, Parameter(budget=objective.budget))


def pycma(run: Run, objective: Objective) -> None:
    """With BIPOP restarts, like ours, so that a converged run continues."""
    import cma

    starts = np.random.default_rng(run.seed)
    domain = run.relaxed()
    width = domain.high - domain.low
    # Seed 0 would mean the time.
    options: dict[str, Any] = {"seed": run.seed + 1, "verbose": -9, "verb_log": 0}
    options["bounds"] = [domain.low.tolist(), domain.high.tolist()]
    if run.integers:
        options["integer_variables"] = list(range(run.integers))
        options["CMA_stds"] = (width / width.max()).tolist()

    def evaluate(x: Any) -> float:
        return objective(run.rounded(x) if run.integers else x)

    cma.fmin2(
        evaluate,
        lambda: starts.uniform(domain.low, domain.high),
        SIGMA * float(width.max()),
        options,
        restarts=99,
        bipop=True,
    )


def scipy_de(run: Run, objective: Objective) -> None:
    from scipy.optimize import differential_evolution

    differential_evolution(
        objective,
        run.bounds,
        rng=run.seed,
        polish=False,
        tol=0,
        maxiter=objective.budget,
        integrality=run.is_integer,
    )


def scipy_dual_annealing(run: Run, objective: Objective) -> None:
    from scipy.optimize import dual_annealing

    dual_annealing(objective, run.bounds, rng=run.seed, maxiter=objective.budget, x0=run.start())


def nevergrad_ngopt(run: Run, objective: Objective) -> None:
    import nevergrad

    def reals(of: slice) -> Any:
        return nevergrad.p.Array(init=start[of]).set_bounds(run.low[of], run.high[of])

    start, k = run.start(), run.integers
    space = reals(slice(None))
    if k:
        space = nevergrad.p.Tuple(reals(slice(k)).set_integer_casting(), reals(slice(k, None)))
    space.random_state.seed(run.seed)
    optimizer = nevergrad.optimizers.NGOpt(space, budget=objective.budget)
    for _ in range(objective.budget):
        candidate = optimizer.ask()
        value = objective(np.concatenate(candidate.value) if k else candidate.value)
        optimizer.tell(candidate, value)


def optuna_cma(run: Run, objective: Objective) -> None:
    import optuna

    start: dict[str, Any] = dict(zip(names(run), run.start().tolist(), strict=True))
    sampler = optuna.samplers.CmaEsSampler(x0=start, sigma0=SIGMA * (HIGH - LOW), seed=run.seed)
    ask_and_tell(run, objective, sampler)


def optuna_tpe(run: Run, objective: Objective) -> None:
    import optuna

    ask_and_tell(run, objective, optuna.samplers.TPESampler(seed=run.seed))


def ask_and_tell(run: Run, objective: Objective, sampler: Any) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler)
    domain: Any = optuna.distributions.FloatDistribution(LOW, HIGH)
    space = dict.fromkeys(names(run), domain)
    for _ in range(objective.budget):
        trial = study.ask(space)
        study.tell(trial, objective([trial.params[name] for name in space]))


def names(run: Run) -> list[str]:
    return [f"x{i}" for i in range(run.dim)]


def ours(algorithm: str, run: Run, objective: Objective) -> None:
    """One of our algorithms with its defaults."""
    import racecars

    racecars.minimize(
        objective,
        run.bounds,
        integrality=run.is_integer,
        maxfev=objective.budget,
        rng=run.seed,
        method=algorithm,
    )


def random_search(run: Run, objective: Objective) -> None:
    random = np.random.default_rng(run.seed)
    for _ in range(objective.budget):
        objective(run.rounded(random.uniform(run.low, run.high)))


@dataclass(frozen=True)
class Peer:
    """Another optimizer, its package, and the most similar of our algorithms."""

    name: str
    package: str
    run: Callable[[Run, Objective], None]
    counterpart: str
    about: str
    is_slow: bool = False
    most: int | None = None
    most_dim: int | None = None

    def refuses(self, dim: int, budget: int) -> str | None:
        """Why it is not run in this dimension with this budget; `None` if it is run."""
        if self.most is not None and budget > self.most:
            return f"left out, because it is too slow for more than {self.most} evaluations"
        if self.most_dim is not None and dim > self.most_dim:
            return f"left out, because it is too slow for more than {self.most_dim} coordinates"
        return None


PEERS = {
    peer.name: peer
    for peer in (
        Peer("zoopt", "zoopt", zoopt_sracos, "race-cars", "ZOOpt's SRACOS with its defaults"),
        Peer(
            "pycma",
            "cma",
            pycma,
            "cma-es",
            "Hansen's CMA-ES: bounds, sigma0 a fifth of the domain, BIPOP restarts",
        ),
        Peer(
            "scipy-de",
            "scipy",
            scipy_de,
            "de",
            "`differential_evolution` with its defaults but no polishing",
        ),
        Peer(
            "scipy-da",
            "scipy",
            scipy_dual_annealing,
            "race-cars",
            "`dual_annealing` with its defaults, local searches included",
        ),
        Peer("ngopt", "nevergrad", nevergrad_ngopt, "race-cars", "nevergrad's NGOpt"),
        Peer(
            "optuna-cma",
            "optuna",
            optuna_cma,
            "cma-es",
            "Optuna's CmaEsSampler, sigma0 a fifth of the domain",
            is_slow=True,
            most_dim=MAX_OPTUNA_CMA_DIM,
        ),
        Peer(
            "optuna-tpe",
            "optuna",
            optuna_tpe,
            "race-cars",
            f"Optuna's TPESampler, at most {MAX_TPE_EVALUATIONS} evaluations",
            is_slow=True,
            most=MAX_TPE_EVALUATIONS,
        ),
        Peer("numpy-random", "numpy", random_search, "race-cars", "uniform random points"),
    )
}

warnings.simplefilter("ignore")
