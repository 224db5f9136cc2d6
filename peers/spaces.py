"""Spaces with conditions, constraints, orders and selections: ours beside Optuna, SMAC and random
search.

    ./scripts/venv bench && ./scripts/wheel --into .venv-bench
    .venv-bench/bin/python -m peers.spaces [--first S] [--seeds K] [--problems a,b] [--methods a,b]
        [--quick] [--json]

prints docs/spaces.md's table: the mean final value, by problem, with the number of instances in its
row. Each seed is another instance, with its optimum or its cities at random places. Optuna says
conditions by its define-by-run code, SMAC by conditions of its configuration space; known
constraints are `constraints_func` of Optuna's TPE, and a cost worse than any other for SMAC and
Optuna's CMA-ES (a point that breaks one costs a trial there, and its value does not count); orders
and selections are random keys, which are sorted. SMAC has its random forest, which is its choice
for conditions and many trials. It takes about a second per trial, so it has as many instances as
make `SMAC_TRIALS` trials, and its cell says how many.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import racecars
from peers.field.report import markdown
from peers.processes import Progress
from racecars import Permutation, Subset, when
from racecars.space import When

Params = dict[str, Any]


@dataclass
class Problem:
    """A problem: our space, what Optuna's trial suggests, and the objective."""

    name: str
    budget: int
    space: Params
    suggest: Callable[[Any], Params]
    objective: Callable[[Params], float]
    where: tuple[str, ...] = ()
    violation: Callable[[Params], float] | None = None
    seeds: int = 5
    """The number of instances."""
    keys: int = 0
    """The number of random keys that SMAC and Optuna have."""


def tree(seed: int) -> Problem:
    """Three levels of conditions: a model, its variant, and the settings of that variant."""
    random = np.random.default_rng(seed)
    names = [f"{m}{v}" for m in "abc" for v in "xyz"]
    worth = dict(zip(names, random.permutation(9) / 9.0))
    centre = {name: random.uniform(0.1, 0.9, 2) for name in names}
    space: Params = {"model": ["a", "b", "c"]}
    for m in "abc":
        space[f"variant_{m}"] = when(f"model = {m}", ["x", "y", "z"])
        for v in "xyz":
            for i in range(2):
                space[f"p_{m}{v}{i}"] = when(f"variant_{m} = {v}", (0.0, 1.0))

    def suggest(trial: Any) -> Params:
        m = trial.suggest_categorical("model", ["a", "b", "c"])
        v = trial.suggest_categorical(f"variant_{m}", ["x", "y", "z"])
        found = {"model": m, f"variant_{m}": v}
        names = [f"p_{m}{v}{i}" for i in range(2)]
        return {**found, **{name: trial.suggest_float(name, 0, 1) for name in names}}

    def objective(p: Params) -> float:
        m = p["model"]
        leaf = m + p[f"variant_{m}"]
        x = np.array([p[f"p_{leaf}{i}"] for i in range(2)])
        return float(worth[leaf] + 4 * ((x - centre[leaf]) ** 2).sum())

    return Problem("conditions, 3 levels", 100, space, suggest, objective, seeds=20)


def forbidden(seed: int) -> Problem:
    """Ten reals of which about 1 % of the box is allowed, with the optimum on the boundary."""
    centre = np.random.default_rng(seed).uniform(0, 1, 10)
    names = [f"x{i}" for i in range(10)]
    total = " + ".join(names)

    def vector(p: Params) -> Any:
        return np.array([p[name] for name in names])

    def violation(p: Params) -> float:
        x = vector(p)
        return float(max(x.sum() - 3.2, 0) + max(1 - x[0] - x[1], 0))

    return Problem(
        "99 % forbidden",
        300,
        dict.fromkeys(names, (0.0, 1.0)),
        lambda trial: {name: trial.suggest_float(name, 0, 1) for name in names},
        lambda p: float(((vector(p) - centre) ** 2).sum()),
        (f"{total} <= 3.2", "x0 + x1 >= 1"),
        violation,
    )


def keyed(count: int, take: int | None = None) -> Callable[[Any], Params]:
    """Random keys: the order of some floats, or the places of the largest."""

    def suggest(trial: Any) -> Params:
        keys = [trial.suggest_float(f"k{i}", 0, 1) for i in range(count)]
        order = [int(i) for i in np.argsort(keys)]
        return {"order": order if take is None else order[:take]}

    return suggest


def tour(seed: int) -> Problem:
    cities = np.random.default_rng(seed).uniform(0, 1, (50, 2))

    def length(p: Params) -> float:
        path = cities[p["order"]]
        return float(np.linalg.norm(path - np.roll(path, 1, axis=0), axis=1).sum())

    space = {"order": Permutation(50)}
    return Problem("tour, 50 cities", 1000, space, keyed(50), length, keys=50)


def flow_shop(seed: int) -> Problem:
    times = np.random.default_rng(seed).integers(1, 100, (20, 5))

    def makespan(p: Params) -> float:
        end = np.zeros(5)
        for job in p["order"]:
            before = 0.0
            for machine in range(5):
                before = end[machine] = max(end[machine], before) + times[job, machine]
        return float(end[-1])

    space = {"order": Permutation(20)}
    return Problem("flow shop, 20 x 5", 500, space, keyed(20), makespan, keys=20)


def selection(seed: int) -> Problem:
    gain = np.random.default_rng(seed).uniform(-1, 1, (50, 50))

    def cost(p: Params) -> float:
        return float(gain[np.ix_(p["order"], p["order"])].sum())

    space = {"order": Subset(range(50), 10)}
    return Problem("selection, 10 of 50", 500, space, keyed(50, 10), cost, keys=50)


PROBLEMS = (tree, forbidden, tour, flow_shop, selection)


def ours(method: str, problem: Problem, seed: int) -> float:
    res = racecars.minimize(
        problem.objective,
        space=problem.space,
        where=problem.where,
        maxfev=problem.budget,
        rng=seed,
        method=method,
    )
    return res.fun


# The cost of a point that breaks a constraint, for methods that know none: worse than all others.
FORBIDDEN = 1e3


def theirs(name: str, problem: Problem, seed: int) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def violations(trial: Any) -> list[float]:
        return [trial.user_attrs["violation"]]

    constraints = violations if problem.violation else None
    samplers: dict[str, Callable[[], Any]] = {
        "optuna-tpe": lambda: optuna.samplers.TPESampler(seed=seed, constraints_func=constraints),
        "optuna-cma": lambda: optuna.samplers.CmaEsSampler(
            seed=seed, warn_independent_sampling=False
        ),
        "optuna-random": lambda: optuna.samplers.RandomSampler(seed=seed),
    }
    best = [float("inf")]

    def objective(trial: Any) -> float:
        params = problem.suggest(trial)
        violation = problem.violation(params) if problem.violation else 0.0
        trial.set_user_attr("violation", violation)
        value = problem.objective(params)
        if violation <= 0:
            best[0] = min(best[0], value)
        elif name == "optuna-cma":
            return FORBIDDEN + violation
        return value

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some of it is experimental
        study = optuna.create_study(sampler=samplers[name]())
        study.optimize(objective, n_trials=problem.budget)
    return best[0]


class Suggested:
    """What Optuna's trial is to `Problem.suggest`, for a configuration of SMAC."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def suggest_float(self, name: str, low: float, high: float) -> float:
        return float(self.config[name])

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        return self.config[name]


def smac(problem: Problem, seed: int) -> float:
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    space = ConfigurationSpace(seed=seed)
    if problem.keys:
        space.add([Float(f"k{i}", (0.0, 1.0)) for i in range(problem.keys)])
    for name, given in {} if problem.keys else problem.space.items():
        plain = given.given if isinstance(given, When) else given
        is_choice = isinstance(plain, list)
        space.add(Categorical(name, plain) if is_choice else Float(name, plain))
        if isinstance(given, When):
            parent, wanted = given.condition.split(" = ")
            space.add(EqualsCondition(space[name], space[parent], wanted))
    best = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space,
            n_trials=problem.budget,
            deterministic=True,
            seed=seed,
            output_directory=folder,  # type: ignore[arg-type, unused-ignore]
        )
        optimizer = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=50
        )
        for _ in range(problem.budget):
            trial = optimizer.ask()
            params = problem.suggest(Suggested(trial.config))
            violation = problem.violation(params) if problem.violation else 0.0
            value = problem.objective(params) if violation <= 0 else FORBIDDEN + violation
            if violation <= 0:
                best = min(best, value)
            optimizer.tell(trial, TrialValue(cost=value))
    return best


METHODS: dict[str, Callable[[Problem, int], float]] = {
    "auto": lambda problem, seed: ours("auto", problem, seed),
    "race-cars": lambda problem, seed: ours("race-cars", problem, seed),
    "random": lambda problem, seed: ours("random", problem, seed),
    "optuna-tpe": lambda problem, seed: theirs("optuna-tpe", problem, seed),
    "optuna-cma": lambda problem, seed: theirs("optuna-cma", problem, seed),
    "optuna-random": lambda problem, seed: theirs("optuna-random", problem, seed),
    "smac": smac,
}
# The trials that SMAC has of a problem, at most.
SMAC_TRIALS = 500


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m peers.spaces", description=__doc__)
    parser.add_argument("--seeds", metavar="K", type=int, help="instances of each problem")
    parser.add_argument("--first", metavar="S", type=int, default=0, help="the first seed")
    parser.add_argument("--problems", metavar="a,b", help="problems whose names begin so; all")
    parser.add_argument("--methods", metavar="a,b", default=",".join(METHODS))
    parser.add_argument("--quick", action="store_true", help="one seed, a fifth of the budget")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    methods = {name: METHODS[name] for name in options.methods.split(",")}
    prefixes = tuple((options.problems or "").split(","))
    problems = [make for make in PROBLEMS if make(0).name.startswith(prefixes)]
    progress = Progress("spaces", float(len(problems) * len(methods)))
    found: dict[str, dict[str, list[float]]] = {}
    for make in problems:
        first = make(options.first)
        seeds = 1 if options.quick else options.seeds or first.seeds
        budget = first.budget // 5 if options.quick else first.budget
        row = f"{first.name}, T = {budget}, {seeds} instances"
        for method, run in methods.items():
            values = found.setdefault(row, {}).setdefault(method, [])
            count = min(seeds, SMAC_TRIALS // budget) if method == "smac" else seeds
            for seed in range(options.first, options.first + count):
                problem = make(seed)
                problem.budget = budget
                values.append(run(problem, seed))
            progress.step(f"{first.name}, {method}", 1.0)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    rows = [
        [row, *(cell(values, by_method) for values in by_method.values())]
        for row, by_method in found.items()
    ]
    print(markdown(["mean final value", *methods], rows))


def cell(values: list[float], by_method: dict[str, list[float]]) -> str:
    """The mean; with the number of instances, where it is not that of the row."""
    if not values:
        return "-"
    is_whole = len(values) == max(map(len, by_method.values()))
    few = "" if is_whole else f" (of {len(values)})"
    return f"{statistics.mean(values):.4g}{few}"


if __name__ == "__main__":
    main()
