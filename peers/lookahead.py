"""The price of asking ahead: `auto` with 1, 2, 4 and 8 points out at a time, on 8 problems.

    python3 -m peers.lookahead [BINARY]

prints docs/parallel.md's table. It takes seconds, and gives the same figures every time.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys

from peers.binary import DEFAULT

PROBLEMS = [
    "shifted-sphere",
    "shifted-ackley",
    "shifted-rastrigin",
    "shifted-levy",
    "shifted-griewank",
    "shifted-rotated-rosenbrock",
    "shifted-rotated-ellipsoid",
    "integer-sphere",
]
BUDGETS = {2: [30, 100, 300], 10: [100, 300, 1000]}
LOOKAHEADS = [1, 2, 4, 8]
TRIALS = 21
# Smaller values count as this: they are all the optimum.
FLOOR = 1e-8


def medians(binary: str, dim: int) -> dict[tuple[str, int, int], float]:
    """The median final value by problem, budget and lookahead."""
    arguments = [binary, "bench", "--problem", ",".join(PROBLEMS), "--dim", str(dim), "--json"]
    arguments += ["--budget", ",".join(map(str, BUDGETS[dim])), "--trials", str(TRIALS)]
    arguments += ["--lookahead", ",".join(map(str, LOOKAHEADS))]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    results = json.loads(done.stdout)["results"]
    return {(r["problem"], r["budget"], r["lookahead"]): r["median"] for r in results}


def short(number: float) -> str:
    if number >= 1e3:
        return f"{number:.0e}".replace("e+0", "e")
    return f"{number:.0f}" if number >= 100 else f"{number:.2g}"


def main() -> None:
    binary = sys.argv[1] if len(sys.argv) > 1 else DEFAULT
    print("| n | evaluations | problem | out 1 | 2 | 4 | 8 |")
    print("|--:|--:|---|--:|--:|--:|--:|")
    for dim, budgets in BUDGETS.items():
        found = medians(binary, dim)
        for budget in budgets:
            logs: dict[int, list[float]] = {ahead: [] for ahead in LOOKAHEADS}
            for problem in PROBLEMS:
                first = found[problem, budget, 1]
                cells = [str(dim), str(budget), problem, short(first)]
                for ahead in LOOKAHEADS[1:]:
                    ratio = max(found[problem, budget, ahead], FLOOR) / max(first, FLOOR)
                    logs[ahead].append(math.log(ratio))
                    cells.append(short(ratio))
                print(f"| {' | '.join(cells)} |")
            means = [math.exp(sum(logs[ahead]) / len(PROBLEMS)) for ahead in LOOKAHEADS[1:]]
            cells = [str(dim), str(budget), "**geometric mean**", "", *map(short, means)]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
