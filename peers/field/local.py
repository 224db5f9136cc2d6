"""Local methods without derivatives, restarted from random points until the budget is used."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from peers.field.run import SIGMA, Peer, Run
from peers.objective import Objective, Stop
from peers.problems import Vector

# The step size at which a search has converged, relative to the initial one.
PRECISION = 1e-8


def restarted(
    run: Run, objective: Objective, search: Callable[[Callable[[Vector], float], Vector], None]
) -> None:
    """Calls a local search from one start after another, in coordinates in which the domain is
    [0, 1]^n. A search that fails ends there; the objective ends the run."""
    width = run.high - run.low

    def scaled(z: Vector) -> float:
        return objective(run.low + width * np.clip(z, 0, 1))

    for start in run.starts():
        before = objective.evaluations
        with contextlib.suppress(ArithmeticError, ValueError, RuntimeError):
            search(scaled, (start - run.low) / width)
        if objective.evaluations == before:
            scaled((start - run.low) / width)  # so that the run ends even if no search begins


def scipy_search(name: str, options: dict[str, float]) -> Callable[[Run, Objective], None]:
    def optimizer(run: Run, objective: Objective) -> None:
        from scipy.optimize import Bounds, minimize

        bounds = Bounds(np.zeros(run.dim), np.ones(run.dim))

        def search(function: Callable[[Vector], float], start: Vector) -> None:
            minimize(function, start, method=name, bounds=bounds, options=options)

        restarted(run, objective, search)

    return optimizer


def nlopt_bobyqa(run: Run, objective: Objective) -> None:
    import nlopt

    def search(function: Callable[[Vector], float], start: Vector) -> None:
        bobyqa = nlopt.opt(nlopt.LN_BOBYQA, run.dim)
        bobyqa.set_lower_bounds(np.zeros(run.dim))
        bobyqa.set_upper_bounds(np.ones(run.dim))
        bobyqa.set_initial_step(SIGMA)
        bobyqa.set_xtol_abs(SIGMA * PRECISION)
        is_stopped = False

        def guarded(z: Vector, _: Vector) -> float:
            """NLopt loses some exceptions of the function, but not that it was stopped."""
            nonlocal is_stopped
            try:
                return function(z)
            except Stop:
                is_stopped = True
                bobyqa.force_stop()
                return 0.0

        bobyqa.set_min_objective(guarded)
        with contextlib.suppress(nlopt.ForcedStop):
            bobyqa.optimize(start)
        if is_stopped:
            raise Stop

    restarted(run, objective, search)


def py_bobyqa(run: Run, objective: Objective) -> None:
    import pybobyqa

    def search(function: Callable[[Vector], float], start: Vector) -> None:
        pybobyqa.solve(
            function,
            start,
            bounds=(np.zeros(run.dim), np.ones(run.dim)),
            rhobeg=SIGMA,
            rhoend=SIGMA * PRECISION,
            maxfun=objective.budget,
            do_logging=False,
        )

    restarted(run, objective, search)


STEPS = "initial step a fifth of the domain, restarted from random points"
NO_LIMIT = 10**9
PEERS = (
    Peer(
        "cobyla",
        "scipy",
        scipy_search("COBYLA", {"rhobeg": SIGMA, "tol": SIGMA * PRECISION, "maxiter": NO_LIMIT}),
        "auto",
        f"SciPy's COBYLA (PRIMA): {STEPS}",
        is_slow=True,
        is_anytime=True,
        cost_us=1000,
    ),
    Peer(
        "cobyqa",
        "scipy",
        scipy_search(
            "COBYQA",
            {
                "initial_tr_radius": SIGMA,
                "final_tr_radius": SIGMA * PRECISION,
                "maxfev": NO_LIMIT,
                "maxiter": NO_LIMIT,
            },
        ),
        "auto",
        f"SciPy's COBYQA: {STEPS}",
        is_slow=True,
        is_anytime=True,
        cost_us=5000,
    ),
    Peer(
        "nlopt-bobyqa",
        "nlopt",
        nlopt_bobyqa,
        "auto",
        f"NLopt's BOBYQA: {STEPS}",
        is_anytime=True,
    ),
    Peer(
        "py-bobyqa",
        "Py-BOBYQA",
        py_bobyqa,
        "auto",
        f"Py-BOBYQA: {STEPS}",
        is_slow=True,
        is_anytime=True,
        cost_us=5000,
    ),
)
