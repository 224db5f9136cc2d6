"""Bits and categories after 5n, 20n and 100n evaluations, ours beside the others.

The problems are the 25 functions of IOHprofiler's PBO suite, NK landscapes, MaxSAT, a knapsack with
five constraints, and quadratic assignment with a category for each of sqrt(n) facilities. Every
second function is for choosing settings, the others, on other instances, for reporting (`--half`).
The table has mean ranks: 1 for the least value of a problem and instance, ties have the mean of
their ranks. Runs are saved in target/bits/runs.csv.

    ./scripts/bits --methods auto,race-cars,falling-ea
    ./scripts/bits --half report --methods auto,race-cars,peers --dims 64
    ./scripts/bits --quick
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from peers.bits.methods import PEERS, SLOW
from peers.bits.problems import HALVES, Problem
from peers.bits.trials import Job, Trial
from peers.few.ranks import ranks_of
from peers.field.report import NONE, markdown
from peers.kept import Kept, run_jobs
from peers.machine import use_one_thread, written_by
from peers.options import guarded, methods, numbers, publish

# PBO's first instance has its optimum at all ones, which is the centre that `auto` evaluates first.
FIRST_INSTANCE = {"choose": 2, "report": 11}
FAST = tuple(name for name in PEERS if name not in SLOW)
Cell = tuple[int, int]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m peers.bits",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--methods",
        metavar="A,..",
        default="auto,race-cars,falling-ea",
        help=f"ours by name; {', '.join(PEERS)}; `peers` for {', '.join(FAST)} "
        "(default: %(default)s)",
    )
    parser.add_argument("--half", choices=HALVES, default="choose", help="of the problems")
    parser.add_argument("--dims", metavar="N,..", default="64,256", help="squares; %(default)s")
    parser.add_argument(
        "--budgets", metavar="K,..", default="5,20,100", help="times n; %(default)s"
    )
    parser.add_argument("--instances", metavar="K", type=int, default=3, help="%(default)s")
    parser.add_argument("--processes", metavar="P", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="n = 64, 5n, one instance")
    parser.add_argument("--by-problem", action="store_true", help="mean ranks by problem, too")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--cache", metavar="CSV", type=Path, default=Path("target/bits/runs.csv"))
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the tables here, too")
    return parser.parse_args()


class Ranks:
    """The ranks of methods, over the problems that all of them have run."""

    def __init__(self, trials: list[Trial], methods: list[str]) -> None:
        self.methods = methods
        self.notes = sorted({f"{t.method} on {t.problem}: {t.note}" for t in trials if t.note})
        values: dict[tuple[Cell, str, int], dict[str, float]] = defaultdict(dict)
        for trial in trials:
            if trial.evaluations:
                cell = (trial.dim, trial.budget)
                values[cell, trial.problem, trial.instance][trial.method] = trial.best
        self.ranks: dict[tuple[Cell, str], list[list[float]]] = defaultdict(list)
        for (cell, problem, _), found in values.items():
            if len(found) == len(methods):
                ranks = ranks_of([round(found[method], 9) for method in methods])
                self.ranks[cell, problem].append(ranks)

    def mean(self, cell: Cell, problem: str | None = None) -> list[float] | None:
        rows = [
            row
            for (other, name), ranks in self.ranks.items()
            if other == cell and problem in (None, name)
            for row in ranks
        ]
        return [statistics.fmean(column) for column in zip(*rows, strict=True)] if rows else None

    def table(self, columns: dict[str, list[float] | None]) -> str:
        def text(means: list[float] | None, i: int) -> str:
            if means is None:
                return NONE
            number = f"{means[i]:.2f}"
            return f"*{number}*" if means[i] == min(means) else number

        rows = [
            [f"**{method}**" if method not in PEERS else method]
            + [text(means, i) for means in columns.values()]
            for i, method in enumerate(self.methods)
        ]
        return markdown(["method", *columns], rows)


def run(options: argparse.Namespace) -> None:
    if options.quick:
        options.dims, options.budgets, options.instances = "64", "5", 1
    dims, factors = numbers(options.dims, "dims"), numbers(options.budgets, "budgets")
    chosen, names = methods(options.methods, FAST, PEERS), HALVES[options.half]
    first = FIRST_INSTANCE[options.half]
    cells = [(dim, factor * dim) for dim in dims for factor in factors]
    jobs = [
        Job(Problem(name, instance, dim), budget, method)
        for dim, budget in cells
        for instance in range(first, first + options.instances)
        for name in names
        for method in chosen
    ]
    ranks = Ranks(run_jobs("bits", jobs, Kept(options.cache, Trial), options.processes), chosen)
    columns = {f"n = {dim}, {budget // dim}n": ranks.mean((dim, budget)) for dim, budget in cells}
    if options.json:
        named = {
            name: means and dict(zip(chosen, means, strict=True)) for name, means in columns.items()
        }
        print(json.dumps({"half": options.half, "mean_ranks": named}, indent=1))
        return
    packages = ["ioh", *(PEERS[name][1] for name in chosen if name in PEERS)]
    about = written_by("./scripts/bits", list(dict.fromkeys(packages)))
    terms = (
        f"Mean ranks over {len(names)} problems ({options.half}) and {options.instances} "
        "instances. Bold names are ours, the best of each column is in italics."
    )
    parts = ["# Bits and categories", about, terms, ranks.table(columns)]
    if options.by_problem:
        for cell in cells:
            parts.append(f"n = {cell[0]}, T = {cell[1]}:")
            parts.append(ranks.table({name: ranks.mean(cell, name) for name in names}))
    parts += [f"- {note}" for note in ranks.notes]
    page = "\n\n".join(parts) + "\n"
    publish(page, options.out)


def main() -> int:
    use_one_thread()
    return guarded(run, arguments())


if __name__ == "__main__":
    sys.exit(main())
