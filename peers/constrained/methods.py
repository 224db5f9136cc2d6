"""Ours and the others, each with the same start and the same budget of evaluations, of which each
gives the objective and all constraints. Local methods begin again at random points when they have
converged."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from peers.constrained.problems import Opened, Stop, Watched


def starts(opened: Opened, seed: int) -> Iterator[Any]:
    yield opened.start
    random = np.random.default_rng([seed, 7])
    while True:
        yield random.uniform(opened.low, opened.high)


def nonlinear(watched: Watched) -> Any:
    from scipy.optimize import NonlinearConstraint

    return NonlinearConstraint(lambda x: watched(x)[1], -np.inf, 0.0)


def local(name: str, **options: Any) -> Callable[[Watched, Opened, int], None]:
    """One of SciPy's."""

    def optimizer(watched: Watched, opened: Opened, seed: int) -> None:
        from scipy.optimize import minimize

        bounds = list(zip(opened.low, opened.high, strict=True))
        for start in starts(opened, seed):
            before = watched.evaluations
            with contextlib.suppress(ValueError, np.linalg.LinAlgError):
                minimize(
                    lambda x: watched(x)[0],
                    start,
                    method=name,
                    bounds=bounds,
                    constraints=nonlinear(watched),
                    options={key: min(limit, watched.budget) for key, limit in options.items()},
                )
            if watched.evaluations == before:
                raise Stop

    return optimizer


def slsqp(watched: Watched, opened: Opened, seed: int) -> None:
    """With difference quotients. The margin makes points that it converges to feasible."""
    from scipy.optimize import minimize

    bounds = list(zip(opened.low, opened.high, strict=True))
    inside = {"type": "ineq", "fun": lambda x: -watched(x)[1] - 1e-9}
    for start in starts(opened, seed):
        before = watched.evaluations
        with contextlib.suppress(ValueError):
            minimize(
                lambda x: watched(x)[0],
                start,
                method="SLSQP",
                bounds=bounds,
                constraints=[inside],
                options={"maxiter": 1000, "ftol": 1e-14},
            )
        if watched.evaluations == before:
            raise Stop


def differential_evolution(watched: Watched, opened: Opened, seed: int) -> None:
    from scipy.optimize import differential_evolution

    differential_evolution(
        lambda x: watched(x)[0],
        list(zip(opened.low, opened.high, strict=True)),
        constraints=nonlinear(watched),
        rng=seed,
        x0=opened.start,
        polish=False,
        tol=0,
        maxiter=watched.budget,
    )


def pycma(watched: Watched, opened: Opened, seed: int) -> None:
    """With an augmented Lagrangian. Axes are scaled to length 1, as its manual advises."""
    import cma

    width = opened.high - opened.low

    def at(u: Any) -> Any:
        return opened.low + np.clip(u, 0.0, 1.0) * width

    for place, start in enumerate(starts(opened, seed)):
        options = {"seed": 100 * seed + place + 1, "verbose": -9, "verb_log": 0, "bounds": [0, 1]}
        cma.fmin_con2(
            lambda u: watched(at(u))[0],
            (start - opened.low) / width,
            0.2,
            constraints=lambda u: watched(at(u))[1],
            options=options,
        )


def ours(name: str, watched: Watched, opened: Opened, seed: int) -> None:
    import racecars

    def evaluate(x: Any) -> Any:
        value, constraints = watched(x)
        return racecars.Measured(value, constraints)

    racecars.minimize(
        evaluate,
        np.column_stack([opened.low, opened.high]),
        method=name,
        x0=opened.start,
        maxfev=watched.budget,
        rng=seed,
        on_error="raise",
    )


@dataclass(frozen=True)
class Method:
    """A peer, the package whose version identifies its runs, and microseconds per evaluation."""

    run: Callable[[Watched, Opened, int], None]
    package: str
    cost_us: float
    about: str


PEERS = {
    "pycma-al": Method(pycma, "cma", 400, "pycma's augmented Lagrangian, `fmin_con2`"),
    "scipy-de": Method(differential_evolution, "scipy", 200, "SciPy's DE, `NonlinearConstraint`"),
    "cobyla": Method(local("COBYLA", maxiter=10**9), "scipy", 100, "SciPy's COBYLA"),
    "cobyqa": Method(local("COBYQA", maxfev=10**9), "scipy", 20000, "SciPy's COBYQA"),
    "slsqp": Method(slsqp, "scipy", 100, "SciPy's SLSQP, difference quotients"),
}


def run(method: str, watched: Watched, opened: Opened, seed: int) -> None:
    """Runs a method until it returns or the budget is used up."""
    with warnings.catch_warnings(), contextlib.suppress(Stop), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if method in PEERS:
            PEERS[method].run(watched, opened, seed)
        else:
            ours(method, watched, opened, seed)
