"""SRACOS against its reference, PyPI's zoopt: are the final values indistinguishable?

Runs both on the same problems, budgets and numbers of seeds, and compares the final values by a
Mann-Whitney test. Exits with 1 if any p-value is at most the threshold.

The test is two-sided, except on mixed-categorical, where it is one-sided against being worse: after
a draw that leaves the point unchanged, zoopt forces a change of the same coordinate, and ours draws
again.

    python peers/reference/zoopt_sracos.py [--seeds 20] [--racecars target/release/racecars]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable

import numpy as np
from scipy.stats import mannwhitneyu

THRESHOLD = 0.01
BUDGET = 5000
DIMENSION = 50
Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
REAL, ORDERED, UNORDERED = "real", "ordered", "unordered"


def ackley(x: Vector) -> float:
    z = x - 0.2
    return float(
        20
        - 20 * np.exp(-0.2 * np.sqrt(np.mean(z**2)))
        + np.e
        - np.exp(np.mean(np.cos(2 * np.pi * z)))
    )


def levy(x: Vector) -> float:
    w = 1 + (x - 1) / 4
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2))
    last = (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    return float(np.sin(np.pi * w[0]) ** 2 + middle + last)


def rastrigin(x: Vector) -> float:
    return float(10 * len(x) + np.sum(x**2 - 10 * np.cos(2 * np.pi * x)))


def sphere(x: Vector) -> float:
    return float(np.sum((x - 0.2) ** 2))


def integer_sphere(y: Vector) -> float:
    return float(np.sum((y - 3) ** 2))


def mixed_ackley(point: Vector) -> float:
    """The weights L are random in [1, 2] in ours; their values hardly matter."""
    half = len(point) // 2
    weights = np.linspace(1, 2, half)
    return ackley(point[:-half]) + float(weights @ np.abs(point[-half:]))


def mixed_categorical(point: Vector) -> float:
    half = len(point) // 2
    wrong = point[-half:] != np.arange(half) % 5
    return sphere(point[:-half]) + float(np.sum(wrong))


ONE_SIDED = {"mixed-categorical"}

Half = tuple[str, int, int]
# The function, and the kinds and ranges of the two halves of the coordinates.
PROBLEMS: dict[str, tuple[Callable[[Vector], float], Half, Half]] = {
    "ackley": (ackley, (REAL, -10, 10), (REAL, -10, 10)),
    "levy": (levy, (REAL, -10, 10), (REAL, -10, 10)),
    "rastrigin": (rastrigin, (REAL, -10, 10), (REAL, -10, 10)),
    "sphere": (sphere, (REAL, -10, 10), (REAL, -10, 10)),
    "integer-sphere": (integer_sphere, (ORDERED, -10, 10), (ORDERED, -10, 10)),
    "mixed-ackley": (mixed_ackley, (REAL, -1, 1), (ORDERED, -10, 10)),
    "mixed-categorical": (mixed_categorical, (REAL, -1, 1), (UNORDERED, 0, 4)),
}


def zoopt_final(job: tuple[str, int]) -> float:
    """The best value of one SRACOS run of zoopt."""
    from zoopt import Dimension, Objective, Opt, Parameter
    from zoopt.utils.tool_function import ToolFunction

    ToolFunction.log = staticmethod(lambda text: None)  # it prints every solution
    name, seed = job
    function, *halves = PROBLEMS[name]
    coordinates = [half for half in halves for _ in range(DIMENSION // 2)]
    space = Dimension(
        DIMENSION,
        [[low, high] for _, low, high in coordinates],
        [kind == REAL for kind, _, _ in coordinates],
        [kind == ORDERED for kind, _, _ in coordinates],
    )
    np.random.seed(seed)  # the only generator that zoopt has
    objective = Objective(lambda solution: function(np.array(solution.get_x(), float)), space)
    return float(Opt.min(objective, Parameter(budget=BUDGET)).get_value())


def racecars_finals(binary: str, name: str, seeds: int) -> list[float]:
    command = [binary, "bench", "--problem", name, "--dim", str(DIMENSION), "--budget", str(BUDGET)]
    command += ["--algorithm", "sracos", "--trials", str(seeds), "--json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    finals: list[float] = json.loads(output)["results"][0]["finals"]
    return finals


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", type=int, default=20)
    arguments.add_argument("--racecars", default="target/release/racecars")
    arguments.add_argument("--problem", action="append", choices=list(PROBLEMS))
    options = arguments.parse_args()
    problems = options.problem or list(PROBLEMS)
    print(f"SRACOS, n={DIMENSION}, T={BUDGET}, {options.seeds} seeds: mean (std) of final values")
    print(f"{'problem':<18} {'racecars':>18} {'zoopt':>18} {'p':>7}")
    is_alike = True
    with multiprocessing.Pool() as pool:
        for name in problems:
            ours = racecars_finals(options.racecars, name, options.seeds)
            theirs = pool.map(zoopt_final, [(name, seed) for seed in range(options.seeds)])
            side = "greater" if name in ONE_SIDED else "two-sided"
            p = mannwhitneyu(ours, theirs, alternative=side).pvalue
            shown = [f"{np.mean(v):.4g} ({np.std(v, ddof=1):.2g})" for v in (ours, theirs)]
            verdict = "" if p > THRESHOLD else "  <-- distinguishable"
            print(f"{name:<18} {shown[0]:>18} {shown[1]:>18} {p:>7.3f}{verdict}", flush=True)
            is_alike &= p > THRESHOLD
    return 0 if is_alike else 1


if __name__ == "__main__":
    sys.exit(main())
