"""The optimizers, the others and ours, each run as its documentation says, from a random start in
[-10, 10]^n. Ours are those of the Python package.

A run ends when it raises `Stop` from the objective, or returns because it has converged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peers.objective import Objective
from peers.problems import HIGH, LOW, Vector

# The first step size of CMA-ES, a fifth of the domain's width.
SIGMA = 4.0
# TPE's time per evaluation grows with their number, that of Optuna's CMA-ES with the cube of n.
MOST_FOR_TPE = 300
MOST_DIM_FOR_OPTUNA = 100


@dataclass(frozen=True)
class Run:
    dim: int
    seed: int

    def start(self) -> Vector:
        return np.random.default_rng(self.seed).uniform(LOW, HIGH, self.dim)


def zoopt_sracos(run: Run, objective: Objective) -> None:
    from zoopt import Dimension, Opt, Parameter
    from zoopt import Objective as ZooptObjective
    from zoopt.utils.tool_function import ToolFunction

    ToolFunction.log = staticmethod(lambda text: None)  # it prints every solution
    np.random.seed(run.seed)  # the only generator that zoopt has
    space = Dimension(run.dim, [[LOW, HIGH]] * run.dim, [True] * run.dim)
    wrapped = ZooptObjective(lambda solution: objective(solution.get_x()), space)
    Opt.min(wrapped, Parameter(budget=objective.budget))


def pycma(run: Run, objective: Objective) -> None:
    """BIPOP restarts, as ours has, so that a run that has converged does not idle."""
    import cma

    starts = np.random.default_rng(run.seed)
    # Seed 0 means the time.
    options = {"bounds": [LOW, HIGH], "seed": run.seed + 1, "verbose": -9, "verb_log": 0}
    cma.fmin2(
        objective,
        lambda: starts.uniform(LOW, HIGH, run.dim),
        SIGMA,
        options,
        restarts=99,
        bipop=True,
    )


def scipy_de(run: Run, objective: Objective) -> None:
    from scipy.optimize import differential_evolution

    bounds = [(LOW, HIGH)] * run.dim
    differential_evolution(
        objective, bounds, rng=run.seed, polish=False, tol=0, maxiter=objective.budget
    )


def scipy_dual_annealing(run: Run, objective: Objective) -> None:
    from scipy.optimize import dual_annealing

    bounds = [(LOW, HIGH)] * run.dim
    dual_annealing(objective, bounds, rng=run.seed, maxiter=objective.budget, x0=run.start())


def nevergrad_ngopt(run: Run, objective: Objective) -> None:
    import nevergrad

    space = nevergrad.p.Array(init=run.start()).set_bounds(LOW, HIGH)
    space.random_state.seed(run.seed)
    optimizer = nevergrad.optimizers.NGOpt(space, budget=objective.budget)
    for _ in range(objective.budget):
        candidate = optimizer.ask()
        optimizer.tell(candidate, objective(candidate.value))


def optuna_cma(run: Run, objective: Objective) -> None:
    import optuna

    start: dict[str, Any] = dict(zip(names(run), run.start().tolist(), strict=True))
    sampler = optuna.samplers.CmaEsSampler(x0=start, sigma0=SIGMA, seed=run.seed)
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
        [(LOW, HIGH)] * run.dim,
        maxfev=objective.budget,
        rng=run.seed,
        method=algorithm,
    )


def random_search(run: Run, objective: Objective) -> None:
    random = np.random.default_rng(run.seed)
    for _ in range(objective.budget):
        objective(random.uniform(LOW, HIGH, run.dim))


@dataclass(frozen=True)
class Peer:
    """Another optimizer, the package that it is in, and which of our algorithms it resembles."""

    name: str
    package: str
    run: Callable[[Run, Objective], None]
    counterpart: str
    about: str
    is_slow: bool = False
    most: int | None = None
    most_dim: int | None = None

    def refuses(self, dim: int, budget: int) -> str | None:
        """Why it is not run in this dimension with this budget, or `None` if it is."""
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
            "Hansen's CMA-ES: bounds, sigma0 = 4, BIPOP restarts",
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
            "Optuna's CmaEsSampler, sigma0 = 4",
            is_slow=True,
            most_dim=MOST_DIM_FOR_OPTUNA,
        ),
        Peer(
            "optuna-tpe",
            "optuna",
            optuna_tpe,
            "race-cars",
            f"Optuna's TPESampler, at most {MOST_FOR_TPE} evaluations",
            is_slow=True,
            most=MOST_FOR_TPE,
        ),
        Peer("numpy-random", "numpy", random_search, "race-cars", "uniform random points"),
    )
}

warnings.simplefilter("ignore")
