"""Tuning scikit-learn models with T = 30, 50 and 100 evaluations, ours beside the others.

The models are SVM, random forest, gradient boosting, a linear model by SGD, nearest neighbours and
a network, in mixed spaces of 5 to 10 coordinates, half of them conditional; twelve tasks are for
choosing, six for reporting (`--half`). A score is 0 for the best value known of the task, from all
runs so far, and 1 for the median of random search after 10 evaluations, estimated from all its
evaluations. A run beats random search if it is better with the same seed and T; ties count one
half.

Values of configurations are saved in target/tuning/values.db and runs in target/tuning/runs.csv, so
that only what has changed runs again. `optuna-gp`, `smac` and `hebo` are not in `.venv-bench`: run
them by `.venv-few/bin/python -m peers.tuning --methods smac`, which saves in the same files.

    ./scripts/tuning --methods auto,race-cars
    ./scripts/tuning --half report --methods auto,peers --seeds 5
    ./scripts/tuning --quick
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from peers.field.report import NONE, markdown
from peers.kept import Kept, run_jobs
from peers.machine import use_one_thread, written_by
from peers.options import HALVES, guarded, methods, numbers, publish
from peers.tuning.methods import PEERS
from peers.tuning.tasks import TASKS, Task, sampled
from peers.tuning.trials import Job, Trial, values

SCRATCH = Path("target/tuning")
RANDOM = "random-search"
THEIRS = ("optuna-tpe", "ngopt")
# Seeds of random search: the more, the better its median is known. Those of runs are the first.
RANDOM_SEEDS = 5
# A score of 1 is the median of random search after as many evaluations.
REFERENCE = 10


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m peers.tuning",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--methods",
        metavar="A,..",
        default="auto,race-cars",
        help=f"ours by name; {', '.join(PEERS)}; `peers` for {', '.join(THEIRS)} "
        "(default: %(default)s; random search is always there)",
    )
    parser.add_argument("--tasks", metavar="T,..", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--half", choices=HALVES, default="choose", help="of the tasks")
    parser.add_argument("--budgets", metavar="T,..", default="30,50,100", help="%(default)s")
    parser.add_argument("--seeds", metavar="K", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--processes", metavar="P", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="T = 30, one seed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--cache", metavar="CSV", type=Path, default=SCRATCH / "runs.csv")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the tables here, too")
    return parser.parse_args()


def chosen_tasks(options: argparse.Namespace) -> list[Task]:
    if not options.tasks:
        return [task for task in TASKS.values() if task.half == options.half]
    unknown = [name for name in options.tasks.split(",") if name not in TASKS]
    if unknown:
        raise ValueError(f"task {unknown[0]} is not one of {', '.join(TASKS)}")
    return [TASKS[name] for name in options.tasks.split(",")]


class Scores:
    """The results by method, task, seed and T."""

    def __init__(self, trials: list[Trial], tasks: list[Task], budgets: list[int]) -> None:
        self.trials, self.tasks, self.budgets = trials, tasks, budgets
        self.methods = list(dict.fromkeys(trial.method for trial in trials))
        self.bests = {task.name: values().best(task) for task in tasks}
        self.references = {task.name: reference(task, max(budgets)) for task in tasks}
        self.notes = Counter((trial.method, trial.note) for trial in trials if trial.note)

    def finals(self, method: str, task: Task, budget: int) -> dict[int, float]:
        """The final value of each seed."""
        return {
            trial.seed: trial.best_at(budget)
            for trial in self.trials
            if (trial.method, trial.task) == (method, task.name)
            and trial.bests
            and (trial.budget == budget or (is_anytime(method) and trial.budget > budget))
        }

    def score(self, method: str, task: Task, budget: int, count: int) -> float | None:
        """The mean over the first seeds."""
        finals = [v for seed, v in self.finals(method, task, budget).items() if seed < count]
        if not finals:
            return None
        best = self.bests[task.name]
        return (statistics.fmean(finals) - best) / max(self.references[task.name] - best, 1e-12)

    def wins(self, method: str, budget: int, count: int) -> float | None:
        """The share of paired runs that random search loses."""
        points = []
        for task in self.tasks:
            others = self.finals(RANDOM, task, budget)
            for seed, value in self.finals(method, task, budget).items():
                if seed < count and seed in others:
                    points.append((value < others[seed]) + 0.5 * (value == others[seed]))
        return statistics.fmean(points) if points else None

    def mean(self, method: str, budget: int, count: int) -> float | None:
        scores = [self.score(method, task, budget, count) for task in self.tasks]
        known = [score for score in scores if score is not None]
        return statistics.fmean(known) if len(known) == len(scores) else None

    def as_dict(self, count: int) -> dict[str, Any]:
        return {
            method: {
                budget: {
                    "score": self.mean(method, budget, count),
                    "beats_random": self.wins(method, budget, count),
                    "tasks": {
                        task.name: self.score(method, task, budget, count) for task in self.tasks
                    },
                }
                for budget in self.budgets
            }
            for method in self.methods
        }

    def page(self, count: int) -> str:
        def text(number: float | None, form: str) -> str:
            return NONE if number is None else format(number, form)

        parts = []
        names = [f"**{m}**" if m not in PEERS else m for m in self.methods]
        rows = [
            [name]
            + [text(self.mean(method, budget, count), ".2f") for budget in self.budgets]
            + [text(self.wins(method, budget, count), ".0%") for budget in self.budgets]
            for name, method in zip(names, self.methods, strict=True)
        ]
        header = [f"score, T = {budget}" for budget in self.budgets]
        header += [f"beats random, T = {budget}" for budget in self.budgets]
        parts.append(markdown(["method", *header], rows))
        for budget in self.budgets:
            rows = [
                [name]
                + [text(self.score(method, task, budget, count), ".2f") for task in self.tasks]
                for name, method in zip(names, self.methods, strict=True)
            ]
            parts.append(f"Scores by task, T = {budget}:")
            parts.append(markdown(["method", *(task.name for task in self.tasks)], rows))
        parts += [f"- {m}, {count} runs: {note}" for (m, note), count in self.notes.items()]
        return "\n\n".join(parts) + "\n"


def reference(task: Task, budget: int) -> float:
    """The median of the best of `REFERENCE` random configurations. The best of k is below the
    quantile q of a single one with probability 1 - (1 - q)^k."""
    pool = []
    for seed in range(RANDOM_SEEDS):
        random = np.random.default_rng(seed)
        pool += [values().of(task, sampled(task.space, random)) for _ in range(budget)]
    return float(np.quantile(pool, 1 - 0.5 ** (1 / REFERENCE)))


def is_anytime(method: str) -> bool:
    return method in PEERS and PEERS[method][2]


def run(options: argparse.Namespace) -> None:
    budgets = sorted(numbers("30" if options.quick else options.budgets, "budgets"))
    seeds = 1 if options.quick else options.seeds
    tasks = chosen_tasks(options)
    chosen = list(dict.fromkeys([*methods(options.methods, THEIRS, PEERS), RANDOM]))
    jobs = [
        Job(task.name, method, seed, budget)
        for method in chosen
        for seed in range(max(seeds, RANDOM_SEEDS) if method == RANDOM else seeds)
        for budget in (budgets[-1:] if is_anytime(method) else budgets)
        for task in tasks
    ]
    trials = run_jobs("tuning", jobs, Kept(options.cache, Trial), options.processes)
    scores = Scores(trials, tasks, budgets)
    if options.json:
        print(json.dumps(scores.as_dict(seeds), indent=1))
        return
    packages = ["scikit-learn", *(PEERS[name][1] for name in chosen if name in PEERS)]
    about = written_by("./scripts/tuning", packages)
    terms = (
        f"Mean scores of {len(tasks)} tasks and {seeds} seeds: 0 is the best value known, 1 the "
        f"median of random search after {REFERENCE} evaluations. Bold names are ours."
    )
    page = "\n\n".join(["# Tuning scikit-learn models", about, terms, scores.page(seeds)])
    publish(page, options.out)


def main() -> int:
    use_one_thread()
    return guarded(run, arguments())


if __name__ == "__main__":
    sys.exit(main())
