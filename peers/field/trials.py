"""Trials, in worker processes."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace

from peers.field.optimizers import PEERS, Peer, Run, ours
from peers.field.sections import Section
from peers.objective import Objective
from peers.problems import Problem

# How often progress is said where it cannot be overwritten.
PERIOD = 10.0
# Our trials are so short that another process disturbs all of one; the least of so many counts.
REPEATS = 5


@dataclass(frozen=True)
class Trial:
    """What came of one run. `best` is NaN where it failed, and `note` says why."""

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
    """A trial that is still to be run, of a peer or of one of our algorithms."""

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
        run = Run(self.section.dim, self.seed)
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


def said(error: BaseException) -> str:
    """An error in a line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def run_job(job: Job) -> Trial:
    """Runs a trial, ours several times where the time counts."""
    repeats = REPEATS if job.is_ours and job.section.jobs == 1 else 1
    trials = [run_once(job) for _ in range(repeats)]
    return replace(trials[0], overhead_us=min(trial.overhead_us for trial in trials))


def run_once(job: Job) -> Trial:
    """Runs a trial; what goes wrong becomes a note."""
    section = job.section
    objective = Objective(job.problem, section.evaluations, section.seconds)
    note = ""
    try:
        importlib.import_module(job.package)  # not part of what is timed
        objective.run(job.run)
    except Exception as error:
        note = said(error)
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
    """Runs trials, so many at a time, in fresh processes, which take our environment."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        futures: dict[Future[Trial], Job] = {pool.submit(run_job, job): job for job in jobs}
        for future in as_completed(futures):
            try:
                yield future.result()
            except Exception as error:  # the process is gone
                yield replace(blank_of(futures[future]), note=said(error))


class Progress:
    """Says on standard error how far a section is."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.start = self.said = time.monotonic()

    def step(self, what: str) -> None:
        self.done += 1
        now = time.monotonic()
        if sys.stderr.isatty():
            end = "\n" if self.done == self.total else ""
            print(f"\r\x1b[K{self.line(what, now)}", end=end, file=sys.stderr, flush=True)
        elif now - self.said > PERIOD or self.done == self.total:
            self.said = now
            print(self.line(what, now), file=sys.stderr, flush=True)

    def line(self, what: str, now: float) -> str:
        return f"{self.title}: {self.done}/{self.total}, {what} ({now - self.start:.0f} s)"
