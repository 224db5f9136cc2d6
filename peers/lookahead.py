"""The price of asking ahead: ours with 1, 2, 8 and 32 points out at a time, on 8 problems.

    python3 -m peers.lookahead [BINARY]
    python3 -m peers.lookahead --peers pycma,NGOpt --dim 10 [BINARY]

prints docs/parallel.md's tables. The first gives the same figures every time; the second runs pycma
and nevergrad's NGOpt on the same problems, and needs them installed. An outcome is told when
`out - 1` later points have been asked, as where all evaluations take equally long.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from peers.binary import DEFAULT, Binary

PROBLEMS = [
    "shifted-sphere",
    "shifted-ackley",
    "shifted-rastrigin",
    "shifted-levy",
    "shifted-griewank",
    "shifted-rosenbrock",
    "shifted-rotated-rosenbrock",
    "shifted-rotated-ellipsoid",
]
ALGORITHMS = ["auto", "race-cars", "cma-es", "sep-cma-es", "l-shade"]
DIMENSIONS = [10, 30, 50]
BUDGETS = [30, 100]
OUT = [1, 2, 8, 32]
# Each is an optimum at another place, and so many trials.
SEEDS = [0, 1000, 2000]
TRIALS = 5
# Smaller values count as this: they are all the optimum.
FLOOR = 1e-8

Medians = dict[tuple[str, str, int], list[float]]
"""By algorithm, problem and points out: the median final value at each place of the optimum."""


def ours(binary: str, dim: int, budget: int, algorithms: list[str]) -> Medians:
    """Our algorithms."""
    found: Medians = {}
    for seed in SEEDS:
        arguments = [binary, "bench", "--problem", ",".join(PROBLEMS), "--dim", str(dim), "--json"]
        arguments += ["--algorithm", ",".join(algorithms), "--budget", f"{budget}n"]
        arguments += ["--trials", str(TRIALS), "--seed", str(seed)]
        arguments += ["--lookahead", ",".join(map(str, OUT))]
        done = subprocess.run(arguments, check=True, capture_output=True, text=True)
        for r in json.loads(done.stdout)["results"]:
            key = (r["algorithm"], r["problem"], r["lookahead"])
            found.setdefault(key, []).append(r["median"])
    return found


def theirs(binary: str, dim: int, budget: int, peers: list[str]) -> Medians:
    """The peers, on the same problems."""
    from peers.problems import load

    known: dict[str, Callable[[Any, int, int, int], float]] = {"pycma": pycma, "NGOpt": ngopt}
    runs = {peer: known[peer] for peer in peers}
    found: Medians = {}
    for seed in SEEDS:
        for name in PROBLEMS:
            problem = load(Binary(binary), name, dim, seed)
            for peer, run in runs.items():
                for out in OUT:
                    finals = [run(problem, budget * dim, out, seed + i) for i in range(TRIALS)]
                    found.setdefault((peer, name, out), []).append(statistics.median(finals))
    return found


def pycma(problem: Any, budget: int, out: int, seed: int) -> float:
    """A generation is evaluated at a time, so its size is at least the number of points out."""
    import cma
    import numpy as np

    from peers.problems import HIGH, LOW

    start = np.random.default_rng(seed).uniform(LOW, HIGH, problem.dim)
    size = max(out, 4 + int(3 * math.log(problem.dim)))
    options: dict[str, Any] = {"seed": seed + 1, "verbose": -9, "verb_log": 0, "popsize": size}
    options |= {"bounds": [LOW, HIGH], "maxfevals": budget, "tolx": 0, "tolfun": 0}
    strategy = cma.CMAEvolutionStrategy(start, 0.2 * (HIGH - LOW), options)
    best: float = math.inf
    used = 0
    while used < budget:
        points = strategy.ask()
        values = [problem(np.asarray(point)) for point in points]
        best, used = min([best, *values[: budget - used]]), used + len(points)
        strategy.tell(points, values)
    return best


def ngopt(problem: Any, budget: int, out: int, seed: int) -> float:
    """With as many workers as points are out, told in the order asked."""
    import nevergrad
    import numpy as np

    from peers.problems import HIGH, LOW

    start = np.random.default_rng(seed).uniform(LOW, HIGH, problem.dim)
    space = nevergrad.p.Array(init=start).set_bounds(LOW, HIGH)
    space.random_state.seed(seed)
    optimizer = nevergrad.optimizers.NGOpt(space, budget=budget, num_workers=out)
    best = math.inf
    asked: deque[Any] = deque()
    for _ in range(budget):
        asked.append(optimizer.ask())
        if len(asked) == out:
            candidate = asked.popleft()
            value = problem(candidate.value)
            best = min(best, value)
            optimizer.tell(candidate, value)
    values: list[float] = [problem(candidate.value) for candidate in asked]
    return min([best, *values])


def short(number: float) -> str:
    if number >= 1e3:
        return f"{number:.0e}".replace("e+0", "e")
    return f"{number:.0f}" if number >= 100 else f"{number:.2g}"


def ratios(found: Medians, name: str, out: int) -> list[float]:
    """By problem: the final value relative to that with one point out, as the geometric mean over
    the places of the optimum."""
    each = []
    for problem in PROBLEMS:
        pairs = zip(found[name, problem, out], found[name, problem, 1], strict=True)
        logs = [math.log(max(a, FLOOR) / max(b, FLOOR)) for a, b in pairs]
        each.append(math.exp(statistics.fmean(logs)))
    return each


def rows(found: Medians, dim: int, budget: int) -> Iterator[str]:
    for name in dict.fromkeys(name for name, _, _ in found):
        cells = [name, str(dim), f"{budget}n"]
        for out in OUT[1:]:
            each = ratios(found, name, out)
            cells.append(f"{short(statistics.median(each))} ({short(max(each))})")
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser("peers.lookahead", description=__doc__.split("\n")[0])
    parser.add_argument("binary", nargs="?", default=DEFAULT)
    parser.add_argument("--peers", help="pycma, NGOpt or both in place of ours, by commas")
    parser.add_argument("--algorithm", default=",".join(ALGORITHMS), help="ours, by commas")
    parser.add_argument("--dim", default=",".join(map(str, DIMENSIONS)), help="by commas")
    options = parser.parse_args()
    print(f"| algorithm | n | evaluations | {' | '.join(f'{out} out' for out in OUT[1:])} |")
    print(f"|---|--:|--:|{'--:|' * len(OUT[1:])}")
    for dim in map(int, options.dim.split(",")):
        for budget in BUDGETS:
            if options.peers:
                found = theirs(options.binary, dim, budget, options.peers.split(","))
            else:
                found = ours(options.binary, dim, budget, options.algorithm.split(","))
            for row in rows(found, dim, budget):
                print(row, flush=True)


if __name__ == "__main__":
    main()
