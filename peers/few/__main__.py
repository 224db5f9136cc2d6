"""Few evaluations: the mean rank of the regret after T = 20, 50, 100 and 200 evaluations at n = 2,
5, 10 and 20, on BBOB's functions and eight of ours with optima at random places.

Ranks are 1 for the least regret, and ties have the mean of their ranks; regrets below 1e-8 are
ties. A cell ranks the problems that all its methods have run: slow peers have one instance and, by
`--slow-functions`, some of the functions. Each T is a run of its own for methods that plan with the
budget. Instances are halved as in `peers.bbob`. Finished runs are saved in target/few/runs.csv.

    ./scripts/few --methods auto,cobyla,nlopt-bobyqa,pycma
    ./scripts/few --half report --methods auto,peers --slow-functions 1,3,8,10,15,17,21,24
    ./scripts/few --quick
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from peers.coco.suites import FUNCTIONS, OWN, OWN_CENTERS, Problem
from peers.coco.trials import Job, Trial
from peers.few.ranks import Cell, Ranks, page
from peers.field.optimizers import PEERS
from peers.kept import Kept, run_jobs
from peers.machine import use_one_thread, written_by
from peers.options import HALVES, guarded, methods, numbers, publish

OURS = ("auto", "race-cars")
THEIRS = (
    "cobyla",
    "nlopt-bobyqa",
    "pycma",
    "scipy-da",
    "numpy-random",
    "ngopt",
    "optuna-tpe",
    "optuna-gp",
    "hebo",
    "smac",
    "turbo",
)
SCRATCH = Path("target/few")
# The number of instances by default: BBOB has five, which is more than small budgets need.
INSTANCES = 3


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m peers.few",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--methods",
        metavar="A,..",
        default=",".join((*OURS, "cobyla", "nlopt-bobyqa", "pycma", "numpy-random")),
        help=f"ours by name; {', '.join(THEIRS)}; `peers` for all of these (default: %(default)s)",
    )
    parser.add_argument("--dims", metavar="N,..", default="2,5,10,20", help="default: %(default)s")
    parser.add_argument(
        "--budgets", metavar="T,..", default="20,50,100,200", help="default: %(default)s"
    )
    parser.add_argument("--functions", metavar="F,..", default=f"1-{FUNCTIONS}", help="of BBOB")
    parser.add_argument("--slow-functions", metavar="F,..", help="of BBOB, for slow peers")
    parser.add_argument("--no-own", action="store_true", help="leave out our own functions")
    parser.add_argument("--half", choices=HALVES, default="choose", help="of the instances")
    parser.add_argument("--instances", metavar="I,..", help="instead of three of a half, as 1-5")
    parser.add_argument("--processes", metavar="P", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=300.0, help="processor time limit of a run"
    )
    parser.add_argument("--quick", action="store_true", help="n = 2, 5; T = 20, 50; one instance")
    parser.add_argument("--saved", action="store_true", help="run nothing: tables of saved runs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--cache", metavar="CSV", type=Path, default=SCRATCH / "runs.csv")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the tables here, too")
    return parser.parse_args()


def problems(options: argparse.Namespace, dim: int, is_slow: bool) -> list[Problem]:
    instances = numbers(options.instances or HALVES[options.half], "instances")
    if not options.instances:
        instances = instances[:INSTANCES]
    if options.quick or is_slow:
        instances = instances[:1]
    functions = options.slow_functions if is_slow and options.slow_functions else options.functions
    found = [
        Problem("bbob", function, dim, instance)
        for function in numbers(functions, "functions")
        for instance in instances
    ]
    own = range(0 if options.no_own else len(OWN_CENTERS))
    return found + [Problem(OWN, i + 1, dim, instance) for i in own for instance in instances]


def jobs_of(options: argparse.Namespace, chosen: list[str], cells: list[Cell]) -> list[Job]:
    jobs = []
    for method in chosen:
        peer = PEERS.get(method)
        is_slow, is_anytime = (peer.is_slow, peer.is_anytime) if peer else (False, False)
        for dim in dict.fromkeys(cell.dim for cell in cells):
            budgets = sorted(cell.budget for cell in cells if cell.dim == dim)
            jobs += [
                Job(problem, method, budget, options.seconds, True, is_anytime)
                for budget in (budgets[-1:] if is_anytime else budgets)
                for problem in problems(options, dim, is_slow)
            ]
    return sorted(jobs, key=lambda job: job.effort)


def run(options: argparse.Namespace) -> None:
    dims = numbers("2,5" if options.quick else options.dims, "dimensions")
    budgets = numbers("20,50" if options.quick else options.budgets, "budgets")
    cells = [Cell(dim, budget) for dim in dims for budget in budgets]
    chosen = methods(options.methods, THEIRS)
    jobs = jobs_of(options, chosen, cells)
    kept = Kept(options.cache, Trial)
    if options.saved:
        jobs = [job for job in jobs if kept.has(job)]
    trials = run_jobs("few", jobs, kept, options.processes)
    ranks = Ranks(trials, cells, chosen)
    if options.json:
        print(json.dumps(ranks.as_dict(), indent=1))
        return
    packages = [PEERS[name].package for name in chosen if name in PEERS]
    text = page(ranks, written_by("./scripts/few", ["coco-experiment", *packages]))
    publish(text, options.out)


def main() -> int:
    use_one_thread()
    return guarded(run, arguments())


if __name__ == "__main__":
    sys.exit(main())
