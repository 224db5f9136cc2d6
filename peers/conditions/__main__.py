"""Conditions: a budget that is not known, many candidates out, and noise; ours beside the others.

    ./scripts/conditions horizon    without a budget, relative to the same run with it
    ./scripts/conditions workers    1, 8, 32 and 128 candidates out, relative to one
    ./scripts/conditions noise      three deviations, and two stochastic simulators

A time limit is simulated: `auto` gets no budget and is stopped after T evaluations, which is the
same every time. Candidates come back in a random order. Under noise, the true value at the
recommended point counts; that of a simulator is a mean of 400 replications with the same random
numbers for all points. Instances are halved as in `peers.bbob` (`--half`). Finished runs are saved
in target/conditions/runs.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from peers.coco.suites import OWN
from peers.conditions import report
from peers.conditions.askers import PEERS
from peers.conditions.simulators import SIMULATORS
from peers.conditions.trials import NOISE_HANDLING, Job, Trial
from peers.kept import Kept, run_jobs
from peers.machine import use_one_thread, written_by
from peers.options import HALVES, guarded, methods, numbers, publish

SCRATCH = Path("target/conditions")
# Of each group of BBOB two functions.
FUNCTIONS = (1, 3, 6, 8, 10, 13, 15, 17, 21, 23)
# Of our functions: Levy, Rastrigin (rotated), sphere (rotated), Rosenbrock, Griewank (rotated).
OWN_FUNCTIONS = (1, 2, 4, 5, 6)
METHODS = {
    "horizon": "auto",
    "workers": "auto,cma-es,race-cars,pycma",
    "noise": f"auto,cma-es,pycma,{NOISE_HANDLING},random-search",
}
THEIRS = {
    "horizon": (),
    "workers": ("pycma", "ngopt", "optuna-tpe", "random-search"),
    "noise": ("pycma", NOISE_HANDLING, "ngopt", "optuna-tpe", "random-search"),
}
CONDITIONS = {"horizon": "known,unknown", "workers": "1,8,32,128", "noise": "0.1,1,10"}
BUDGETS = {"horizon": "30n,100n,300n,1000n", "workers": "30n,100n", "noise": "50,200,30n"}
INSTANCES = 3
# Of slow peers with an instance each.
SLOW = ("ngopt", "optuna-tpe")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m peers.conditions",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", choices=METHODS)
    parser.add_argument("--methods", metavar="A,..", help="ours by name, others, or `peers`")
    parser.add_argument("--dims", metavar="N,..", default="10", help="default: %(default)s")
    parser.add_argument("--budgets", metavar="T,..", help="evaluations, or as 30n")
    parser.add_argument("--conditions", metavar="C,..", help="q, or deviations of the noise")
    parser.add_argument("--functions", metavar="F,..", help="of BBOB, or of ours under noise")
    parser.add_argument("--half", choices=HALVES, default="choose", help="of the instances")
    parser.add_argument("--instances", metavar="I,..", help="instead of three of a half")
    parser.add_argument("--processes", metavar="P", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="the first budget, one instance")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--cache", metavar="CSV", type=Path, default=SCRATCH / "runs.csv")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the tables here, too")
    return parser.parse_args()


def evaluations(budget: str, dim: int) -> int:
    return int(budget[:-1]) * dim if budget.endswith("n") else int(budget)


def jobs_of(options: argparse.Namespace) -> list[Job]:
    part: str = options.part
    chosen = methods(options.methods or METHODS[part], THEIRS[part], THEIRS[part])
    instances = numbers(options.instances or HALVES[options.half], "instances")
    instances = instances if options.instances else instances[:INSTANCES]
    budgets = (options.budgets or BUDGETS[part]).split(",")
    if options.quick:
        instances, budgets = instances[:1], budgets[:1]
    conditions = (options.conditions or CONDITIONS[part]).split(",")
    suite = OWN if part == "noise" else "bbob"
    functions = list(OWN_FUNCTIONS if part == "noise" else FUNCTIONS)
    if options.functions:
        functions = numbers(options.functions, "functions")
    places = [
        (suite, function, dim, condition)
        for dim in numbers(options.dims, "dimensions")
        for function in functions
        for condition in conditions
    ]
    if part == "noise":
        kinds = SIMULATORS.items()
        places += [(name, 0, kind(1).dim, "simulated") for name, kind in kinds]
    return [
        Job(part, name, function, dim, instance, method, evaluations(budget, dim), condition)
        for method in chosen
        for budget in dict.fromkeys(budgets)
        for name, function, dim, condition in places
        for instance in (instances[:1] if method in SLOW else instances)
    ]


def run(options: argparse.Namespace) -> None:
    jobs = list(dict.fromkeys(jobs_of(options)))
    trials = run_jobs("conditions", jobs, Kept(options.cache, Trial), options.processes)
    if options.json:
        print(json.dumps(report.as_rows(trials), indent=1))
        return
    packages = [PEERS[job.method][0] for job in jobs if job.method in PEERS]
    about = written_by("./scripts/conditions", ["coco-experiment", *dict.fromkeys(packages)])
    page = report.page(options.part, trials, about)
    publish(page, options.out)


def main() -> int:
    use_one_thread()
    return guarded(run, arguments())


if __name__ == "__main__":
    sys.exit(main())
