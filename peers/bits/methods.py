"""Ours and the others on bits and categories. Each is called with a problem, a function that raises
`Stop` when the budget is used, the budget and a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from peers.bits.problems import Function, Problem
from peers.field.optimizers import method_of

Method = Callable[[Problem, Function, int, int], None]


def random_search(problem: Problem, evaluate: Function, budget: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(budget):
        evaluate(random.integers(0, problem.values, problem.count))


def falling_ea(problem: Problem, evaluate: Function, budget: int, seed: int) -> None:
    """A (1+1) EA whose mutation rate falls from 0.2 to 1/n."""
    random = np.random.default_rng(seed)
    n, values = problem.count, problem.values
    x = random.integers(0, values, n)
    best = evaluate(x)
    for step in range(1, budget):
        rate = max(1 / n, 0.2 * (1 - step / budget) ** 4)
        changed = random.random(n) < rate
        if not changed.any():
            changed[random.integers(n)] = True
        other = (x + random.integers(1, values, n)) % values
        y = np.where(changed, other, x)
        if (value := evaluate(y)) <= best:
            x, best = y, value


def heavy_tailed_ea(problem: Problem, evaluate: Function, budget: int, seed: int) -> None:
    """The fast GA of Doerr et al. (2017): a power law of mutation rates, exponent 1.5."""
    random = np.random.default_rng(seed)
    n, values = problem.count, problem.values
    sizes = np.arange(1, n // 2 + 1)
    law = sizes**-1.5 / (sizes**-1.5).sum()
    x = random.integers(0, values, n)
    best = evaluate(x)
    for _ in range(1, budget):
        changed = random.random(n) < random.choice(sizes, p=law) / n
        if not changed.any():
            changed[random.integers(n)] = True
        y = np.where(changed, (x + random.integers(1, values, n)) % values, x)
        if (value := evaluate(y)) <= best:
            x, best = y, value


def pymoo_ga(problem: Problem, evaluate: Function, budget: int, seed: int) -> None:
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.operators.crossover.pntx import TwoPointCrossover
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.bitflip import BitflipMutation
    from pymoo.operators.mutation.pm import PM
    from pymoo.operators.repair.rounding import RoundingRepair
    from pymoo.operators.sampling.rnd import BinaryRandomSampling, IntegerRandomSampling
    from pymoo.optimize import minimize

    class Wrapped(ElementwiseProblem):  # type: ignore[misc]
        def _evaluate(self, x: Any, out: Any, *_: Any, **__: Any) -> None:
            out["F"] = evaluate(np.asarray(x, dtype=int))

    bounds = {"xl": 0, "xu": problem.values - 1, "vtype": int}
    wrapped = Wrapped(n_var=problem.count, n_obj=1, **bounds)
    if problem.values == 2:
        parts = {
            "sampling": BinaryRandomSampling(),
            "crossover": TwoPointCrossover(),
            "mutation": BitflipMutation(),
        }
    else:
        parts = {
            "sampling": IntegerRandomSampling(),
            "crossover": SBX(vtype=float, repair=RoundingRepair()),
            "mutation": PM(vtype=float, repair=RoundingRepair()),
        }
    size = min(100, max(10, budget // 20))
    ga = GA(pop_size=size, eliminate_duplicates=True, **parts)
    minimize(wrapped, ga, ("n_eval", budget), seed=seed, verbose=False)


def ngopt(problem: Problem, evaluate: Function, budget: int, seed: int) -> None:
    import nevergrad

    domain = nevergrad.p.TransitionChoice(range(problem.values), repetitions=problem.count)
    domain.random_state.seed(seed)
    optimizer = nevergrad.optimizers.NGOpt(domain, budget=budget)
    for _ in range(budget):
        candidate = optimizer.ask()
        optimizer.tell(candidate, evaluate(np.array(candidate.value)))


def zoopt_sracos(problem: Problem, evaluate: Function, budget: int, seed: int) -> None:
    from zoopt import Dimension, Objective, Opt, Parameter
    from zoopt.utils.tool_function import ToolFunction

    ToolFunction.log = staticmethod(lambda text: None)  # it prints every solution
    np.random.seed(seed)  # the only generator that zoopt has
    n = problem.count
    space = Dimension(n, [[0, problem.values - 1]] * n, [False] * n, [False] * n)
    wrapped = Objective(lambda solution: evaluate(np.array(solution.get_x())), space)
    Opt.min(wrapped, Parameter(budget=budget))


def optuna_tpe(problem: Problem, evaluate: Function, budget: int, seed: int) -> None:
    import optuna
    from optuna.distributions import CategoricalDistribution

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    domain = CategoricalDistribution(tuple(range(problem.values)))
    domains: dict[str, Any] = {f"x{i}": domain for i in range(problem.count)}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    for _ in range(budget):
        trial = study.ask(domains)
        study.tell(trial, evaluate(np.array([trial.params[name] for name in domains])))


def ours(name: str) -> Method:
    """One of our algorithms, with settings as in `peers.field.optimizers.method_of`."""

    def search(problem: Problem, evaluate: Function, budget: int, seed: int) -> None:
        import racecars

        method, options = method_of(name)
        keywords: dict[str, Any] = {"maxfev": budget, "rng": seed, "method": method, **options}
        if problem.values == 2:
            n = problem.count
            racecars.minimize(evaluate, [(0, 1)] * n, integrality=[True] * n, **keywords)
        else:
            names = [f"x{i}" for i in range(problem.count)]
            space = {name: list(range(problem.values)) for name in names}

            def by_name(config: dict[str, int]) -> float:
                return evaluate(np.array([config[name] for name in names]))

            racecars.minimize(by_name, space=space, **keywords)

    return search


# With their packages.
PEERS: dict[str, tuple[Method, str]] = {
    "falling-ea": (falling_ea, "numpy"),
    "heavy-tailed-ea": (heavy_tailed_ea, "numpy"),
    "pymoo-ga": (pymoo_ga, "pymoo"),
    "ngopt": (ngopt, "nevergrad"),
    "zoopt": (zoopt_sracos, "zoopt"),
    "optuna-tpe": (optuna_tpe, "optuna"),
    "random-search": (random_search, "numpy"),
}
# Those that take minutes for a run of 100n.
SLOW = ("ngopt", "zoopt", "optuna-tpe")
