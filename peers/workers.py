"""`racecars.minimize` on 1, 2 and 4 worker processes: the values found and the time taken.

    ./scripts/wheel --into .venv-python && .venv-python/bin/python -m peers.workers [BINARY]

prints a table of docs/parallel.md: the median final value over the seeds, by problem, and the
median time of a run, where an evaluation takes some microseconds, and where it takes 5 ms. The
values on several workers depend on how long evaluations take, so they vary from run to run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import racecars
from peers.binary import DEFAULT, Binary
from peers.lookahead import FLOOR, short
from peers.problems import HIGH, LOW, Problem, load

# Name, dimension, evaluations.
CASES = [
    ("shifted-ackley", 50, 1500),
    ("shifted-sphere", 50, 2000),
    ("shifted-rastrigin", 30, 900),
    ("shifted-levy", 30, 900),
    ("shifted-griewank", 10, 1000),
    ("shifted-rosenbrock", 10, 1000),
    ("shifted-rotated-rosenbrock", 30, 3000),
    ("shifted-rotated-ellipsoid", 10, 1000),
]
WORKERS = [1, 2, 4]
SLEEP = 0.005
# A run of evaluations that sleep has at most this many.
MAX_SLOW = 600


def slowly(problem: Problem) -> Callable[[Any], float]:
    def fun(x: Any) -> float:
        time.sleep(SLEEP)
        return problem(x)

    return fun


def measured(fun: Any, dim: int, budget: int, workers: int, seeds: int) -> tuple[float, float]:
    """The median final value, and the median time."""
    values, times = [], []
    for seed in range(seeds):
        start = time.perf_counter()
        res = racecars.minimize(fun, [(LOW, HIGH)] * dim, maxfev=budget, rng=seed, workers=workers)
        times.append(time.perf_counter() - start)
        values.append(float(res.fun))
    return statistics.median(values), statistics.median(times)


def rows(binary: Binary, is_slow: bool, seeds: int) -> Iterator[str]:
    """A row for each problem, and one for all."""
    ratios: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    for name, dim, budget in CASES:
        problem = load(binary, name, dim, 0)
        budget = min(budget, MAX_SLOW) if is_slow else budget
        fun = slowly(problem) if is_slow else problem
        found = [measured(fun, dim, budget, workers, seeds) for workers in WORKERS]
        cells = ["5 ms" if is_slow else "short", name, str(dim), str(budget)]
        cells += [f"{short(value)}, {taken:.2f} s" for value, taken in found]
        yield f"| {' | '.join(cells)} |"
        for workers, (value, _) in zip(WORKERS, found, strict=True):
            ratios[workers].append(max(value, FLOOR) / max(found[0][0], FLOOR))
    kind = "5 ms" if is_slow else "short"
    medians = [statistics.median(ratios[workers]) for workers in WORKERS]
    cells = [kind, "**median ratio to 1 worker**", "", "", *(f"{ratio:.2f}" for ratio in medians)]
    yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser("peers.workers", description=__doc__.split("\n")[0])
    parser.add_argument("binary", nargs="?", default=DEFAULT)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=["short", "5ms"], help="one of the two kinds")
    options = parser.parse_args()
    heads = " | ".join(f"{n} worker{'s' * (n > 1)}" for n in WORKERS)
    print(f"| evaluation | problem | n | evaluations | {heads} |")
    print(f"|---|---|--:|--:|{'--:|' * len(WORKERS)}")
    for is_slow in (False, True):
        if options.only in (None, "5ms" if is_slow else "short"):
            for row in rows(Binary(options.binary), is_slow, options.seeds):
                print(row, flush=True)


if __name__ == "__main__":
    main()
