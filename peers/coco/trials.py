"""Runs on COCO's problems, each saved in a CSV file as soon as it is done."""

from __future__ import annotations

import csv
import hashlib
import importlib
import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from peers.coco.suites import Problem, Watched, run_of
from peers.field.optimizers import PEERS, ours
from peers.machine import version
from peers.objective import Objective
from peers.processes import Progress, describe, run_all


@dataclass(frozen=True)
class Job:
    """A run of a method on a problem with a number of evaluations per dimension."""

    problem: Problem
    method: str
    budget: int
    seconds: float

    @property
    def evaluations(self) -> int:
        return self.budget * self.problem.dim

    @property
    def effort(self) -> float:
        """A rough estimate of its time in microseconds, for the progress display."""
        n = self.problem.dim
        per_evaluation = {
            "ngopt": 1500 + 3 * n,
            "pycma": 100 + 2 * n,
            "zoopt": 60 + 0.5 * n,
            "scipy-de": 30 + 0.3 * n,
        }
        return self.evaluations * (5 + 0.25 * n + per_evaluation.get(self.method, 1 + 0.1 * n))


@dataclass(frozen=True)
class Trial:
    """The result of a run. `hits` has the number of evaluations after which each target was hit,
    for the targets that were hit, in order."""

    suite: str
    function: int
    dim: int
    instance: int
    method: str
    version: str
    budget: int
    evaluations: int
    best: float
    seconds: float
    hits: str
    note: str

    @property
    def hit_at(self) -> list[int]:
        return [int(evaluations) for evaluations in self.hits.split()]

    @property
    def problem(self) -> Problem:
        return Problem(self.suite, self.function, self.dim, self.instance)


def version_of(method: str) -> str:
    """The version of a method, to detect trials of another version."""
    if method in PEERS:
        return version(PEERS[method].package) or "none"
    core = importlib.import_module("racecars._core").__file__
    return hashlib.sha256(Path(str(core)).read_bytes()).hexdigest()[:12]


def run_job(job: Job) -> Trial:
    """Runs a trial. Exceptions of the optimizer propagate."""
    problem = job.problem
    optimum = problem.optimum()
    with problem.opened() as opened:
        watched = Watched(opened, optimum)
        objective = Objective(watched, job.evaluations, job.seconds)
        run = run_of(opened, problem.instance)
        start = time.process_time()
        if job.method in PEERS:
            objective.run(lambda objective: PEERS[job.method].run(run, objective))
        else:
            objective.run(lambda objective: ours(job.method, run, objective))
        seconds = time.process_time() - start
    is_cut = objective.is_out_of_time and objective.evaluations < job.evaluations
    return Trial(
        **asdict(problem),
        method=job.method,
        version=version_of(job.method),
        budget=job.budget,
        evaluations=objective.evaluations,
        best=objective.best - optimum,
        seconds=seconds,
        hits=" ".join(map(str, watched.hits)),
        note=f"stopped after {job.seconds:g} s" if is_cut else "",
    )


class Kept:
    """The finished trials, in a CSV file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials: list[Trial] = []
        if path.exists():
            with path.open(newline="") as file:
                self.trials = [parsed(row) for row in csv.DictReader(file)]

    def of(self, jobs: Iterable[Job]) -> dict[Job, Trial]:
        """The saved trials of these jobs by the current versions of the methods."""
        known = {
            (trial.problem, trial.method, trial.budget, trial.version): trial
            for trial in self.trials
        }
        versions: dict[str, str] = {}
        found = {}
        for job in jobs:
            if job.method not in versions:
                versions[job.method] = version_of(job.method)
            trial = known.get((job.problem, job.method, job.budget, versions[job.method]))
            if trial is not None:
                found[job] = trial
        return found

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            columns = [field.name for field in fields(Trial)]
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(asdict(trial))


def parsed(row: dict[str, str]) -> Trial:
    whole = ("function", "dim", "instance", "budget", "evaluations")
    numbers = {name: int(row[name]) for name in whole}
    best, seconds = float(row["best"]), float(row["seconds"])
    texts = {name: row[name] for name in ("suite", "method", "version", "hits", "note")}
    return Trial(**numbers, best=best, seconds=seconds, **texts)  # type: ignore[arg-type]


def run_jobs(jobs: list[Job], kept: Kept, processes: int) -> list[Trial]:
    """The trials of these jobs. Saved trials are not run again."""
    done = kept.of(jobs)
    missing = [job for job in jobs if job not in done]
    progress = Progress("coco", sum(job.effort for job in missing))
    for job, trial in run_all(run_job, missing, processes):
        if isinstance(trial, Exception):
            trial = failed(job, trial)
        else:
            kept.add(trial)
        done[job] = trial
        problem = job.problem
        where = f"{problem.suite} f{problem.function} n = {problem.dim}"
        progress.step(f"{len(done)} of {len(jobs)} runs, {job.method} on {where}", job.effort)
    return [done[job] for job in jobs]


def failed(job: Job, error: Exception) -> Trial:
    """A trial without a result. It is not saved, since it may work with other packages."""
    return Trial(
        **asdict(job.problem),
        method=job.method,
        version="",
        budget=job.budget,
        evaluations=0,
        best=math.inf,
        seconds=0.0,
        hits="",
        note=describe(error),
    )
