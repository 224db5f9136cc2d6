"""The settings of the methods as keywords, and answers to keywords that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from racecars import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import TypedDict

    class Options(TypedDict, total=False):
        """The settings of all methods, for type checkers; :func:`racecars.settings` lists those of
        one. A test compares them."""

        algorithm: str
        beta1: float
        beta2: float
        crossover: float
        design: int
        difference: float
        dimension: int
        directions: int
        exploitation: float
        gamma: float
        learning_rate: float
        legs: str | Sequence[str]
        memory: int
        noise: str | bool
        noisy: bool
        points: int
        population: int
        positive_size: int
        radius: float
        repeats: bool
        replacing: str
        restarts: str
        rho: float
        rounds: int
        sigma: float
        smoothing: float
        surrogate: bool
        training_size: int
        uncertain: int
        weight: Sequence[float]


# What other packages call our keywords.
OTHER_NAMES = {
    "maxfev": (
        "budget max_eval max_evals max_evaluations max_fev max_iter max_nfev maxeval maxevals "
        "maxfun maxiter n_calls n_evals n_evaluations n_iter n_iterations n_trials nfev niter "
        "num_evals num_samples num_trials iterations trials"
    ),
    "rng": "random_seed random_state seed",
    "workers": "jobs max_workers n_jobs n_workers num_workers parallel processes threads",
    "maxtime": "deadline max_seconds max_time time_budget time_limit",
    "target": "f_target fmin ftarget goal stop_fitness target_value value_to_reach vtr",
    "patience": "early_stopping n_iter_no_change stall",
    "patience_tolerance": "atol f_tol ftol min_delta tol tolerance",
    "x0": "initial initial_point initial_points start start_points x_0 x_init",
    "known": "evaluated history observations warm_start",
    "from_": "previous transfer warm_start_from",
    "space": "dimensions domain param_distributions parameters params search_space",
    "bounds": "bound limits",
    "fun": "f func function objective",
    "constraints": "constraint cons",
    "method": "algo optimizer sampler solver strategy",
    "study": "directory folder out_dir output study_dir storage",
    "disp": "progress progress_bar show_progress verbose verbosity",
    "callback": "callbacks on_step",
    "vectorized": "batch vectorize",
    "timeout": "eval_timeout",
    "population": "lambda_ pop_size popsize population_size",
    "sigma": "sigma0 std",
    "integrality": "integer integers",
}
RIGHT = {other: name for name, others in OTHER_NAMES.items() for other in others.split()}


def check(options: Iterable[str], keywords: Iterable[str]) -> None:
    """Refuses what is neither a keyword nor a setting of any method, and says what is meant.

    >>> check(["population"], ["maxfev"])
    >>> check(["n_trials"], ["maxfev"])
    Traceback (most recent call last):
    ...
    TypeError: there is no keyword `n_trials`; it is called `maxfev` here
    >>> check(["maxfevv"], ["maxfev"])
    Traceback (most recent call last):
    ...
    TypeError: there is no keyword `maxfevv`; did you mean `maxfev`?
    """
    settings = known_settings()
    names = {*keywords, *settings}
    for option in options:
        if option in settings:
            continue
        text = f"there is no keyword `{option}`"
        if option == "direction" or option.startswith("maxim"):
            raise TypeError(f"{text}; racecars.minimize minimizes, and racecars.maximize maximizes")
        if RIGHT.get(option) in names:
            raise TypeError(f"{text}; it is called `{RIGHT[option]}` here")
        near = difflib.get_close_matches(option, sorted(names), 1)
        if near:
            raise TypeError(f"{text}; did you mean `{near[0]}`?")
        ways = ", ".join(sorted(keywords))
        raise TypeError(
            f"{text}; there are {ways}, and the settings of the method (racecars.settings)"
        )


def known_settings() -> set[str]:
    """The settings of all methods."""
    return {name for method in _core.METHODS for name in _core.settings(method)}


def plain(options: Any) -> dict[str, Any]:
    """Options as a dict, which a type checker cannot see into."""
    return dict(options)
