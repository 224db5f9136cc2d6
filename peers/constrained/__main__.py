"""Problems with constraints that the evaluation measures: the share of 41 targets from 100 to 1e-6
that a feasible point hit, on COCO's bbob-constrained and the problems of CEC 2006, with T = 100n
and 1000n.

Every evaluation gives the objective and all constraints. All methods have the same start: COCO's
feasible one, or a random point of the box. For choosing settings there are instances 1 to 5 and
the odd problems of CEC 2006, for reporting instances 11 to 15 and the even ones. Finished runs are
saved in target/constrained/runs.csv.

    ./scripts/constrained --methods auto,pycma-al,scipy-de,cobyla
    ./scripts/constrained --half report --methods auto,peers
    ./scripts/constrained --quick
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

from peers.constrained.cec2006 import PROBLEMS
from peers.constrained.methods import PEERS
from peers.constrained.problems import BBOB, CEC, FUNCTIONS, TARGETS, Problem
from peers.constrained.trials import Job, Trial
from peers.field.report import NONE, markdown
from peers.kept import Kept, run_jobs
from peers.machine import use_one_thread, written_by
from peers.options import HALVES, guarded, methods, numbers, publish

SCRATCH = Path("target/constrained")
TERMS = """\
The percentage of the 41 targets (f - f_opt of a feasible point from 100 to 1e-6; with CEC 2006
relative to |f_opt| where that is above 1) that were hit; in brackets the percentage of problems
solved to 1e-4. Bold names are ours, the best of each column is in italics."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m peers.constrained",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = "auto,pycma-al,scipy-de,cobyla,slsqp"
    parser.add_argument(
        "--methods",
        metavar="A,..",
        default=default,
        help=f"ours by name; {', '.join(PEERS)}; `peers` for all of these (default: %(default)s)",
    )
    parser.add_argument("--suites", metavar="S,..", default=f"{BBOB},{CEC}")
    parser.add_argument("--dims", metavar="N,..", default="5,10", help="of bbob-constrained")
    parser.add_argument("--budgets", metavar="K,..", default="100,1000", help="per dimension")
    parser.add_argument("--functions", metavar="F,..", default=f"1-{FUNCTIONS}", help="of COCO")
    parser.add_argument("--half", choices=HALVES, default="choose")
    parser.add_argument("--instances", metavar="I,..", help="instead of the first of a half")
    parser.add_argument("--processes", metavar="P", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="n = 5, 100n, every ninth function")
    parser.add_argument("--saved", action="store_true", help="run nothing: tables of saved runs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--cache", metavar="CSV", type=Path, default=SCRATCH / "runs.csv")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the tables here, too")
    return parser.parse_args()


def problems(options: argparse.Namespace) -> list[Problem]:
    instances = numbers(options.instances or HALVES[options.half], "instances")
    if not options.instances:
        instances = instances[:1]
    found: list[Problem] = []
    for suite in options.suites.split(","):
        if suite == CEC:
            odd = 1 if options.half == "choose" else 0
            found += [
                Problem(CEC, number, len(definition.low), instance)
                for number, definition in PROBLEMS.items()
                if number % 2 == odd
                for instance in instances
            ]
        elif suite == BBOB:
            functions = numbers(options.functions, "functions")
            found += [
                Problem(BBOB, function, dim, instance)
                for dim in numbers("5" if options.quick else options.dims, "dimensions")
                for function in (functions[::9] if options.quick else functions)
                for instance in instances
            ]
        else:
            raise ValueError(f"suite {suite} is not one of {BBOB}, {CEC}")
    return found


def groups(trials: list[Trial]) -> dict[str, list[Trial]]:
    """The trials by column: suite, dimension of COCO's, budget per dimension."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        name = CEC if trial.suite == CEC else f"{trial.suite}, n = {trial.dim}"
        found.setdefault(f"{name}, {trial.budget // trial.dim}n", []).append(trial)
    return found


def summary(trials: list[Trial], chosen: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    """By column and method, over the problems that all methods have run: the share of targets, and
    that of problems solved."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for column, of_column in groups(trials).items():
        sets = [
            {(t.function, t.instance) for t in of_column if t.method == method and not t.note}
            for method in chosen
        ]
        common = set.intersection(*(one for one in sets if one)) if any(sets) else set()
        for method in chosen:
            own = [
                t
                for t in of_column
                if t.method == method and not t.note and (t.function, t.instance) in common
            ]
            if own:
                found.setdefault(column, {})[method] = {
                    "targets": statistics.fmean(t.hits / len(TARGETS) for t in own),
                    "solved": statistics.fmean(t.best <= 1e-4 for t in own),
                    "problems": len(own),
                }
    return found


def page(found: dict[str, dict[str, dict[str, float]]], chosen: list[str], about: str) -> str:
    rows = []
    for method in chosen:
        cells = []
        for of_column in found.values():
            if method not in of_column:
                cells.append(NONE)
                continue
            share = of_column[method]["targets"]
            text = f"{100 * share:.1f}"
            if share == max(one["targets"] for one in of_column.values()):
                text = f"*{text}*"
            cells.append(f"{text} ({100 * of_column[method]['solved']:.0f})")
        rows.append([method if method in PEERS else f"**{method}**", *cells])
    counts = [
        f"{column} ({next(iter(of.values()))['problems']:.0f})" for column, of in found.items()
    ]
    others = "\n".join(f"- `{name}`: {PEERS[name].about}" for name in chosen if name in PEERS)
    parts = ["# Constraints that evaluations measure", about, TERMS]
    return "\n\n".join([*parts, markdown(["method", *counts], rows), others]) + "\n"


def execute(options: argparse.Namespace) -> None:
    chosen = methods(options.methods, PEERS, PEERS)
    budgets = numbers("100" if options.quick else options.budgets, "budgets")
    jobs = [
        Job(problem, method, budget * problem.dim)
        for problem in problems(options)
        for method in chosen
        for budget in budgets
    ]
    jobs.sort(key=lambda job: job.effort)
    kept = Kept(options.cache, Trial)
    if options.saved:
        jobs = [job for job in jobs if kept.has(job)]
    trials = run_jobs("constrained", jobs, kept, options.processes)
    for method in sorted({t.method for t in trials if t.note}):
        notes = [t.note for t in trials if t.method == method and t.note]
        print(f"{method}: {len(notes)} runs failed, the first with {notes[0]}", file=sys.stderr)
    found = summary(trials, chosen)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    packages = ["coco-experiment", *(PEERS[name].package for name in chosen if name in PEERS)]
    about = written_by("./scripts/constrained", dict.fromkeys(packages))
    publish(page(found, chosen, about), options.out)


def main() -> int:
    use_one_thread()
    return guarded(execute, arguments())


if __name__ == "__main__":
    sys.exit(main())
