"""Our baselines against their references: CMA-ES against PyPI's cma, DE against scipy's.

Runs both on the same functions, rotations included, with the same budgets and numbers of seeds, and
compares the final values by a two-sided Mann-Whitney test. Values below 1e-8 count as solved, and
as equal. Exits with 1 if ours is worse at p <= 0.01 anywhere.

Both have their own defaults: CMA-ES starts at a random point with sigma = 4 on [-10, 10] and has
BIPOP restarts; DE is best/1/bin, scipy's without polishing.

    python -m peers.reference.baselines [--seeds 20] [--racecars target/release/racecars]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

from scipy.stats import mannwhitneyu

from peers import binary as binaries
from peers.binary import Binary, BinaryError
from peers.field.optimizers import pycma, scipy_de
from peers.field.run import Run
from peers.objective import Objective
from peers.problems import Problem, load

THRESHOLD = 0.01
SOLVED = 1e-8
PROBLEMS = ("sphere", "rotated-ellipsoid", "rosenbrock", "rotated-rastrigin")
DIMENSIONS = (10, 40)
BUDGETS = (100, 1000)  # evaluations per dimension
Optimizer = Callable[[Run, Objective], None]
PAIRS: dict[str, tuple[str, Optimizer]] = {
    "cma-es": ("cma", pycma),
    "de": ("scipy", scipy_de),
}


@dataclass(frozen=True)
class Job:
    """A run of a reference implementation."""

    algorithm: str
    problem: Problem
    budget: int
    seed: int


def reference_final(job: Job) -> float:
    objective = Objective(job.problem, job.budget)
    _, optimizer = PAIRS[job.algorithm]
    objective.run(lambda objective: optimizer(Run.cube(job.problem.dim, job.seed), objective))
    return objective.best


def verdict(ours: list[float], theirs: list[float]) -> tuple[float, str]:
    """The p-value, and the verdict on ours."""
    ours, theirs = ([max(value, SOLVED) for value in values] for values in (ours, theirs))
    if len(set(ours + theirs)) == 1:
        return 1.0, "indistinguishable"
    test = mannwhitneyu(ours, theirs, alternative="two-sided")
    p = float(test.pvalue)
    if p > THRESHOLD:
        return p, "indistinguishable"
    # The statistic counts the pairs in which ours is greater.
    return p, "better" if test.statistic < len(ours) * len(theirs) / 2 else "worse"


def show(algorithm: str, problem: Problem, budget: int, finals: list[list[float]]) -> bool:
    """Prints a line, and returns whether ours is good enough."""
    ours, theirs = finals
    p, word = verdict(ours, theirs)
    medians = "".join(f"{statistics.median(values):>12.3g}" for values in finals)
    print(
        f"{algorithm:<10} {problem.name:<18}{problem.dim:>4}{budget:>7}{medians}{p:>9.2g}  {word}"
    )
    sys.stdout.flush()
    return word != "worse"


def run(options: argparse.Namespace) -> bool:
    binary = Binary(options.racecars)
    print(f"final values over {options.seeds} seeds: medians, Mann-Whitney p, and ours is ...")
    heads = f"{'n':>4}{'budget':>7}{'ours':>12}{'reference':>12}{'p':>9}"
    print(f"{'algorithm':<10} {'problem':<18}{heads}")
    is_good = True
    # New processes, each with single-threaded linear algebra.
    with multiprocessing.get_context("spawn").Pool() as pool:
        for algorithm, (package, _) in PAIRS.items():
            if not binary.knows(algorithm):
                print(f"{algorithm:<10} skipped: not in this version; its reference is {package}")
                continue
            for name in PROBLEMS:
                for dim in DIMENSIONS:
                    problem = load(binary, name, dim, seed=0)
                    for budget in [times * dim for times in BUDGETS]:
                        jobs = [Job(algorithm, problem, budget, i) for i in range(options.seeds)]
                        theirs = pool.map(reference_final, jobs, chunksize=1)
                        ours = binary.bench(algorithm, name, dim, str(budget), options.seeds)
                        is_good &= show(algorithm, problem, budget, [ours.finals, theirs])
    return is_good


def main() -> int:
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--seeds", type=int, default=20)
    arguments.add_argument("--racecars", default=binaries.DEFAULT)
    try:
        return 0 if run(arguments.parse_args()) else 1
    except BinaryError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
