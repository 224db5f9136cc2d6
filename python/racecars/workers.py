"""Evaluating on many workers: one loop for whatever the workers are.

The loop submits, waits for the first to finish, tells, and refills. ``workers`` may be:

- an integer: so many processes, -1 for one per core. Any function works, lambdas too. A process
  that dies or takes too long (``timeout``) is a failed evaluation, and another takes its place.
- ``"threads"``: one per core, for functions that release the interpreter
- a ``concurrent.futures.Executor`` of any kind; ``mpi4py.futures.MPIPoolExecutor`` is one
- a Dask ``Client``: every evaluation is a task of its own, never taken from Dask's cache
- ``"ray"``: tasks on the Ray cluster that ``ray.init`` connected to, or on a local one
- a Ray remote function, which is called instead of ``fun``, with resources of its own
- a function like ``map``, which is called with a function and a list of points

Functions that take less time than sending them a point are sent several at a time.
"""

from __future__ import annotations

import math
import os
from collections import deque
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from racecars import _pools
from racecars._core import Candidate
from racecars._objective import Objective, Outcome
from racecars._pools import Pool, PoolBroken
from racecars._processes import Processes
from racecars._run import Run

__all__ = ["asynchronous", "pool_of"]

# The most points that are sent together.
MOST_AT_ONCE = 32
# At most about one evaluation in so many is out: the search learns nothing from what is.
OUT = 50
# Sending points takes at most about this share of a cheap function's time.
SHARE = 0.5
# These ends do not wait for what is under way.
AT_ONCE = ("target", "callback", "interrupted", "workers")


def pool_of(workers: Any, objective: Objective, timeout: float | None) -> Pool:
    """The pool that ``workers`` stands for."""
    if isinstance(workers, int) and not isinstance(workers, bool):
        size = (os.cpu_count() or 1) if workers == -1 else workers
        if size < 1:
            raise ValueError(f"workers is {workers}; it must be at least 1, or -1 for all cores")
        return Processes(objective, size, timeout)
    if timeout is not None:
        text = "timeout needs workers that can be ended, which are processes: workers=4, say"
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


def asynchronous(run: Run, pool: Pool, lookahead: int | None) -> None:
    """Runs on a pool: as outcomes come, or, with a lookahead, in the order asked."""
    desk = _Desk(run, pool, lookahead)
    try:
        while desk.refill() or run.out:
            if run.reason in AT_ONCE:
                return
            desk.collect()
    except PoolBroken as error:
        desk.give_up(str(error))


class _Desk:
    """What is to be sent, what is out, and what has come back."""

    def __init__(self, run: Run, pool: Pool, lookahead: int | None) -> None:
        self.run, self.pool, self.lookahead = run, pool, lookahead
        self.alone: deque[Candidate] = deque()
        """To be sent (again) one at a time."""
        self.ready: deque[Candidate] = deque()
        """Asked, but not sent yet."""
        self.order: deque[Candidate] = deque()
        """All that are out, in the order asked; used with a lookahead."""
        self.done: dict[int, Outcome] = {}
        """What has come back but is not told yet; used with a lookahead."""
        self.tasks: dict[int, list[Candidate]] = {}
        self.tries: dict[int, int] = {}
        self.seconds = math.nan
        """What an evaluation takes, lately."""
        self.number = 0

    def refill(self) -> bool:
        """Sends until the workers are busy; whether any is."""
        if self.lookahead is not None and not self.order:
            for _ in range(self.lookahead):
                self.ask_in_order()
        while self.pool.size > len(self.tasks):
            batch = self.batch()
            if not batch:
                break
            as_dict = self.run.as_dict
            points = [candidate.params if as_dict else candidate.x for candidate in batch]
            self.number += 1
            self.tasks[self.number] = batch
            self.pool.submit(self.number, points)
        return bool(self.tasks)

    def batch(self) -> list[Candidate]:
        """What is sent next, as many as suit the time they take."""
        if self.alone:
            return [self.alone.popleft()]
        batch: list[Candidate] = []
        while len(batch) < self.at_once():
            if self.lookahead is None:
                candidate = self.run.next()
            else:
                candidate = self.ready.popleft() if self.ready else None
            if candidate is None:
                break
            batch.append(candidate)
        return batch

    def at_once(self) -> int:
        if not self.pool.takes_many or math.isnan(self.seconds):
            return 1
        wanted = self.pool.latency / SHARE / max(self.seconds, 1e-7)
        most = MOST_AT_ONCE
        if math.isfinite(self.run.limit):
            most = min(most, int(self.run.limit) // (OUT * self.pool.size))
        if self.lookahead is not None:
            most = min(most, self.lookahead // self.pool.size)
        return max(1, min(most, math.ceil(wanted)))

    def ask_in_order(self) -> None:
        candidate = self.run.next()
        if candidate is not None:
            self.order.append(candidate)
            self.ready.append(candidate)

    def collect(self) -> None:
        """Waits for the first that finish, and tells."""
        for number, seconds, outcomes in self.pool.wait(self.run.seconds()):
            batch = self.tasks.pop(number)
            if seconds is not None:
                each = seconds / len(batch)
                old = each if math.isnan(self.seconds) else self.seconds
                self.seconds = 0.7 * old + 0.3 * each
            for candidate, outcome in zip(batch, outcomes):
                self.came_back(candidate, outcome)
                if self.run.reason in AT_ONCE:
                    return
        self.run.tick_if_due()

    def came_back(self, candidate: Candidate, outcome: Outcome | None) -> None:
        if outcome is None:  # lost with another, through no fault of its own
            self.alone.append(candidate)
            return
        tries = self.tries.pop(id(candidate), 0)
        if outcome.is_failure and outcome.is_worth_another and tries < self.run.retries:
            self.tries[id(candidate)] = tries + 1
            self.alone.append(candidate)
        elif self.lookahead is None:
            self.run.settle(candidate, outcome)
        else:
            self.done[id(candidate)] = outcome
            while self.order and id(self.order[0]) in self.done and self.run.reason not in AT_ONCE:
                first = self.order.popleft()
                self.run.settle(first, self.done.pop(id(first)))
                self.ask_in_order()

    def give_up(self, why: str) -> None:
        """The workers are gone: what was out has failed."""
        for candidate in [*self.run.out.values()]:
            if id(candidate) not in self.done and candidate not in self.ready:
                self.run.settle(candidate, Outcome("died", text=why))
        self.run.reason = "workers"


def _kind(workers: Any) -> str:
    return repr(workers) if isinstance(workers, (str, int)) else type(workers).__name__
