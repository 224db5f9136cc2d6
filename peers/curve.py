"""Draws how the best value falls over the evaluations: ours and others', on the same problems.

    .venv-field/bin/python -m peers.curve

writes docs/figures/peers.svg, and prints the medians of the final values. The problems have their
optimum at a random place, another one with each seed. `./scripts/venv field` and `./scripts/wheel
--into .venv-field` make the environment.
"""

from __future__ import annotations

import argparse
import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from peers.binary import DEFAULT, Binary
from peers.field.optimizers import PEERS, ours
from peers.field.run import Run
from peers.objective import Objective
from peers.problems import Vector, load
from peers.processes import Progress, describe, run_all

ROOT = Path(__file__).resolve().parent.parent
PROBLEMS = ("shifted-rotated-rosenbrock", "shifted-rastrigin")
METHODS = {
    "racecars": "auto",
    "pycma": "pycma",
    "SciPy differential evolution": "scipy-de",
    "SciPy dual annealing": "scipy-da",
    "nevergrad NGOpt": "ngopt",
    "Optuna TPE": "optuna-tpe",
}
# Ours stands out; the others are told apart by colour and dashes.
COLOURS = ("#c0392b", "#1f77b4", "#2ca02c", "#9467bd", "#ff9f1c", "#7f7f7f")
DASHES = ("-", "--", "-.", (0, (4, 1)), (0, (1, 1)), ":")
# Optuna's TPE takes minutes for more evaluations; its first ones do not depend on the budget.
MOST = {"optuna-tpe": 500}
# Below it differences do not matter.
FLOOR = 1e-8

Job = tuple[str, str, int, int, int, str]


class Traced(Objective):
    """An objective that keeps the best value after each evaluation."""

    def __init__(self, function: Any, budget: int) -> None:
        super().__init__(function, budget)
        self.curve: list[float] = []

    def __call__(self, x: Any) -> float:
        value = super().__call__(x)
        self.curve.append(self.best)
        return value


def curve(job: Job) -> Vector:
    """The best value after each evaluation of a run; one that ends early stays where it is."""
    method, name, dim, budget, seed, binary = job
    budget = min(budget, MOST.get(method, budget))
    optimizer = functools.partial(ours, method) if method == "auto" else PEERS[method].run
    objective = Traced(load(Binary(binary), name, dim, seed), budget)
    # Methods that take a start begin at the centre.
    run = replace(Run.cube(dim, seed), is_central=True)
    objective.run(lambda given: optimizer(run, given))
    values = np.full(budget, objective.best)
    values[: len(objective.curve)] = objective.curve
    return values


def draw(medians: dict[str, dict[str, Vector]], dim: int, seeds: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "racecars"  # reproducible files
    matplotlib.rcParams["font.size"] = 10
    figure, axes = plt.subplots(1, len(medians), figsize=(10, 4.2), layout="constrained")
    for ax, (problem, curves) in zip(np.atleast_1d(axes), medians.items(), strict=True):
        for (label, values), colour, dash in zip(curves.items(), COLOURS, DASHES, strict=False):
            width = 2.6 if label == "racecars" else 1.5
            places = np.arange(1, len(values) + 1)
            style = {"color": colour, "linestyle": dash, "linewidth": width}
            ax.plot(places, np.maximum(values, FLOOR), label=label, **style)
        ax.set_yscale("log")
        ax.set_xlim(0, max(map(len, curves.values())))
        ax.set_title(f"{problem.removeprefix('shifted-')}, n = {dim}")
        ax.set_xlabel("evaluations")
        ax.grid(alpha=0.25)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    np.atleast_1d(axes)[0].set_ylabel(f"best value, median of {seeds} runs")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problem", default=",".join(PROBLEMS), help="[%(default)s]")
    parser.add_argument("--dim", type=int, default=20, help="[%(default)s]")
    parser.add_argument("--budget", type=int, default=100, help="per coordinate [%(default)s]")
    parser.add_argument("--seeds", type=int, default=5, help="[%(default)s]")
    parser.add_argument("--processes", type=int, default=1, help="[%(default)s]")
    parser.add_argument("--binary", default=DEFAULT, help="[%(default)s]")
    out = ROOT / "docs" / "figures" / "peers.svg"
    parser.add_argument("--out", type=Path, default=out, help="[docs/figures/peers.svg]")
    given = parser.parse_args()

    problems, budget = given.problem.split(","), given.budget * given.dim
    jobs: list[Job] = [
        (method, problem, given.dim, budget, seed, given.binary)
        for method in METHODS.values()
        for problem in problems
        for seed in range(given.seeds)
    ]
    found: dict[tuple[str, str], list[Vector]] = {}
    progress = Progress("runs", len(jobs))
    for job, result in run_all(curve, jobs, given.processes):
        progress.step(f"{job[0]} on {job[1]}")
        if isinstance(result, Exception):
            raise SystemExit(f"{job[0]} on {job[1]}: {describe(result)}")
        found.setdefault(job[:2], []).append(result)
    medians = {
        problem: {
            label: np.median(np.array(found[method, problem]), axis=0)
            for label, method in METHODS.items()
        }
        for problem in problems
    }
    print(f"median best value of {given.seeds} runs, n = {given.dim}, after {budget} evaluations\n")
    print("| method | " + " | ".join(problems) + " |\n|---|" + "--:|" * len(problems))
    for label in METHODS:
        curves = [medians[problem][label] for problem in problems]
        ends = "" if len(curves[0]) == budget else f", {len(curves[0])} evaluations"
        print(f"| {label}{ends} | " + " | ".join(f"{one[-1]:.3g}" for one in curves) + " |")
    draw(medians, given.dim, given.seeds, given.out)


if __name__ == "__main__":
    main()
