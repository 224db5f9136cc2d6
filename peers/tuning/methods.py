"""Ours and the others in mixed spaces. Each is called with a space, a function of configurations
that raises `Stop` when the budget is used, the budget and a seed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from peers.field.optimizers import method_of
from peers.tuning.tasks import Config, Evaluate, Options, Parameter, Space, is_active, sampled

Method = Callable[[Space, Evaluate, int, int], None]


def random_search(space: Space, evaluate: Evaluate, budget: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(budget):
        evaluate(sampled(space, random))


def optuna_search(sampler: str) -> Method:
    """A sampler of Optuna, which learns of conditions by what is suggested."""

    def search(space: Space, evaluate: Evaluate, budget: int, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)

        def suggest(trial: Any, name: str, parameter: Parameter) -> Any:
            if isinstance(parameter, Options):
                return trial.suggest_categorical(name, parameter.values)
            low, high, is_log = parameter.low, parameter.high, parameter.is_log
            if parameter.is_integer:
                return trial.suggest_int(name, int(low), int(high), log=is_log)
            return trial.suggest_float(name, low, high, log=is_log)

        study = optuna.create_study(sampler=getattr(optuna.samplers, sampler)(seed=seed))
        for _ in range(budget):
            trial = study.ask()
            config: Config = {}
            for name, parameter in space.items():
                if is_active(parameter, config):
                    config[name] = suggest(trial, name, parameter)
            study.tell(trial, evaluate(config))

    return search


def smac(space: Space, evaluate: Evaluate, budget: int, seed: int) -> None:
    """SMAC3's facade for tuning: a random forest."""
    import ConfigSpace
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    def made(name: str, parameter: Parameter) -> Any:
        if isinstance(parameter, Options):
            return ConfigSpace.CategoricalHyperparameter(name, list(parameter.values))
        low, high, is_log = parameter.low, parameter.high, parameter.is_log
        if parameter.is_integer:
            return ConfigSpace.Integer(name, (int(low), int(high)), log=is_log)
        return ConfigSpace.Float(name, (low, high), log=is_log)

    domain = ConfigSpace.ConfigurationSpace(seed=seed)
    domain.add([made(name, parameter) for name, parameter in space.items()])
    for name, parameter in space.items():
        if parameter.condition is not None:
            parent, values = parameter.condition.name, list(parameter.condition.values)
            domain.add(ConfigSpace.InCondition(domain[name], domain[parent], values))
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            domain,
            n_trials=budget,
            deterministic=True,
            seed=seed,
            output_directory=folder,  # type: ignore[arg-type, unused-ignore]
        )
        optimizer = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=50
        )
        for _ in range(budget):
            trial = optimizer.ask()
            optimizer.tell(trial, TrialValue(cost=evaluate(dict(trial.config))))


def hebo(space: Space, evaluate: Evaluate, budget: int, seed: int) -> None:
    """HEBO with its defaults; it has no conditions, so the space is flat."""
    import torch
    from hebo.design_space.design_space import DesignSpace
    from hebo.optimizers.hebo import HEBO

    def made(name: str, parameter: Parameter) -> dict[str, Any]:
        if isinstance(parameter, Options):
            return {"name": name, "type": "cat", "categories": list(parameter.values)}
        kind = {
            (False, False): "num",
            (False, True): "pow",
            (True, False): "int",
            (True, True): "pow_int",
        }[parameter.is_integer, parameter.is_log]
        return {"name": name, "type": kind, "lb": parameter.low, "ub": parameter.high}

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    np.random.seed(seed)
    domain = DesignSpace().parse([made(name, parameter) for name, parameter in space.items()])
    optimizer = HEBO(domain, scramble_seed=seed)
    for _ in range(budget):
        frame = optimizer.suggest(n_suggestions=1)
        value = evaluate({name: frame[name].iloc[0] for name in space})
        optimizer.observe(frame, np.array([[value]]))


def ngopt(space: Space, evaluate: Evaluate, budget: int, seed: int) -> None:
    """nevergrad's NGOpt; conditions are not told to it."""
    import nevergrad

    def made(parameter: Parameter) -> Any:
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

        def domain(parameter: Parameter) -> Any:
            if isinstance(parameter, Options):
                return racecars.Choice(list(parameter.values))
            if parameter.is_integer:
                low, high = int(parameter.low), int(parameter.high)
                return racecars.Integer(low, high, log=parameter.is_log)
            return racecars.Real(parameter.low, parameter.high, log=parameter.is_log)

        def made(parameter: Parameter) -> Any:
            condition = parameter.condition
            return (
                racecars.when(condition.text, domain(parameter)) if condition else domain(parameter)
            )

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
    "smac": (smac, "smac", False),
    "hebo": (hebo, "HEBO", True),
}
