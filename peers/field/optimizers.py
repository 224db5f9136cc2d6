"""The other optimizers and ours, each run as documented, from a random start in the domain. Ours
are those of the Python package.

A run ends when the objective raises `Stop`, or when the optimizer returns because it has converged.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from peers.field import local, models
from peers.field.models import ask_and_tell, names
from peers.field.run import SIGMA, Peer, Run
from peers.objective import Objective

# The time of Optuna's CMA-ES per evaluation grows with n³.
MAX_OPTUNA_CMA_DIM = 100


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

    domain = run.relaxed()
    starts = domain.starts()
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
        lambda: next(starts),
        SIGMA * float(width.max()),
        options,
        restarts=99,
        bipop=True,
    )


def lq_cma(run: Run, objective: Objective) -> None:
    """N. Hansen, "A global surrogate assisted CMA-ES", GECCO 2019, with restarts."""
    import cma

    starts, width = run.starts(), run.high - run.low
    options: dict[str, Any] = {"seed": run.seed + 1, "verbose": -9, "verb_log": 0}
    options["bounds"] = [run.low.tolist(), run.high.tolist()]
    while True:
        cma.fmin_lq_surr(objective, next(starts), SIGMA * float(width.max()), options)
        options["seed"] += 1


def minion(algorithm: str) -> Callable[[Run, Objective], None]:
    """One of minionpy's. It evaluates populations at once."""

    def optimizer(run: Run, objective: Objective) -> None:
        import minionpy

        minimizer = minionpy.Minimizer(
            lambda points: [objective(point) for point in points],
            run.bounds,
            x0=[run.start().tolist()],
            algo=algorithm,
            maxevals=objective.budget,
            seed=run.seed,
        )
        try:
            minimizer.optimize()
        except RuntimeError:  # its C++ turns `Stop` into one
            if not objective.is_over:
                raise

    return optimizer


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
    sampler = optuna.samplers.CmaEsSampler(
        x0=start, sigma0=SIGMA * float(run.high[0] - run.low[0]), seed=run.seed
    )
    ask_and_tell(run, objective, sampler)


def method_of(text: str) -> tuple[str, dict[str, Any]]:
    """The algorithm and its settings: `cma-es:sigma=0.1,restarts=no`."""
    method, _, settings = text.partition(":")
    pairs = [setting.split("=", 1) for setting in settings.split(",") if setting]
    return method, {name.replace("-", "_"): value_of(value) for name, value in pairs}


def ours(algorithm: str, run: Run, objective: Objective) -> None:
    """One of our algorithms with its defaults, or with settings, see `method_of`."""
    import racecars

    method, options = method_of(algorithm)
    racecars.minimize(
        objective,
        run.bounds,
        integrality=run.is_integer,
        maxfev=objective.budget,
        rng=run.seed,
        method=method,
        **options,
    )


def value_of(text: str) -> Any:
    """A setting as a number where it is one."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def is_ours(method: str) -> bool:
    """Whether this version of racecars has the algorithm; it may have settings."""
    import racecars

    return method.partition(":")[0] in racecars.METHODS


def random_search(run: Run, objective: Objective) -> None:
    random = np.random.default_rng(run.seed)
    for _ in range(objective.budget):
        objective(run.rounded(random.uniform(run.low, run.high)))


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
            is_anytime=True,
            cost_us=150,
        ),
        Peer(
            "lq-cma",
            "cma",
            lq_cma,
            "cma-es",
            "Hansen's CMA-ES with a linear-quadratic surrogate, `cma.fmin_lq_surr`, with restarts",
            is_slow=True,
            is_anytime=True,
            cost_us=2000,
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
            is_anytime=True,
        ),
        Peer(
            "ngopt",
            "nevergrad",
            nevergrad_ngopt,
            "race-cars",
            "nevergrad's NGOpt",
            is_slow=True,
            cost_us=10_000,
        ),
        Peer("minion-jso", "minionpy", minion("jSO"), "l-shade", "minionpy's jSO"),
        Peer("minion-arrde", "minionpy", minion("ARRDE"), "l-shade", "minionpy's ARRDE"),
        Peer("minion-l-shade", "minionpy", minion("LSHADE"), "l-shade", "minionpy's L-SHADE"),
        Peer(
            "minion-bipop", "minionpy", minion("BIPOP_aCMAES"), "cma-es", "minionpy's BIPOP-aCMA-ES"
        ),
        *local.PEERS,
        Peer(
            "optuna-cma",
            "optuna",
            optuna_cma,
            "cma-es",
            "Optuna's CmaEsSampler, sigma0 a fifth of the domain",
            is_slow=True,
            most_dim=MAX_OPTUNA_CMA_DIM,
        ),
        *models.PEERS,
        Peer(
            "numpy-random",
            "numpy",
            random_search,
            "race-cars",
            "uniform random points",
            is_anytime=True,
        ),
    )
}

warnings.simplefilter("ignore")
