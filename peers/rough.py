"""Rough and smooth functions of integers and bits with few evaluations: `auto` beside its members.

    .venv-python/bin/python -m peers.rough [--half report] [--instances K] [--methods auto,gp]

Integers from -10 to 10, or bits. Each instance of a function has its optimum at another random
point; its number is also the seed. Functions and instances of one half are for choosing settings,
those of the other for reporting. Printed are mean ranks of the value found, 1 for the least, ties
have the mean of their ranks.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import racecars
from peers.bits.problems import knapsack, maxsat, nk
from peers.few.ranks import ranks_of
from peers.field.report import markdown
from peers.processes import Progress

Function = Callable[[Any], float]
Random = np.random.Generator
HIGH = 10


def shifted(function: Callable[[Any], Any]) -> Callable[[Random, int], Function]:
    """A function of the differences from a random point, divided by 10."""

    def make(random: Random, n: int) -> Function:
        optimum = random.integers(-HIGH // 2, HIGH // 2 + 1, n)
        return lambda x: float(function((np.asarray(x) - optimum) / HIGH))

    return make


def rotated(function: Callable[[Any], Any]) -> Callable[[Random, int], Function]:
    def make(random: Random, n: int) -> Function:
        rotation, _ = np.linalg.qr(random.normal(size=(n, n)))
        return shifted(lambda z: function(rotation @ z))(random, n)

    return make


def waves(z: Any) -> Any:
    """A bowl with valleys 3.7 steps apart."""
    return (10 * z**2 + 1 - np.cos(2 * np.pi * z * HIGH / 3.7)).sum()


def weights(z: Any) -> Any:
    return 1000 ** np.linspace(0, 1, len(z))


def table(random: Random, n: int) -> Function:
    """A number for each value of each coordinate: no order at all."""
    numbers = random.random((n, 2 * HIGH + 1))
    return lambda x: float(numbers[np.arange(n), np.asarray(x, dtype=int) + HIGH].sum())


def leading(random: Random, n: int) -> Function:
    """LeadingOnes: the bits after the first wrong one."""
    optimum = random.integers(0, 2, n)
    return lambda x: float(n - np.cumprod(np.asarray(x) == optimum).sum())


def linear(random: Random, n: int) -> Function:
    optimum, prices = random.integers(0, 2, n), random.random(n)
    return lambda x: float(prices[np.asarray(x) != optimum].sum())


def traps(random: Random, n: int) -> Function:
    """Blocks of four: all right is best, and fewer right ones lead away from it."""
    optimum = random.integers(0, 2, n)

    def function(x: Any) -> float:
        right = (np.asarray(x) == optimum)[: n - n % 4].reshape(-1, 4).sum(axis=1)
        return float(np.where(right == 4, 0, 1 + right).sum())

    return function


def ridged(random: Random, n: int) -> Function:
    """The number of wrong bits, and a price if it is odd: single changes make it worse."""
    optimum = random.integers(0, 2, n)

    def function(x: Any) -> float:
        wrong = int((np.asarray(x) != optimum).sum())
        return float(wrong + (1.5 if wrong % 2 else 0))

    return function


# By half: the function, its dimension, and whether it is one of bits.
PROBLEMS: dict[str, dict[str, tuple[Callable[[Random, int], Function], int, bool]]] = {
    "choose": {
        "sphere": (shifted(lambda z: (z**2).sum()), 15, False),
        "rastrigin": (shifted(waves), 10, False),
        "rotated ellipsoid": (rotated(lambda z: (weights(z) * z**2).sum()), 10, False),
        "steps": (shifted(lambda z: np.floor(4 * np.abs(z)).sum()), 15, False),
        "leading ones": (leading, 30, True),
        "nk": (nk, 30, True),
        "linear": (linear, 30, True),
    },
    "report": {
        "ellipsoid": (shifted(lambda z: (weights(z) * z**2).sum()), 15, False),
        "rotated rastrigin": (rotated(waves), 10, False),
        "ackley": (
            shifted(
                lambda z: (
                    -20 * math.exp(-2 * math.sqrt((z**2).mean()))
                    - math.exp(np.cos(2 * np.pi * z * HIGH / 3.1).mean())
                )
            ),
            10,
            False,
        ),
        "table": (table, 10, False),
        "traps": (traps, 32, True),
        "ridged": (ridged, 30, True),
        "maxsat": (maxsat, 30, True),
        "knapsack": (knapsack, 30, True),
    },
}
FIRST_INSTANCE = {"choose": 0, "report": 100}


def found(half: str, name: str, instance: int, method: str, budget: int) -> float:
    """The best value of a run."""
    make, n, has_bits = PROBLEMS[half][name]
    function = make(np.random.default_rng([instance, n]), n)
    bounds = [(0, 1) if has_bits else (-HIGH, HIGH)] * n
    result = racecars.minimize(
        function, bounds, integrality=True, maxfev=budget, rng=instance, method=method
    )
    return float(result.fun)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m peers.rough",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--half", choices=PROBLEMS, default="choose")
    parser.add_argument("--instances", metavar="K", type=int, default=5)
    parser.add_argument("--budgets", metavar="T,..", default="100,300")
    parser.add_argument("--methods", metavar="A,..", default="auto,gp,race-cars,evolution,random")
    parser.add_argument("--json", action="store_true", help="print the values found")
    options = parser.parse_args()
    methods: list[str] = options.methods.split(",")
    budgets = [int(budget) for budget in options.budgets.split(",")]
    names = list(PROBLEMS[options.half])
    first = FIRST_INSTANCE[options.half]
    instances = range(first, first + options.instances)

    progress = Progress("rough", len(names) * len(budgets) * len(methods))
    values: dict[tuple[int, str], dict[str, list[float]]] = {}
    for budget in budgets:
        for name in names:
            of_method = values.setdefault((budget, name), {})
            for method in methods:
                of_method[method] = [
                    found(options.half, name, instance, method, budget) for instance in instances
                ]
                progress.step(f"{method} on {name}, T = {budget}")
    if options.json:
        print(
            json.dumps([{"budget": b, "problem": name, **by} for (b, name), by in values.items()])
        )
        return
    for budget in budgets:
        means = {
            name: mean_ranks([values[budget, name][method] for method in methods]) for name in names
        }
        means["mean"] = [statistics.fmean(column) for column in zip(*means.values(), strict=True)]
        rows = [[name, *(f"{rank:.2f}" for rank in ranks)] for name, ranks in means.items()]
        print(f"T = {budget}, {options.half}, {len(instances)} instances\n")
        print(markdown(["mean rank", *methods], rows) + "\n")


def mean_ranks(found: list[list[float]]) -> list[float]:
    """The mean rank of each method over the instances, by the values that each has found."""
    runs = zip(*found, strict=True)
    ranks = [ranks_of([round(value, 9) for value in run]) for run in runs]
    return [statistics.fmean(column) for column in zip(*ranks, strict=True)]


if __name__ == "__main__":
    main()
