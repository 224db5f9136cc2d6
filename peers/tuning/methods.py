"""Ours and the others in mixed spaces. Each is called with a space, a function of configurations
that raises `Stop` when the budget is used, the budget and a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from peers.field.optimizers import method_of
from peers.tuning.tasks import Evaluate, Number, Options, Space, sampled

Method = Callable[[Space, Evaluate, int, int], None]


def random_search(space: Space, evaluate: Evaluate, budget: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(budget):
        evaluate(sampled(space, random))


def optuna_search(sampler: str) -> Method:
    def search(space: Space, evaluate: Evaluate, budget: int, seed: int) -> None:
        import optuna
        from optuna import distributions

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        domains: dict[str, Any] = {}
        for name, parameter in space.items():
            if isinstance(parameter, Options):
                domains[name] = distributions.CategoricalDistribution(parameter.values)
            elif parameter.is_integer:
                low, high = int(parameter.low), int(parameter.high)
                domains[name] = distributions.IntDistribution(low, high, log=parameter.is_log)
            else:
                domains[name] = distributions.FloatDistribution(
                    parameter.low, parameter.high, log=parameter.is_log
                )
        study = optuna.create_study(sampler=getattr(optuna.samplers, sampler)(seed=seed))
        for _ in range(budget):
            trial = study.ask(domains)
            study.tell(trial, evaluate(trial.params))

    return search


def ngopt(space: Space, evaluate: Evaluate, budget: int, seed: int) -> None:
    import nevergrad

    def made(parameter: Number | Options) -> Any:
        if isinstance(parameter, Options):
            return nevergrad.p.Choice(list(parameter.values))
        kind = nevergrad.p.Log if parameter.is_log else nevergrad.p.Scalar
        scalar = kind(lower=parameter.low, upper=parameter.high)
        return scalar.set_integer_casting() if parameter.is_integer else scalar

    domain = nevergrad.p.Dict(**{name: made(parameter) for name, parameter in space.items()})
    domain.random_state.seed(seed)
    optimizer = nevergrad.optimizers.NGOpt(domain, budget=budget)
    for _ in range(budget):
        candidate = optimizer.ask()
        optimizer.tell(candidate, evaluate(candidate.value))


def ours(name: str) -> Method:
    """One of our algorithms, with settings as in `peers.field.optimizers.method_of`."""

    def search(space: Space, evaluate: Evaluate, budget: int, seed: int) -> None:
        import racecars

        def made(parameter: Number | Options) -> Any:
            if isinstance(parameter, Options):
                return racecars.Choice(list(parameter.values))
            if parameter.is_integer:
                low, high = int(parameter.low), int(parameter.high)
                return racecars.Integer(low, high, log=parameter.is_log)
            return racecars.Real(parameter.low, parameter.high, log=parameter.is_log)

        method, options = method_of(name)
        racecars.minimize(
            evaluate,
            space={name: made(parameter) for name, parameter in space.items()},
            maxfev=budget,
            rng=seed,
            method=method,
            **options,
        )

    return search


# With their packages, and whether a longer run has the results of shorter ones.
PEERS: dict[str, tuple[Method, str, bool]] = {
    "random-search": (random_search, "numpy", True),
    "optuna-tpe": (optuna_search("TPESampler"), "optuna", True),
    "optuna-gp": (optuna_search("GPSampler"), "optuna", True),
    "ngopt": (ngopt, "nevergrad", False),
}
