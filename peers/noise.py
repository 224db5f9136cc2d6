"""`auto` and single algorithms on noisy functions, by the true value at the recommended point.

    python3 -m peers.noise [BINARY]

prints docs/auto.md's table: the ratio of each algorithm's median to that of the best single
algorithm in the same cell. The referee's numbers were not chosen on these functions. The figures
are the same every time.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys

from peers.binary import DEFAULT

PROBLEMS = [
    "shifted-levy",
    "shifted-griewank",
    "shifted-rosenbrock",
    "shifted-rotated-rastrigin",
    "shifted-rotated-levy",
    "shifted-rotated-sphere",
]
ALGORITHMS = ["auto", "sep-cma-es", "cma-es", "l-shade", "race-cars"]
BUDGETS = ["30n", "100n", "300n"]
# Each is a set of trials, and of shifts and rotations.
SEEDS = [0, 1000, 2000]


def medians(binary: str, seed: int) -> dict[tuple[str, int], dict[str, float]]:
    """The median of each algorithm by problem and budget."""
    arguments = [binary, "bench", "--noise", "1", "--problem", ",".join(PROBLEMS), "--dim", "20"]
    arguments += ["--budget", ",".join(BUDGETS), "--trials", "15", "--seed", str(seed)]
    arguments += ["--algorithm", ",".join(ALGORITHMS), "--json"]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    cells: dict[tuple[str, int], dict[str, float]] = {}
    for result in json.loads(done.stdout)["results"]:
        cell = cells.setdefault((result["problem"], result["budget"]), {})
        cell[result["algorithm"]] = result["median"]
    return cells


def main() -> None:
    binary = sys.argv[1] if len(sys.argv) > 1 else DEFAULT
    ratios: dict[str, list[list[float]]] = {algorithm: [] for algorithm in ALGORITHMS}
    for seed in SEEDS:
        cells = medians(binary, seed).values()
        for algorithm, lists in ratios.items():
            best = [min(v for name, v in cell.items() if name != "auto") for cell in cells]
            lists.append([cell[algorithm] / b for cell, b in zip(cells, best, strict=True)])
    names = " | ".join(f"seeds from {seed}" for seed in SEEDS)
    print(f"| geometric mean of the ratios | {names} | worst cell |")
    print(f"|---|{'--:|' * (len(SEEDS) + 1)}")
    for algorithm, lists in ratios.items():
        means = [math.exp(sum(map(math.log, cells)) / len(cells)) for cells in lists]
        worst = max(max(cells) for cells in lists)
        print(f"| {algorithm} | {' | '.join(f'{mean:.2f}' for mean in means)} | {worst:.3g} |")


if __name__ == "__main__":
    main()
