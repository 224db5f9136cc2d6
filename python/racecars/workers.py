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
- a function like ``map``, which is called with a function and a list of points

Where sending a point takes longer than evaluating it, several points are sent together.
"""

from __future__ import annotations

import math
import os
from collections import deque
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from racecars import _pools
from racecars._objective import Objective, Outcome
from racecars._pools import Pool, PoolBroken
from racecars._processes import Processes
from racecars._run import Run

__all__ = ["asynchronous", "pool_of"]

# The most points that are sent together.
MAX_CHUNK = 32
# At most about this share of the budget is out at a time: the search learns nothing from it.
MAX_SHARE_OUT = 1 / 50
# Sending points takes at most about this share of a cheap function's time.
SENDING_SHARE = 0.5
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
    run: Run, pool: Pool, maxfev: int | None = None, lookahead: int | None = None
) -> None:
    """Evaluates a run's trials on a pool."""
    dispatcher = _Dispatcher(run, pool, _max_chunk(pool, maxfev, lookahead))
    # A deterministic run waits: which evaluations are under way depends on the workers.
    at_once = AT_ONCE if lookahead is None else ()
    try:
        while dispatcher.submit() and run.session.reason not in at_once:
            run.tick_if_due()
            dispatcher.collect()
    except PoolBroken as error:
        for number in run.session.out:
            run.settle(number, Outcome(failure="lost", text=str(error)))
        run.session.stop("workers-lost")
        run.next()


def _max_chunk(pool: Pool, maxfev: int | None, lookahead: int | None) -> int:
    most = MAX_CHUNK if pool.takes_many else 1
    if maxfev is not None:
        most = min(most, int(maxfev * MAX_SHARE_OUT / pool.size))
    if lookahead is not None:
        most = min(most, lookahead // pool.size)
    return max(1, most)


class _Dispatcher:
    """Sends trials to the workers and takes the outcomes back."""

    def __init__(self, run: Run, pool: Pool, max_chunk: int) -> None:
        self.run, self.pool, self.max_chunk = run, pool, max_chunk
        self.alone: deque[Trial] = deque()
        """Trials to be sent again, one at a time."""
        self.tasks: dict[int, list[Trial]] = {}
        """The trials that workers have, by the number of the task."""
        self.tries: dict[int, int] = {}
        self.seconds = math.nan
        """The mean time of an evaluation, lately."""
        self.submitted = 0

    def submit(self) -> bool:
        """Sends trials until all workers are busy; returns whether any is."""
        while self.pool.size > len(self.tasks):
            chunk = self.chunk()
            if not chunk:
                break
            self.submitted += 1
            self.tasks[self.submitted] = chunk
            self.pool.submit(self.submitted, [point for _, point in chunk])
        return bool(self.tasks)

    def chunk(self) -> list[Trial]:
        """The trials to be sent next: as many as suit the time that they take."""
        if self.alone:
            return [self.alone.popleft()]
        size = 1
        if not math.isnan(self.seconds):
            size = math.ceil(self.pool.latency / SENDING_SHARE / max(self.seconds, 1e-7))
        chunk: list[Trial] = []
        while len(chunk) < min(size, self.max_chunk) and (trial := self.run.next()) is not None:
            chunk.append(trial)
        return chunk

    def collect(self) -> None:
        """Waits for the first task to finish, and takes its outcomes."""
        for number, seconds, outcomes in self.pool.wait(self.run.seconds(idle=True)):
            chunk = self.tasks.pop(number)
            if seconds is not None:
                each = seconds / len(chunk)
                old = each if math.isnan(self.seconds) else self.seconds
                self.seconds = 0.7 * old + 0.3 * each
            for trial, outcome in zip(chunk, outcomes):
                self.take(trial, outcome)

    def take(self, trial: Trial, outcome: Outcome | None) -> None:
        """Tells an outcome, unless the trial is to be tried again."""
        if outcome is None:  # lost with its worker, for which another trial may be to blame
            self.alone.append(trial)
            return
        tries = self.tries.pop(trial[0], 0)
        if outcome.is_retryable and tries < self.run.retries:
            self.tries[trial[0]] = tries + 1
            self.alone.append(trial)
        else:
            self.run.settle(trial[0], outcome)


def _kind(workers: Any) -> str:
    return repr(workers) if isinstance(workers, (str, int)) else type(workers).__name__
