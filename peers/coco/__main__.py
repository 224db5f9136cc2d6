"""COCO: ours and other optimizers on bbob, bbob-largescale and bbob-mixint.

Counts the share of the 51 usual targets, f - f_opt from 100 to 1e-8, that each optimizer hits on
all functions with 30 and with 100 evaluations per dimension, and writes a page and a figure of the
share over the budget. Finished runs are saved in target/coco/runs.csv: after Ctrl-C, run the same
command again to resume. Only methods that have changed are run again. `./scripts/coco` installs the
requirements and calls this.

    ./scripts/coco [--full]
    python -m peers.coco [--suites S,..] [--dims N,..] [--budgets 30,100] [--functions 1,2,..]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import racecars
from peers.coco import report
from peers.coco.suites import FUNCTIONS, SUITES, Problem
from peers.coco.trials import Job, Trial
from peers.field.optimizers import PEERS, is_ours
from peers.kept import Kept, run_jobs
from peers.machine import use_one_thread, written_by
from peers.options import guarded, numbers

OURS = ("auto", "race-cars", "cma-es")
THEIRS = ("pycma", "ngopt", "zoopt", "scipy-de")
BUDGETS = "30,100"
SCRATCH = Path("target/coco")

TERMS = """\
The tables show the percentage of pairs of a problem and a target that were hit. The targets are the
usual 51: f - f_opt from 100 down to 1e-8, evenly spaced on a log scale. A column such as 30n is of
runs that were given 30 evaluations per dimension from the start, which some methods plan with. Bold
names are ours, the best value of each column is in italics. Each optimizer has its defaults and one
run on each instance of each function, and does not use the initial points that the suite proposes.
In suites with integers, all optimizers are told which coordinates are integers; pycma's points are
rounded."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m peers.coco",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true", help="all dimensions, and instances 1 to 3")
    parser.add_argument("--suites", metavar="S,..", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--dims", metavar="N,..", help="a subset of the suites' dimensions")
    parser.add_argument("--functions", metavar="F,..", help=f"of 1 to {FUNCTIONS}")
    parser.add_argument("--instances", metavar="K", type=int, help="the number of instances")
    parser.add_argument("--budgets", metavar="B,..", default=BUDGETS, help="evaluations per n")
    parser.add_argument("--methods", metavar="A,..", help=f"of {', '.join(OURS + THEIRS)}, ..")
    parser.add_argument(
        "--jobs", metavar="J", type=int, default=os.cpu_count() or 1, help="parallel runs"
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        default=600.0,
        help="processor time limit of a run",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="directory of page and figure")
    return parser.parse_args()


def problems(options: argparse.Namespace) -> list[Problem]:
    """The problems that the options select, in order of dimension."""
    suites = options.suites.split(",") if options.suites else list(SUITES)
    unknown = [name for name in suites if name not in SUITES]
    if unknown:
        raise ValueError(f"suite {unknown[0]} is not one of {', '.join(SUITES)}")
    functions = numbers(options.functions, "functions") if options.functions else None
    instances = options.instances or (3 if options.full else 1)
    wanted = numbers(options.dims, "dimensions") if options.dims else None
    found = []
    for suite in (SUITES[name] for name in suites):
        dims = suite.all_dims if options.full or wanted else suite.dims
        for dim in (dim for dim in dims if wanted is None or dim in wanted):
            for function in functions or range(1, FUNCTIONS + 1):
                found += [
                    Problem(suite.name, function, dim, instance + 1)
                    for instance in range(instances)
                ]
    if not found:
        raise ValueError("none of the suites has one of these dimensions")
    return sorted(found, key=lambda problem: problem.dim)


def methods(options: argparse.Namespace) -> list[str]:
    """The methods that the options select; by default those of ours that this version has."""
    if not options.methods:
        return [name for name in OURS if name in racecars.METHODS] + list(THEIRS)
    names: list[str] = options.methods.split(",")
    for name in names:
        if name not in PEERS and not is_ours(name):
            known = [*racecars.METHODS, *PEERS]
            raise ValueError(f"method {name} is not one of {', '.join(known)}")
    return names


def is_whole(options: argparse.Namespace) -> bool:
    """Whether nothing is left out, so that the results may replace those in the repository."""
    changed = [options.suites, options.dims, options.functions, options.instances, options.methods]
    return not any(changed) and options.budgets == BUDGETS


def run(options: argparse.Namespace) -> None:
    budgets = numbers(options.budgets, "budgets")
    chosen, places = methods(options), problems(options)
    jobs = [
        Job(problem, method, budget * problem.dim, options.seconds)
        for method in chosen
        for problem in places
        for budget in budgets
    ]
    trials = run_jobs("coco", jobs, Kept(SCRATCH / "runs.csv", Trial), options.jobs)
    results = report.Results(trials)
    folder = options.out or (Path("docs") if is_whole(options) else SCRATCH)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    report.draw(results, folder / "figures/coco.svg")
    packages = [PEERS[name].package for name in chosen if name in PEERS]
    about = [written_by("./scripts/coco", ["coco-experiment", *packages]), TERMS]
    text = report.page(results, about, "figures/coco.svg")
    (folder / "coco.md").write_text(text)
    print(text)
    print(f"written to {folder}/coco.md and {folder}/figures/coco.svg", file=sys.stderr)


def main() -> int:
    use_one_thread()
    return guarded(run, arguments())


if __name__ == "__main__":
    sys.exit(main())
