"""`racecars.minimize` with only a time limit, beside the same run with its budget known.

    ./scripts/wheel --into .venv-python && .venv-python/bin/python -m peers.timed [BINARY]

prints a table of docs/auto.md: for each problem and time limit the median number of evaluations
that were made, the median final value, and that of runs which were given this number as their
budget. How many evaluations a limit amounts to depends on the machine and what else it does.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator
from typing import Any

import racecars
from peers.binary import DEFAULT, Binary
from peers.lookahead import FLOOR, PROBLEMS, short
from peers.problems import HIGH, LOW, load

# Seconds that a run may take, and that an evaluation sleeps.
LIMITS = [(0.3, 0.0), (3.0, 0.0), (3.0, 0.005)]


def found(fun: Any, dim: int, seed: int, **limit: Any) -> tuple[float, int]:
    """The final value, and the number of evaluations."""
    res = racecars.minimize(fun, [(LOW, HIGH)] * dim, rng=seed, **limit)
    return max(float(res.fun), FLOOR), int(res.nfev)


def rows(binary: Binary, dim: int, limit: float, sleep: float, seeds: int) -> Iterator[str]:
    """A row for each problem, and one for all."""
    ratios: list[float] = []
    each = f"{limit:g} s" + (f", {1000 * sleep:g} ms each" if sleep else "")
    for name in PROBLEMS:
        problem = load(binary, name, dim, 0)

        def slowly(x: Any, problem: Any = problem) -> float:
            time.sleep(sleep)
            return float(problem(x))

        fun = slowly if sleep else problem
        timed = [found(fun, dim, seed, maxtime=limit) for seed in range(seeds)]
        known = [found(problem, dim, seed, maxfev=timed[seed][1])[0] for seed in range(seeds)]
        logs = [math.log(a / b) for (a, _), b in zip(timed, known, strict=True)]
        ratios.append(math.exp(statistics.fmean(logs)))
        count = short(statistics.median(count for _, count in timed))
        values = [statistics.median(value for value, _ in timed), statistics.median(known)]
        cells = [each, name, str(dim), count, *map(short, values), f"{short(ratios[-1])}x"]
        yield f"| {' | '.join(cells)} |"
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    cells = [each, "**median ratio, geometric mean**", str(dim), "", "", ""]
    yield f"| {' | '.join(cells)} | {short(statistics.median(ratios))}x, {short(mean)}x |"


def main() -> None:
    parser = argparse.ArgumentParser("peers.timed", description=__doc__.split("\n")[0])
    parser.add_argument("binary", nargs="?", default=DEFAULT)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dim", type=int, default=10)
    options = parser.parse_args()
    print("| time limit | problem | n | evaluations | with the limit | with the budget | ratio |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for limit, sleep in LIMITS:
        for row in rows(Binary(options.binary), options.dim, limit, sleep, options.seeds):
            print(row, flush=True)


if __name__ == "__main__":
    main()
