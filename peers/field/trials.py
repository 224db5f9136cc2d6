"""Trials, in worker processes."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from peers.field.optimizers import PEERS, ours
from peers.field.run import Peer, Run
from peers.field.sections import Section
from peers.objective import Objective
from peers.problems import Problem
from peers.processes import describe, run_all

# Our trials are so short that another process can disturb a whole one: the least of repeats counts.
REPEATS = 5


@dataclass(frozen=True)
class Trial:
    """The result of one run. If it failed, `best` is NaN and `note` says why."""

    section: str
    problem: str
    dim: int
    budget: int
    method: str
    is_ours: bool
    seed: int
    best: float
    evaluations: int
    overhead_us: float
    note: str = ""


@dataclass(frozen=True)
class Job:
    """A trial to run, of a peer or of one of our algorithms."""

    section: Section
    problem: Problem
    method: str
    seed: int

    @property
    def is_ours(self) -> bool:
        return self.method not in PEERS

    @property
    def package(self) -> str:
        return "racecars" if self.is_ours else PEERS[self.method].package

    def run(self, objective: Objective) -> None:
        run = Run.cube(self.section.dim, self.seed)
        if self.is_ours:
            ours(self.method, run, objective)
        else:
            PEERS[self.method].run(run, objective)


def blank(section: Section, problem: str, method: str, seed: int, is_ours: bool) -> Trial:
    """A trial without a result."""
    return Trial(
        section=section.title,
        problem=problem,
        dim=section.dim,
        budget=section.evaluations,
        method=method,
        is_ours=is_ours,
        seed=seed,
        best=math.nan,
        evaluations=0,
        overhead_us=math.nan,
    )


def run_job(job: Job) -> Trial:
    """Runs a trial; one of ours several times if its time is reported."""
    repeats = REPEATS if job.is_ours and job.section.jobs == 1 else 1
    trials = [run_once(job) for _ in range(repeats)]
    return replace(trials[0], overhead_us=min(trial.overhead_us for trial in trials))


def run_once(job: Job) -> Trial:
    """Runs a trial. An exception becomes its note."""
    section = job.section
    objective = Objective(job.problem, section.evaluations, section.seconds)
    note = ""
    try:
        importlib.import_module(job.package)  # outside of the timing
        objective.run(job.run)
    except Exception as error:
        note = describe(error)
    if objective.is_out_of_time and objective.evaluations < section.evaluations:
        note = f"stopped after {section.seconds:g} s"
    trial = replace(blank_of(job), note=note)
    if objective.evaluations == 0:
        return trial
    return replace(
        trial,
        best=objective.best,
        evaluations=objective.evaluations,
        overhead_us=objective.overhead_us,
    )


def blank_of(job: Job) -> Trial:
    return blank(job.section, job.problem.name, job.method, job.seed, job.is_ours)


def jobs_of(
    section: Section, problems: list[Problem], algorithms: list[str], peers: list[Peer], seed: int
) -> list[Job]:
    """The trials of a section: ours, then the peers'."""
    of_ours = [
        Job(section, problem, algorithm, seed + trial)
        for problem in problems
        for algorithm in algorithms
        for trial in range(section.seeds)
    ]
    return of_ours + [
        Job(section, problem, peer.name, seed + trial)
        for problem in problems
        for peer in peers
        if peer.refuses(section.dim, section.evaluations) is None
        for trial in range(section.seeds_of(peer.is_slow))
    ]


def left_out(section: Section, peers: list[Peer], seed: int) -> list[Trial]:
    """An empty trial for each peer that this section does not run, with the reason."""
    reasons = {peer.name: peer.refuses(section.dim, section.evaluations) for peer in peers}
    return [
        replace(blank(section, section.problems[0], name, seed, is_ours=False), note=reason)
        for name, reason in reasons.items()
        if reason is not None
    ]


def run_jobs(jobs: list[Job], processes: int) -> Iterator[Trial]:
    """Runs trials in parallel. If a process died, the note says so."""
    for job, trial in run_all(run_job, jobs, processes):
        yield (
            replace(blank_of(job), note=describe(trial)) if isinstance(trial, Exception) else trial
        )
