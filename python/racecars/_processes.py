"""Processes of our own, which may die, or be ended one by one.

A worker gets one point at a time through its pipe, so when it dies, it is known which evaluation it
died of. (A stretch of the search has several, and is not repeated: see `workers`.)
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from racecars._objective import Objective, Outcome, described
from racecars._pools import Done, Pool, Shipped, Work, done

if sys.platform == "linux":
    import fcntl

# Of Linux's headers.
F_SETSIG, PR_SET_PDEATHSIG = 10, 1
# Seconds that a worker may take to end when it is asked to.
GRACE = 0.2


class Processes(Pool):
    """Processes, forked where that is possible: then every function works."""

    def __init__(self, objective: Objective, size: int, timeout: float | None) -> None:
        self.size, self.timeout = size, timeout
        self.takes_stretches = timeout is None  # which is for each evaluation
        self.can_fork = sys.platform.startswith("linux")
        self.context: Any = multiprocessing.get_context("fork" if self.can_fork else "spawn")
        self.objective: Any = objective if self.can_fork else Shipped(objective)
        self.idle: list[Worker] = []
        self.busy: list[Worker] = []
        self.done_by: dict[int, int] = {}
        """The places of the workers whose outcomes have come in, by the number of the task."""

    def submit(self, number: int, work: Work) -> None:
        worker = self.idle.pop() if self.idle else self.start()
        try:
            worker.give(number, work)
        except (BrokenPipeError, OSError):  # it died idle
            worker.end()
            worker = self.start()
            worker.give(number, work)
        except BaseException:  # the point cannot be sent
            worker.end()
            raise
        self.busy.append(worker)

    def start(self) -> Worker:
        workers = (*self.idle, *self.busy) if self.can_fork else ()
        others = [end for worker in workers for end in (worker.pipe, worker.life)]
        taken = {worker.place for worker in (*self.idle, *self.busy)}
        place = next(place for place in range(len(taken) + 1) if place not in taken)
        return Worker(self.context, self.objective, others, place)

    def worker_of(self, number: int) -> int:
        return self.done_by.pop(number, -1)

    def wait(self, seconds: float | None) -> Iterable[Done]:
        if self.timeout is not None:
            next_end = min(worker.since for worker in self.busy) + self.timeout
            left = max(0.0, next_end - time.monotonic())
            seconds = left if seconds is None else min(left, seconds)
        handles = [h for worker in self.busy for h in (worker.pipe, worker.process.sentinel)]
        wait(handles, seconds)
        for worker in [*self.busy]:
            done = self.look_at(worker)
            if done is not None:
                self.busy.remove(worker)
                self.done_by[worker.number] = worker.place
                yield done

    def look_at(self, worker: Worker) -> Done | None:
        """The outcomes of a worker's task, ``None`` while it is busy."""
        if not worker.receive():
            return worker.lost("lost", worker.obituary())
        if worker.done is not None:
            self.idle.append(worker)
            return worker.number, *worker.done
        if self.timeout is not None and time.monotonic() - worker.since > self.timeout:
            text = f"took longer than the timeout of {self.timeout:g} s"
            return worker.lost("timeout", text)
        return None

    def drop(self, number: int) -> None:
        worker = next(worker for worker in self.busy if worker.number == number)
        self.busy.remove(worker)
        worker.end()

    def close(self) -> None:
        for worker in self.idle:
            worker.dismiss()
        for worker in self.busy:
            worker.end()
        for worker in self.idle:
            worker.process.join(GRACE)
            worker.end()
        self.idle, self.busy = [], []


class Worker:
    """One process, seen from outside."""

    def __init__(self, context: Any, objective: Any, others: list[Connection], place: int) -> None:
        self.place = place
        """Its number among the workers of this pool, from 0."""
        self.pipe, theirs = context.Pipe()
        # Nothing is sent through it: that this end is closed means that this process has ended.
        watched, self.life = context.Pipe(duplex=False)
        ours = [self.pipe, self.life]
        inherited = [*others, *ours] if context.get_start_method() == "fork" else []
        arguments = (theirs, watched, os.getpid(), objective, inherited)
        self.process = context.Process(target=serve, args=arguments)
        with warnings.catch_warnings():
            # ProcessPoolExecutor forks with threads running, too.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()
        watched.close()
        if not inherited:  # its start-up time must not count as an evaluation's
            self.pipe.recv()
        self.number = 0
        self.done: tuple[float, list[Outcome]] | None = None
        self.since = 0.0

    def give(self, number: int, work: Work) -> None:
        self.number, self.done = number, None
        self.since = time.monotonic()
        self.pipe.send(work)

    def receive(self) -> bool:
        """Takes the outcomes, if they have been sent; returns whether they are here or may come."""
        try:
            if self.pipe.poll():
                self.done = self.pipe.recv()
        except (EOFError, OSError):
            return False
        return self.done is not None or self.process.exitcode is None

    def lost(self, kind: str, text: str) -> Done:
        """Ends a worker amid its task, which has failed."""
        self.end()
        return self.number, None, [Outcome(failure=kind, text=text)]

    def obituary(self) -> str:
        """How the process ended."""
        self.process.join(GRACE)
        code = self.process.exitcode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"the worker process was killed by {signal.Signals(-code).name}"
        return f"the worker process ended with exit code {code}"

    def dismiss(self) -> None:
        """Asks the process to end."""
        with contextlib.suppress(OSError):
            self.pipe.send(None)

    def end(self) -> None:
        """Kills the process, with all processes that it started."""
        if self.process.exitcode is None:
            with contextlib.suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
        self.process.join()
        self.pipe.close()
        self.life.close()


def serve(
    pipe: Connection, watched: Connection, parent: int, objective: Any, inherited: list[Connection]
) -> None:
    """Runs in a worker process: evaluates until it is asked to end, or its parent has died. It
    closes the pipe ends that it inherited, since it would not notice the latter while it held the
    other ends of its own pipes."""
    for other in inherited:
        other.close()
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # so that it can be killed with the processes that it started
    end_with_parent(watched, parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    random.seed()
    np.random.seed()
    if isinstance(objective, Shipped):
        objective = objective.unpacked()
        pipe.send(None)

    def call(point: Any) -> Outcome:
        try:
            return objective.outcome(point)  # type: ignore[no-any-return]
        except BaseException as error:  # SystemExit in fun must not end the worker
            return Outcome(failure="error", text=described(error))

    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while (work := pipe.recv()) is not None:
            pipe.send(done(call, work))


def end_with_parent(watched: Connection, parent: int) -> None:
    """Has this process killed, with the processes that it started, when its parent dies."""
    if sys.platform == "linux":
        # By the kernel, since an evaluation may never let another thread run. Closing the other end
        # of the pipe is an event, whose signal goes to the process group.
        fcntl.fcntl(watched, F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(watched, fcntl.F_SETOWN, -os.getpid())
        fcntl.fcntl(watched, fcntl.F_SETFL, os.O_ASYNC)
        # Another process may hold that end: one that the parent forked. This one ends in any case.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has died before
            os._exit(1)
    else:
        threading.Thread(target=watch, args=(watched,), daemon=True).start()


def watch(watched: Connection) -> None:
    """Waits for the end of the parent."""
    wait([watched])
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
