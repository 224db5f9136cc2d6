"""Orders and selections with few evaluations: `auto` beside local search, the Gaussian process and
random search.

    .venv-python/bin/python -m peers.moves [--first S] [--seeds K] [--budgets 30,100,300] [--json]

prints the mean final value without its noise, by problem and budget. Each seed is another instance.
`auto`'s rule was chosen by seeds 0 to 5; docs/auto.md has others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import racecars
from peers.field.report import markdown
from peers.processes import Progress
from racecars import Permutation, Subset

METHODS = ("auto", "local-search", "gp", "random")
Params = dict[str, Any]


@dataclass
class Problem:
    space: Params
    value: Callable[[Params], float]
    """Without noise."""
    deviation: float = 0.0
    """Of the noise, in multiples of the value if it is `relative`."""
    relative: bool = False


def tour(seed: int, cities: int) -> Problem:
    """The length of a tour."""
    places = np.random.default_rng(seed).uniform(size=(cities, 2))

    def value(params: Params) -> float:
        visited = places[params["order"]]
        return float(np.linalg.norm(visited - np.roll(visited, 1, axis=0), axis=1).sum())

    return Problem({"order": Permutation(list(range(cities)))}, value)


def selection(seed: int, items: int, size: int) -> Problem:
    """Items with a worth each, and one for each pair."""
    random = np.random.default_rng(seed)
    worth, pairs = random.normal(size=items), 0.5 * random.normal(size=(items, items))

    def value(params: Params) -> float:
        chosen = np.zeros(items)
        chosen[list(params["items"])] = 1.0
        return -float(worth @ chosen + chosen @ pairs @ chosen / 2)

    return Problem({"items": Subset(list(range(items)), size)}, value)


def prompt(seed: int, deviation: float = 0.0) -> Problem:
    """An instruction, a temperature, four examples of twelve and their order."""
    random = np.random.default_rng(seed)
    instructions, best = random.uniform(size=6), random.uniform()
    worth, late = 0.1 * random.normal(size=12), 0.05 * random.normal(size=12)

    def value(params: Params) -> float:
        chosen = set(params["pick"])
        order = [item for item in params["order"] if item in chosen]
        gain = sum(worth[item] + late[item] * place / 3 for place, item in enumerate(order))
        heat = 0.3 * abs(params["temperature"] - best)
        return float(instructions[params["instruction"]] + heat - gain)

    space: Params = {"instruction": racecars.Choice(list(range(6))), "temperature": (0.0, 1.0)}
    space |= {"pick": Subset(list(range(12)), 4), "order": Permutation(list(range(12)))}
    return Problem(space, value, deviation)


def database(seed: int, deviation: float = 0.0) -> Problem:
    """Settings, and any of six indexes, some of which do harm."""
    random = np.random.default_rng(seed)
    pages, cache, journal = random.integers(0, 5, size=3)
    cost, share = 4.0 * random.normal(size=6), random.uniform()

    def value(params: Params) -> float:
        settings = 4 * abs(params["pages"] - pages) + 3 * abs(params["cache"] - cache)
        settings += 5 * (params["journal"] != journal) + 8 * abs(params["share"] - share)
        indexes = cost[list(params["indexes"])].sum() - np.minimum(cost, 0).sum()
        return float(20 + settings + indexes)

    space: Params = {"pages": range(5), "cache": range(5), "share": (0.0, 1.0)}
    space |= {"journal": racecars.Choice(list(range(5))), "indexes": Subset(list(range(6)), (0, 6))}
    return Problem(space, value, deviation, relative=True)


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "tour of 10": lambda seed: tour(seed, 10),
    "tour of 30": lambda seed: tour(seed, 30),
    "5 of 20": lambda seed: selection(seed, 20, 5),
    "10 of 40": lambda seed: selection(seed, 40, 10),
    "prompt": prompt,
    "prompt, noisy": lambda seed: prompt(seed, 0.15),
    "database": database,
    "database, noisy": lambda seed: database(seed, 0.15),
}


def found(problem: Problem, method: str, budget: int, seed: int) -> float:
    random = np.random.default_rng(seed + 1000)

    def objective(params: Params) -> float:
        value = problem.value(params)
        scale = value if problem.relative else 1.0
        return float(value + scale * problem.deviation * random.normal())

    result = racecars.minimize(
        objective, space=problem.space, maxfev=budget, rng=seed, method=method
    )
    return problem.value(result.params)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m peers.moves",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--first", metavar="S", type=int, default=100, help="the first seed")
    parser.add_argument("--seeds", metavar="K", type=int, default=10, help="the number of seeds")
    parser.add_argument("--budgets", metavar="T,..", default="30,100,300", help="evaluations")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    budgets = [int(budget) for budget in options.budgets.split(",")]
    seeds = range(options.first, options.first + options.seeds)

    rows: list[dict[str, Any]] = []
    progress = Progress("moves", len(budgets) * len(PROBLEMS) * len(METHODS))
    for budget in budgets:
        for name, make in PROBLEMS.items():
            row: dict[str, Any] = {"evaluations": budget, "problem": name}
            for method in METHODS:
                row[method] = float(np.mean([found(make(s), method, budget, s) for s in seeds]))
                progress.step(f"{method}, {name}")
            rows.append(row)
    if options.json:
        print(json.dumps(rows))
        return
    head = ["problem", "evaluations", *METHODS]
    cells = [[str(row[k]) if k in head[:2] else f"{row[k]:.3g}" for k in head] for row in rows]
    print(f"{len(seeds)} instances, from seed {options.first}\n")
    print(markdown(head, cells))


if __name__ == "__main__":
    main()
