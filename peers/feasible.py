"""Small discrete spaces with constraints and few evaluations: `auto` beside random search.

    .venv-python/bin/python -m peers.feasible [--first S] [--instances K] [--methods auto,gp]

Random smooth functions of 4 to 9 integers and categories, of which 15 to 60 % of the points are
feasible; points that are good by the objective alone tend not to be. Each seed is another instance.
What an evaluation tells of an infeasible point is one of five outcomes, a row of the table each.
Printed are the share of instances on which a method beats random search with the same seed, ties
one half, and in brackets the mean regret: 0 for the best feasible point of a large sample, 1 for
the best twentieth of the feasible ones. A run without a feasible point has the regret of the worst.
Settings are chosen on seeds 0 to 69; the table of docs/auto.md has others.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import racecars
from peers.field.report import markdown
from peers.processes import Progress

Params = dict[str, Any]
# The points of a space that its figures are taken from, if it has more.
SAMPLE = 50_000
RANDOM = "random"


@dataclass
class Problem:
    """`value` and `constraints`, each at most 0 where it is met, of the codes of points (rows)."""

    space: Params
    value: Callable[[Any], Any]
    constraints: Callable[[Any], Any]
    least: float
    twentieth: float
    worst: float

    def regret(self, value: float | None) -> float:
        value = self.worst if value is None else value
        return max(0.0, value - self.least) / (self.twentieth - self.least)


def smooth(random: np.random.Generator, features: int) -> Callable[[Any], Any]:
    """A slope, and waves that are about as long as the space."""
    slope = random.normal(size=features)
    waves = random.normal(scale=2.0, size=(features, 6))
    phases, heights = random.uniform(0, 2 * math.pi, 6), random.normal(scale=0.7, size=6)
    return lambda z: z @ slope + np.cos(z @ waves + phases) @ heights


@functools.cache
def problem(seed: int, constraints: int) -> Problem:
    random = np.random.default_rng([seed, constraints])
    n = int(random.integers(4, 10))
    is_category = random.random(n) < 0.4
    counts = np.where(is_category, random.integers(2, 6, n), random.integers(3, 13, n))
    # A category has a feature of its own for each coordinate, an integer its place in the range.
    tables = [
        random.random(count) if category else np.linspace(0, 1, count)
        for count, category in zip(counts, is_category, strict=True)
    ]
    objective = smooth(random, n)
    others = [smooth(random, n) for _ in range(constraints)]

    def features(codes: Any) -> Any:
        return np.column_stack([table[codes[:, i]] for i, table in enumerate(tables)])

    codes = np.column_stack([random.integers(0, count, SAMPLE) for count in counts])
    z = features(codes)
    values = objective(z)
    spread = values.std()

    # Constraints that conflict with the objective, with a limit that a share of the points meets.
    def conflicts(z: Any) -> Any:
        return np.column_stack([other(z) / 2 - objective(z) / spread for other in others])

    shifts = conflicts(z).mean(axis=0)
    margins = (conflicts(z) - shifts).max(axis=1)
    limit = np.quantile(margins, random.uniform(0.15, 0.6))
    is_feasible = margins <= limit
    feasible = np.sort(values[is_feasible])
    names = [f"x{i}" for i in range(n)]

    def of(params: Params) -> Any:
        return features(np.array([[params[name] for name in names]]))

    return Problem(
        space={
            name: racecars.Choice(list(range(count))) if category else range(count)
            for name, count, category in zip(names, counts.tolist(), is_category, strict=True)
        },
        value=lambda params: float(objective(of(params))[0]),
        constraints=lambda params: (conflicts(of(params))[0] - shifts - limit).tolist(),
        least=float(feasible[0]),
        twentieth=float(feasible[len(feasible) // 20]),
        worst=float(feasible[-1]),
    )


# What an evaluation of an infeasible point tells: of its value and constraints.
OUTCOMES: dict[str, tuple[int, Callable[[float, list[float]], Any]]] = {
    "value and constraint": (1, racecars.Measured),
    "value and three constraints": (3, racecars.Measured),
    "constraint, no value": (1, lambda _, by: racecars.Measured(None, by)),
    "its violation only": (1, lambda _, by: racecars.Infeasible(max(by))),
    "failed": (1, lambda _, by: math.nan),
}


def found(outcome: str, seed: int, method: str, budget: int) -> float:
    """The regret of the best point of a run."""
    constraints, tell = OUTCOMES[outcome]
    instance = problem(seed, constraints)

    def objective(params: Params) -> Any:
        value, by = instance.value(params), instance.constraints(params)
        is_feasible = max(by) <= 0
        if is_feasible and outcome not in ("value and constraint", "value and three constraints"):
            return racecars.Measured(value, by) if outcome == "constraint, no value" else value
        return tell(value, by)

    result = racecars.minimize(
        objective, space=instance.space, maxfev=budget, rng=seed, method=method
    )
    value = result.fun
    return instance.regret(value if value is not None and math.isfinite(value) else None)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m peers.feasible",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--first", metavar="S", type=int, default=100, help="the first seed")
    parser.add_argument("--instances", metavar="K", type=int, default=28)
    parser.add_argument("--budget", metavar="T", type=int, default=60)
    parser.add_argument("--methods", metavar="A,..", default="auto,race-cars")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.instances)
    methods: list[str] = options.methods.split(",")

    rows: list[dict[str, Any]] = []
    progress = Progress("feasible", len(OUTCOMES) * (1 + len(methods)))
    for outcome in OUTCOMES:
        row: dict[str, Any] = {"outcome": outcome}
        regrets: dict[str, Any] = {}
        for method in [RANDOM, *methods]:
            runs = [found(outcome, seed, method, options.budget) for seed in seeds]
            regrets[method] = np.array(runs)
            progress.step(f"{method}, {outcome}")
            row[method] = {
                "regret": float(regrets[method].mean()),
                "beats_random": float(
                    (regrets[method] < regrets[RANDOM]).mean()
                    + (regrets[method] == regrets[RANDOM]).mean() / 2
                ),
            }
        rows.append(row)
    if options.json:
        print(json.dumps(rows))
        return

    def cell(row: dict[str, Any], method: str) -> str:
        regret = f"({row[method]['regret']:.2f})"
        return regret if method == RANDOM else f"{row[method]['beats_random']:.2f} {regret}"

    order = [*methods, RANDOM]
    print(f"T = {options.budget}, {len(seeds)} instances, from seed {options.first}\n")
    cells = [[row["outcome"], *(cell(row, method) for method in order)] for row in rows]
    print(markdown(["outcome of an infeasible point", *order], cells))


if __name__ == "__main__":
    main()
