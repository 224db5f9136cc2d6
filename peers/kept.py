"""Runs that are saved in a CSV file as soon as they are done, and not run again.

A `Job` knows how to run itself and which saved trial has its result; what a trial holds is up to
the command. After Ctrl-C the same command resumes, and a method whose version changed runs again.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import importlib
import typing
from collections.abc import Hashable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from peers.machine import version
from peers.processes import Progress, describe, run_all

Trial = TypeVar("Trial")
# The exit code after Ctrl-C.
INTERRUPTED = 130


class Job(Protocol[Trial]):
    """A run that is still to be made, in any process."""

    @property
    def key(self) -> Hashable:
        """Equal to the `key` of trials that may have its result."""

    @property
    def effort(self) -> float:
        """A rough estimate of its time, in any unit, for the progress display."""

    @property
    def about(self) -> str:
        """What it is, in a few words."""

    def accepts(self, trial: Trial) -> bool:
        """Whether a saved trial with the same key has its result."""

    def run(self) -> Trial:
        """Runs it. Exceptions of the optimizer propagate."""

    def failed(self, note: str) -> Trial:
        """A trial without a result."""


class Kept(Generic[Trial]):
    """The finished trials, in a CSV file. `kind` is a dataclass of texts and numbers with the
    property `key`."""

    def __init__(self, path: Path, kind: type[Trial]) -> None:
        self.path, self.kind = path, kind
        self.columns = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        self.trials: dict[Hashable, list[Trial]] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        types = typing.get_type_hints(self.kind)
        with self.path.open(newline="") as file:
            reader = csv.DictReader(file)
            is_current = reader.fieldnames == self.columns
            for row in reader if is_current else ():
                self._insert(self.kind(**{name: types[name](row[name]) for name in self.columns}))
        if not is_current:  # of an older version of the command
            self.path.rename(self.path.with_suffix(".old.csv"))

    def _insert(self, trial: Any) -> None:
        self.trials.setdefault(trial.key, []).append(trial)

    def of(self, job: Job[Trial]) -> Trial | None:
        """The latest trial that has the result of this job."""
        found = self.trials.get(job.key, [])
        return next((trial for trial in reversed(found) if job.accepts(trial)), None)

    def has(self, job: Job[Trial]) -> bool:
        return self.of(job) is not None

    def add(self, trial: Trial) -> None:
        self._insert(trial)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(asdict(trial))  # type: ignore[call-overload]


def run_one(job: Job[Trial]) -> Trial:
    return job.run()


def run_jobs(
    title: str, jobs: Sequence[Job[Trial]], kept: Kept[Trial], processes: int
) -> list[Trial]:
    """The trials of these jobs, in their order. Saved trials are not run again.

    A failed job has a trial with a note, which is not saved: it may work with other packages.
    """
    done = {i: trial for i, job in enumerate(jobs) if (trial := kept.of(job)) is not None}
    missing = {id(job): i for i, job in enumerate(jobs) if i not in done}
    todo = [jobs[i] for i in missing.values()]
    progress = Progress(title, sum(job.effort for job in todo))
    for job, result in run_all(run_one, todo, processes):
        if isinstance(result, Exception):
            trial = job.failed(describe(result))
        else:
            trial = result
            kept.add(trial)
        done[missing[id(job)]] = trial
        progress.step(f"{len(done)} of {len(jobs)} runs, {job.about}", job.effort)
    return [done[i] for i in range(len(jobs))]


@functools.cache
def version_of_ours() -> str:
    """Identifies the build of our package, to detect trials of another build."""
    core = importlib.import_module("racecars._core").__file__
    return hashlib.sha256(Path(str(core)).read_bytes()).hexdigest()[:12]


@functools.cache
def version_of(package: str) -> str:
    return version(package) or "none"
