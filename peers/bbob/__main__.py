"""BBOB by budget: the share of targets hit with 10n to 10000n evaluations, ours beside the others.

The targets are the usual 51, f - f_opt from 100 to 1e-8. Ours, NGOpt and minionpy plan with the
budget, and each column is a run of its own. The others are anytime methods: one run with the
largest budget has all columns. Local methods are restarted from random points until the budget is
used; the first start is the centre. Instances 1 to 5 are for choosing (`--half choose`), 11 to 15
for reporting (`--half report`): they have other optima and rotations. Slow peers have fewer
instances and a time limit, which the table says. `--suite bbob-mixint` is the same with four fifths
of the coordinates integers, from random starts; `--suite bbob-grid` has bbob's functions at
integers times 0.05.

Finished runs are saved in target/bbob/runs.csv, by the version of the method: only what has changed
runs again. `./scripts/bbob` installs the requirements and calls this.

    ./scripts/bbob --methods auto,cma-es --dims 5,20 --budgets 10,30,100,300
    ./scripts/bbob --half report --methods auto,peers
    ./scripts/bbob --suite bbob-mixint --methods auto,cma-es,pycma --budgets 30,100,300,1000
    ./scripts/bbob --quick
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from peers.bbob import report
from peers.bbob.columns import Column, Results
from peers.coco.suites import FUNCTIONS, GRID, SUITES, Problem
from peers.coco.trials import Job, Trial
from peers.field.optimizers import PEERS
from peers.field.run import Peer
from peers.kept import Kept, run_jobs
from peers.machine import use_one_thread, written_by
from peers.options import HALVES, guarded, methods, numbers, publish

OURS = ("auto", "race-cars", "cma-es", "l-shade")
THEIRS = (
    "scipy-da",
    "ngopt",
    "pycma",
    "lq-cma",
    "cobyla",
    "cobyqa",
    "nlopt-bobyqa",
    "py-bobyqa",
    "minion-jso",
    "minion-arrde",
    "minion-l-shade",
    "minion-bipop",
)
BUDGETS = (10, 30, 100, 300, 1000, 3000, 10000)
# The largest default budget per coordinate by dimension; 3000n in others.
LARGEST = {5: 10000}
# Microseconds per evaluation from which on a peer is slow, or very slow.
SLOW_US = 100
VERY_SLOW_US = 1000
SCRATCH = Path("target/bbob")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m peers.bbob",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--methods",
        metavar="A,..",
        default=",".join(OURS),
        help="ours, by any name of racecars.METHODS, with settings as in `cma-es:sigma=0.1`; "
        f"{', '.join(THEIRS)}; `peers` for all of these (default: %(default)s)",
    )
    parser.add_argument("--suite", choices=[*SUITES, GRID], default="bbob")
    parser.add_argument("--dims", metavar="N,..", default="5,20,40", help="default: %(default)s")
    parser.add_argument("--budgets", metavar="B,..", help="evaluations per coordinate")
    parser.add_argument("--functions", metavar="F,..", default=f"1-{FUNCTIONS}", help="as 1-5,8")
    parser.add_argument("--half", choices=HALVES, default="choose", help="of the instances")
    parser.add_argument("--instances", metavar="I,..", help="instead of a half, as 1-3")
    parser.add_argument(
        "--slow-instances",
        metavar="K",
        type=int,
        default=1,
        help="of very slow peers, twice as many of slow ones",
    )
    parser.add_argument("--processes", metavar="P", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--seconds", metavar="S", type=float, default=60.0, help="processor time limit of a run"
    )
    parser.add_argument("--by", choices=["group", "function"], help="further tables")
    parser.add_argument("--quick", action="store_true", help="n = 5, 10n to 100n, one instance")
    parser.add_argument("--saved", action="store_true", help="run nothing: tables of saved runs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--cache", metavar="CSV", type=Path, default=SCRATCH / "runs.csv")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the tables here, too")
    return parser.parse_args()


def columns(options: argparse.Namespace) -> list[Column]:
    dims = numbers("5" if options.quick else options.dims, "dimensions")
    if options.budgets or options.quick:
        budgets = numbers(options.budgets or "10,30,100", "budgets")
        return [Column(dim, budget) for dim in dims for budget in budgets]
    return [
        Column(dim, budget)
        for dim in dims
        for budget in BUDGETS
        if budget <= LARGEST.get(dim, 3000)
    ]


def instance_count(peer: Peer | None, slow: int) -> int | None:
    """The number of instances of a method; `None` for all."""
    if peer is None or peer.cost_us < SLOW_US:
        return None
    return slow if peer.cost_us >= VERY_SLOW_US else 2 * slow


def jobs_of(options: argparse.Namespace, chosen: list[str], places: list[Column]) -> list[Job]:
    """All runs, the slow ones last."""
    functions = numbers(options.functions, "functions")
    instances = numbers(options.instances or HALVES[options.half], "instances")
    if options.quick:
        instances = instances[:1]
    jobs = []
    for method in chosen:
        peer = PEERS.get(method)
        is_anytime = peer is not None and peer.is_anytime
        for dim in dict.fromkeys(column.dim for column in places):
            budgets = sorted(column.budget for column in places if column.dim == dim)
            of_method = instances[: instance_count(peer, options.slow_instances)]
            jobs += [
                Job(
                    Problem(options.suite, function, dim, instance),
                    method,
                    budget * dim,
                    options.seconds,
                    is_central=options.suite == "bbob",
                    may_be_longer=is_anytime,
                )
                for budget in (budgets[-1:] if is_anytime else budgets)
                for instance in of_method
                for function in functions
            ]
    return sorted(jobs, key=lambda job: PEERS[job.method].cost_us if job.method in PEERS else 0)


def run(options: argparse.Namespace) -> None:
    places, chosen = columns(options), methods(options.methods, THEIRS)
    jobs = jobs_of(options, chosen, places)
    kept = Kept(options.cache, Trial)
    if options.saved:
        jobs = [job for job in jobs if kept.has(job)]
    trials = run_jobs("bbob", jobs, kept, options.processes)
    results = Results(trials, places, chosen)
    if options.json:
        print(json.dumps(results.as_dict(), indent=1))
        return
    packages = [PEERS[name].package for name in chosen if name in PEERS]
    about = written_by("./scripts/bbob", ["coco-experiment", *packages])
    text = report.page(results, about, options.by)
    publish(text, options.out)


def main() -> int:
    use_one_thread()
    return guarded(run, arguments())


if __name__ == "__main__":
    sys.exit(main())
