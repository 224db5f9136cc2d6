"""The overhead of our Python package per evaluation, next to a bare loop and to ZOOpt, in one run.

Measures `minimize` by RACE-CARS and by default on a function that returns at once, at n = 50,
relative to a loop that makes a NumPy array and calls the function; and pairs of ask and tell per
second at n = 500, relative to the evaluations per second of ZOOpt's SRACOS with that function.
Also `minimize` in spaces with discrete coordinates, at n = 50 and 800: integers (`integrality`),
an array of choices, and a dict of named parameters, a quarter each of reals, integers, flags and
choices, next to a loop that builds such a dict.
And what keeping trials costs: the same steps with them, thinned as in any long run, and without.
Rounds alternate, and the minimum of each counts, since the machine may be busy.

    ./scripts/wheel --into .venv-python && .venv-python/bin/python -m peers.overhead [--json]
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import racecars
from racecars._core import Session

LOW, HIGH = -10.0, 10.0

COLOURS = ["red", "green", "blue", "white", "black"]
DISCRETE_DIMS = (50, 800)

Job = tuple[Callable[[int, int], None], int, int]
"""A function to time, with a dimension and a number of evaluations."""


def constant(x: Any) -> float:
    return 1.0


def bare_loop(dim: int, count: int) -> None:
    for _ in range(count):
        x = np.empty(dim)
        constant(x)


def filled_loop(dim: int, count: int) -> None:
    for _ in range(count):
        x = np.full(dim, 0.5)
        constant(x)


def minimized(dim: int, count: int) -> None:
    racecars.minimize(constant, [(LOW, HIGH)] * dim, maxfev=count, rng=1, method="race-cars")


def minimized_by_default(dim: int, count: int) -> None:
    # On an unknown function, CMA-ES gets most of the evaluations, and costs more.
    racecars.minimize(constant, [(LOW, HIGH)] * dim, maxfev=count, rng=1)


def minimized_integers(dim: int, count: int) -> None:
    options: Any = {"integrality": True, "maxfev": count, "rng": 1, "method": "race-cars"}
    racecars.minimize(constant, [(LOW, HIGH)] * dim, **options)


def minimized_choices(dim: int, count: int) -> None:
    space = {"x": racecars.Choice(COLOURS, count=dim)}
    racecars.minimize(constant, space, maxfev=count, rng=1, method="race-cars")


def named_space(dim: int) -> dict[str, Any]:
    kinds: list[Any] = [(LOW, HIGH), range(-10, 11), bool, COLOURS]
    return {f"p{i}": kinds[i % 4] for i in range(dim)}


def minimized_names(dim: int, count: int) -> None:
    racecars.minimize(constant, named_space(dim), maxfev=count, rng=1, method="race-cars")


def named_loop(dim: int, count: int) -> None:
    names = [f"p{i}" for i in range(dim)]
    kinds: list[Any] = [0.5, 7, True, "red"]
    values = [kinds[i % 4] for i in range(dim)]
    for _ in range(count):
        x = {}
        for name, value in zip(names, values):
            x[name] = value
        constant(x)


def asked_and_told(dim: int, count: int) -> None:
    optimizer = racecars.Optimizer([(LOW, HIGH)] * dim, "race-cars", budget=count, rng=1)
    for _ in range(count):
        candidate = optimizer.ask()
        optimizer.tell(candidate, constant(candidate.x))


def asked_in_arrays(dim: int, count: int) -> None:
    optimizer = racecars.Optimizer([(LOW, HIGH)] * dim, "race-cars", budget=count, rng=1)
    values = np.ones(100)
    for _ in range(count // 100):
        optimizer.tell(optimizer.ask(100), values)


def zoopt(dim: int, count: int) -> None:
    from zoopt import Dimension, Objective, Opt, Parameter
    from zoopt.utils.tool_function import ToolFunction

    ToolFunction.log = staticmethod(lambda text: None)  # it prints every solution
    space = Dimension(dim, [[LOW, HIGH]] * dim, [True] * dim)
    Opt.min(Objective(lambda solution: constant(solution.get_x()), space), Parameter(budget=count))


def stepped(dim: int, count: int, integrality: bool, keep: bool) -> None:
    optimizer = racecars.Optimizer(
        [(LOW, HIGH)] * dim, "race-cars", budget=count, rng=1, integrality=integrality
    )
    session = Session(optimizer, optimizer.space, maxfev=count, keep=keep)
    session.drive(constant, ())
    session.close()


KEPT = {"reals": False, "integers": True}
"""Spaces in which trials are kept: whether they are of integers."""

DISCRETE: dict[str, Callable[[int, int], None]] = {
    "integers": minimized_integers,
    "choices": minimized_choices,
    "names": minimized_names,
    "names_loop": named_loop,
}
"""Jobs that are measured at each of `DISCRETE_DIMS`."""


def seconds(work: Callable[[int, int], None], dim: int, count: int) -> float:
    """The processor time of an evaluation."""
    start = time.process_time()
    work(dim, count)
    return (time.process_time() - start) / count


def least(jobs: Mapping[str, Job], rounds: int) -> dict[str, float]:
    """The minimum time of each job over the rounds."""
    times: dict[str, float] = {}
    for _ in range(rounds):
        for name, job in jobs.items():
            times[name] = min(times.get(name, float("inf")), seconds(*job))
    return times


def measure(rounds: int) -> dict[str, float]:
    for work in (minimized, asked_and_told, asked_in_arrays):  # warm-up
        work(50, 1000)
    jobs: dict[str, Job] = {
        "bare_loop_ns": (bare_loop, 50, 100_000),
        "filled_loop_ns": (filled_loop, 50, 100_000),
        "minimize_ns": (minimized, 50, 100_000),
        "default_ns": (minimized_by_default, 50, 100_000),
        "ask_tell_ns": (asked_and_told, 500, 50_000),
        "ask_tell_arrays_ns": (asked_in_arrays, 500, 50_000),
        "zoopt_ns": (zoopt, 500, 500),
    }
    for dim in DISCRETE_DIMS:
        for name, loop in DISCRETE.items():
            jobs[f"{name}_{dim}_ns"] = (loop, dim, 1_000_000 // dim)
    for dim in DISCRETE_DIMS:
        for name, whole in KEPT.items():
            for keep in (True, False):
                step = functools.partial(stepped, integrality=whole, keep=keep)
                job = (step, dim, 2_500_000 // dim)
                jobs[f"{'kept' if keep else 'dropped'}_{name}_{dim}_ns"] = job
    found = {name: 1e9 * time for name, time in least(jobs, rounds).items()}
    found["minimize_over_bare_loop"] = found["minimize_ns"] / found["bare_loop_ns"]
    found["minimize_over_filled_loop"] = found["minimize_ns"] / found["filled_loop_ns"]
    found["default_over_bare_loop"] = found["default_ns"] / found["bare_loop_ns"]
    found["default_over_filled_loop"] = found["default_ns"] / found["filled_loop_ns"]
    found["zoopt_over_ask_tell"] = found["zoopt_ns"] / found["ask_tell_ns"]
    found["zoopt_over_ask_tell_arrays"] = found["zoopt_ns"] / found["ask_tell_arrays_ns"]
    return found


def page(found: dict[str, float]) -> str:
    """The results as text."""

    def line(name: str, key: str, *ratios: str) -> str:
        return f"  {name:24}{found[key]:9.0f} ns   " + ", ".join(ratios)

    def times(key: str, what: str) -> str:
        return what.format(f"{found[key]:.3g} times")

    lines = [
        "n = 50, a function that returns at once, per evaluation",
        line("loop: np.empty, call", "bare_loop_ns"),
        line("loop: np.full, call", "filled_loop_ns"),
        line(
            "minimize, race-cars",
            "minimize_ns",
            times("minimize_over_bare_loop", "{} the first"),
            times("minimize_over_filled_loop", "{} the second"),
        ),
        line(
            "minimize, by default",
            "default_ns",
            times("default_over_bare_loop", "{} the first"),
            times("default_over_filled_loop", "{} the second"),
        ),
        "n = 500, ask and tell, per pair",
        line("Optimizer, one by one", "ask_tell_ns", times("zoopt_over_ask_tell", "ZOOpt: {}")),
        line(
            "Optimizer, by hundreds",
            "ask_tell_arrays_ns",
            times("zoopt_over_ask_tell_arrays", "ZOOpt: {}"),
        ),
        line("ZOOpt's SRACOS", "zoopt_ns"),
    ]
    for dim in DISCRETE_DIMS:
        lines += [
            f"n = {dim}, minimize by race-cars, per evaluation",
            line("integrality", f"integers_{dim}_ns"),
            line("array of choices", f"choices_{dim}_ns"),
            line("dict of names", f"names_{dim}_ns"),
            line("loop: build dict, call", f"names_loop_{dim}_ns"),
        ]
        lines.append(f"n = {dim}, a step of race-cars that keeps trials")
        for name in KEPT:
            kept, dropped = found[f"kept_{name}_{dim}_ns"], found[f"dropped_{name}_{dim}_ns"]
            share = f"{dropped:.0f} ns with none: keeping costs {100 * (kept / dropped - 1):.0f} %"
            lines.append(line(name, f"kept_{name}_{dim}_ns", share))
    return "\n".join(line.rstrip() for line in lines)


def main() -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("peers.overhead", description=__doc__, formatter_class=about)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--rounds", type=int, default=5, help="the number of rounds")
    options = parser.parse_args()
    found = measure(options.rounds)
    print(json.dumps(found, indent=2) if options.json else page(found))


if __name__ == "__main__":
    main()
