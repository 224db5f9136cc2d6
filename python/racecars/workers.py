"""Evaluation on many workers, with one loop for all kinds of them.

The loop submits trials, waits for the first to finish, tells its outcome, and submits the next.
``workers`` may be:

- an integer: the number of processes, -1 for one per core. Any function works, lambdas too. If a
  process dies or takes too long (``timeout``), the evaluation has failed, and the process is
  replaced.
- ``"threads"``: one per core, for functions that release the interpreter
- a ``concurrent.futures.Executor`` of any kind; ``mpi4py.futures.MPIPoolExecutor`` is one
- a Dask ``Client``: results are never taken from Dask's cache
- ``"ray"``: tasks on the Ray cluster that ``ray.init`` connected to, or on a local one
- a Ray remote function, which is called instead of ``fun``, with resources of its own
- a function like ``map``, which is called with a function and a list of points, as many as the
  pool has workers that it is a method of, or else as there are cores

A point that is proposed while others are out knows less, so no more are out than can be evaluated
at a time: at most one per worker, and, where evaluations are short, no more than the loop can keep
busy. Where an evaluation takes less time than sending it does, one worker evaluates: several would
be no faster, and find less. It then searches on its own for short stretches (`_stretch`), unless
there is a ``timeout``, and ``res.message`` says so.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, NamedTuple

from racecars import _pools
from racecars._objective import Objective, Outcome
from racecars._pools import Pool, PoolBroken
from racecars._processes import Processes
from racecars._run import Run
from racecars._stretch import Stretch

__all__ = ["asynchronous", "pool_of"]

# The evaluations that are timed before a worker may search on its own.
TIMED = 8
# Seconds that workers may need to start: no other is started before.
STARTING = 0.02
# The weight of the latest evaluation in the mean time of one.
WEIGHT = 0.3
# Seconds after which a stretch is given up: an evaluation takes long, and other workers wait.
MAX_STRETCH = 1.0
# The least seconds that sending a point may take, so that ratios to it are sound.
LEAST_SENDING = 1e-5
# A run that stops for one of these reasons does not wait for evaluations under way.
AT_ONCE = ("target", "observer", "no-improvement", "interrupted", "workers-lost")

Trial = tuple[int, Any]
"""A trial's number and its point."""


def pool_of(workers: Any, objective: Objective, timeout: float | None) -> Pool:
    """The pool that ``workers`` stands for."""
    if isinstance(workers, int) and not isinstance(workers, bool):
        size = (os.cpu_count() or 1) if workers == -1 else workers
        if size < 1:
            raise ValueError(f"workers is {workers}; it must be at least 1, or -1 for all cores")
        return Processes(objective, size, timeout)
    if timeout is not None:
        text = "timeout needs workers that can be ended, which are processes, such as workers=4"
        raise ValueError(f"{text}; got {_kind(workers)}")
    if workers == "threads":
        return _pools.Futures(ThreadPoolExecutor(os.cpu_count()), objective, owned=True)
    if workers == "ray":
        return _pools.Ray(objective)
    if isinstance(workers, Executor):
        return _pools.Futures(workers, objective)
    if hasattr(workers, "scatter") and hasattr(workers, "submit"):
        return _pools.Dask(workers, objective)
    if hasattr(workers, "remote"):
        return _pools.RayFunction(workers, objective)
    if callable(workers):
        return _pools.Map(workers, objective)
    raise ValueError(
        f"workers is {_kind(workers)}, not an integer, 'threads', 'ray', an Executor, a Dask "
        "Client, a Ray remote function, or a function like map"
    )


def asynchronous(
    run: Run,
    pool: Pool,
    *,
    maxfev: int | None = None,
    target: float | None = None,
    in_order: bool = False,
) -> None:
    """Evaluates a run's trials on a pool. In order, the session itself limits what is out."""
    dispatcher = _Dispatcher(run, pool, maxfev, target, in_order)
    # A deterministic run waits: which evaluations are under way depends on the workers.
    at_once = () if in_order else AT_ONCE
    try:
        while dispatcher.submit() and run.session.reason not in at_once:
            run.tick_if_due()
            dispatcher.collect()
    except PoolBroken as error:
        for number in run.session.out:
            run.settle(number, Outcome(failure="lost", text=str(error)))
        run.session.stop("workers-lost")
        run.next()
    run.note = dispatcher.note()


class _Task(NamedTuple):
    trial: Trial
    """Of a stretch, its first."""
    is_stretch: bool
    start: float


class _Dispatcher:
    """Sends trials to the workers and takes the outcomes back."""

    def __init__(
        self, run: Run, pool: Pool, maxfev: int | None, target: float | None, in_order: bool
    ) -> None:
        self.run, self.pool, self.maxfev, self.target = run, pool, maxfev, target
        self.by_time = pool.is_timed and not in_order
        """Whether the number of trials out depends on how long evaluations take."""
        # The functions of `where` are called in this process.
        has_functions = bool(run.session.space.functions)
        self.may_stretch = self.by_time and pool.takes_stretches and not has_functions
        self.again: deque[Trial] = deque()
        """Trials to be sent again."""
        self.tries: dict[int, int] = {}
        self.tasks: dict[int, _Task] = {}
        """What the workers have, by the number of the task."""
        self.submitted = 0
        self.seconds = math.nan
        """The mean time of an evaluation, lately."""
        self.sending = pool.latency
        """The mean time that it took lately to send a point and receive its outcome, besides the
        evaluation; at most what the pool says."""
        self.timed = 0
        self.by_one = 0
        """Evaluations by one worker since several would not have been faster."""

    def submit(self) -> bool:
        """Sends trials while they can be evaluated at once; returns whether any is out."""
        while len(self.tasks) < self.slots():
            is_again = bool(self.again)
            trial = self.again.popleft() if is_again else self.run.next()
            if trial is None:
                break
            is_stretch = self.may_stretch and self.is_short() and not (is_again or self.tasks)
            work = Stretch.of(self.run, self.maxfev, self.target) if is_stretch else trial[1]
            self.submitted += 1
            self.pool.submit(self.submitted, work)
            self.tasks[self.submitted] = _Task(trial, is_stretch, time.monotonic())
        return bool(self.tasks)

    def slots(self) -> int:
        """The number of tasks that there may be: as many as are evaluated while one is sent, and
        the one that is sent. Before anything is known it is one, and grows while that is out."""
        if not self.by_time:
            return self.pool.size
        expected = self.expected()
        if expected < self.sending or any(task.is_stretch for task in self.tasks.values()):
            return 1
        return min(self.pool.size, math.ceil(expected / self.sending) + 1)

    def expected(self) -> float:
        """The expected time of an evaluation, given how long the oldest has been under way."""
        age = self.age()
        if math.isnan(self.seconds):
            return max(0.0, age - STARTING)
        return max(self.seconds, (1.0 - WEIGHT) * self.seconds + WEIGHT * age)

    def age(self) -> float:
        """The time since the oldest task was sent."""
        if not self.tasks:
            return 0.0
        return time.monotonic() - min(task.start for task in self.tasks.values())

    def is_short(self) -> bool:
        """Whether evaluations are known to take less time than sending them does."""
        return self.timed >= TIMED and self.seconds < self.sending

    def collect(self) -> None:
        """Waits for the first task to finish, and takes its outcomes."""
        for number, seconds, outcomes in self.pool.wait(self.patience()):
            worker = self.pool.worker_of(number)
            task = self.tasks.pop(number)
            if seconds is not None and outcomes:
                took = time.monotonic() - task.start - seconds
                self.learn_time(seconds / len(outcomes), None if task.is_stretch else took)
            each = None if seconds is None else seconds / max(1, len(outcomes))
            if task.is_stretch and (seconds is None or not outcomes):
                # It died, of which evaluation is not known: they are made again one by one.
                self.may_stretch = False
                self.again.append(task.trial)
            elif task.is_stretch:
                self.replay(task.trial, outcomes, each, worker)
            else:
                self.take(task.trial, outcomes[0], each, worker)
        for number, task in [*self.tasks.items()]:
            if task.is_stretch and time.monotonic() - task.start > MAX_STRETCH:
                self.pool.drop(number)
                self.may_stretch = False
                self.again.append(self.tasks.pop(number).trial)

    def patience(self) -> float | None:
        """The seconds to wait for an outcome: then something else may be due."""
        limits = [self.run.seconds(idle=True)]
        if self.by_time and any(task.is_stretch for task in self.tasks.values()):
            limits.append(max(0.0, MAX_STRETCH - self.age()))
        elif self.by_time and len(self.tasks) < self.pool.size:
            limits.append(max(self.sending, self.age()))  # doubles, until all workers are busy
        return min((limit for limit in limits if limit is not None), default=None)

    def learn_time(self, seconds: float, sending: float | None) -> None:
        """Takes the time of an evaluation, and, of a single one, that of sending it."""
        old = seconds if math.isnan(self.seconds) else self.seconds
        self.seconds = (1.0 - WEIGHT) * old + WEIGHT * seconds
        if sending is not None:
            self.timed += 1
            # Both are means: of a busy machine's times the least would be too small a measure.
            mean = (1.0 - WEIGHT) * self.sending + WEIGHT * sending
            self.sending = max(LEAST_SENDING, min(self.pool.latency, mean))

    def replay(
        self, first: Trial, outcomes: list[Outcome], seconds: float | None, worker: int
    ) -> None:
        """Tells the outcomes of a stretch, whose points are those that are asked for here."""
        for place, outcome in enumerate(outcomes):
            trial = first if place == 0 else self.run.next()
            if trial is None:  # stopped by a rule that the worker did not have
                break
            self.run.settle(trial[0], outcome, seconds, worker)
            self.by_one += 1

    def take(self, trial: Trial, outcome: Outcome, seconds: float | None, worker: int) -> None:
        """Tells an outcome, unless the trial is to be tried again."""
        tries = self.tries.pop(trial[0], 0)
        if outcome.is_retryable and tries < self.run.retries:
            self.tries[trial[0]] = tries + 1
            self.again.append(trial)
            return
        self.by_one += self.is_short() and not self.tasks
        self.run.settle(trial[0], outcome, seconds, worker)

    def note(self) -> str:
        """What a user should know of how many workers were busy."""
        if self.pool.size == 1 or 2 * self.by_one <= self.run.session.told:
            return ""
        one, sent = _span(self.seconds), _span(self.sending)
        text = f"An evaluation took {one}, and sending one to a worker {sent}"
        return f"{text}, so one worker evaluated: {self.pool.size} would not have been faster."


def _span(seconds: float) -> str:
    """A time for people."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds * 1e9:.2g} ns"


def _kind(workers: Any) -> str:
    return repr(workers) if isinstance(workers, (str, int)) else type(workers).__name__
