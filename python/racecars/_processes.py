"""Processes of our own, which may die, or be ended one by one.

A worker gets a list of points through its pipe, and sends each outcome back within a few
milliseconds. So when a worker dies, it is known which evaluation it died of, or at least which few
it may be.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
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
from racecars._pools import Done, Pool, Shipped, sendable

if sys.platform == "linux":
    import fcntl

# Of Linux's headers.
F_SETSIG, PR_SET_PDEATHSIG = 10, 1
# Seconds that outcomes may be held back, to be sent together.
FLUSH = 0.005
# Seconds that a worker may take to end when it is asked to.
GRACE = 0.2


class Processes(Pool):
    """Processes, forked where that is possible: then every function works."""

    def __init__(self, objective: Objective, size: int, timeout: float | None) -> None:
        self.size, self.timeout = size, timeout
        self.can_fork = sys.platform.startswith("linux")
        self.context: Any = multiprocessing.get_context("fork" if self.can_fork else "spawn")
        self.objective: Any = objective if self.can_fork else Shipped(objective)
        self.idle: list[Worker] = []
        self.busy: list[Worker] = []

    def submit(self, number: int, points: list[Any]) -> None:
        worker = self.idle.pop() if self.idle else self.start()
        try:
            worker.give(number, points)
        except (BrokenPipeError, OSError):  # it died idle
            worker.end()
            worker = self.start()
            worker.give(number, points)
        self.busy.append(worker)

    def start(self) -> Worker:
        workers = (*self.idle, *self.busy) if self.can_fork else ()
        others = [end for worker in workers for end in (worker.pipe, worker.life)]
        return Worker(self.context, self.objective, others)

    def wait(self, seconds: float | None) -> Iterable[Done]:
        if self.timeout is not None:
            next_end = min(worker.since for worker in self.busy) + self.timeout + FLUSH
            left = max(0.0, next_end - time.monotonic())
            seconds = left if seconds is None else min(left, seconds)
        handles = [h for worker in self.busy for h in (worker.pipe, worker.process.sentinel)]
        wait(handles, seconds)
        for worker in [*self.busy]:
            done = self.look_at(worker)
            if done is not None:
                self.busy.remove(worker)
                yield done

    def look_at(self, worker: Worker) -> Done | None:
        """The outcomes of a worker's list, ``None`` while it is busy."""
        if not worker.receive():
            return worker.lost("lost", worker.obituary())
        if len(worker.outcomes) == worker.count:
            self.idle.append(worker)
            return worker.number, worker.seconds, list(worker.outcomes)
        late = self.timeout is not None and time.monotonic() - worker.since > self.timeout + FLUSH
        if late:
            text = f"took longer than the timeout of {self.timeout:g} s"
            return worker.lost("timeout", text)
        return None

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

    def __init__(self, context: Any, objective: Any, others: list[Connection]) -> None:
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
        self.number = self.count = 0
        self.outcomes: list[Outcome] = []
        self.seconds = self.since = 0.0

    def give(self, number: int, points: list[Any]) -> None:
        self.number, self.count, self.outcomes, self.seconds = number, len(points), [], 0.0
        self.since = time.monotonic()
        self.pipe.send(points)

    def receive(self) -> bool:
        """Takes the outcomes sent so far; returns whether there may be more."""
        try:
            while len(self.outcomes) < self.count and self.pipe.poll():
                seconds, outcomes = self.pipe.recv()
                self.outcomes += outcomes
                self.seconds += seconds
                self.since = time.monotonic()
        except (EOFError, OSError):
            return False
        return len(self.outcomes) == self.count or self.process.exitcode is None

    def lost(self, kind: str, text: str) -> Done:
        """Ends a worker amid its list. If only one evaluation was left, it has failed; of several,
        it is not known which, and all are evaluated again."""
        self.end()
        left = self.count - len(self.outcomes)
        rest = [Outcome(failure=kind, text=text)] if left == 1 else [None] * left
        return self.number, None, [*self.outcomes, *rest]

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
    """Runs in a worker process: evaluates lists of points until it is asked to end, or its parent
    has died. It closes the pipe ends that it inherited, since it would not notice the latter while
    it held the other ends of its own pipes."""
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
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while (points := pipe.recv()) is not None:
            evaluate(pipe, objective, points)


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


def evaluate(pipe: Connection, objective: Any, points: list[Any]) -> None:
    """Evaluates points and sends the outcomes."""
    outcomes: list[Outcome] = []
    last = start = time.perf_counter()
    for point in points:
        try:
            outcome = objective.outcome(point)
        except BaseException as error:  # SystemExit in fun must not end the worker
            outcome = Outcome(failure="error", text=described(error))
        outcomes.append(sendable(outcome))
        now = time.perf_counter()
        if now - last > FLUSH:
            pipe.send_bytes(pickle.dumps((now - start, outcomes)))
            outcomes, last, start = [], now, now
    if outcomes:
        pipe.send_bytes(pickle.dumps((time.perf_counter() - start, outcomes)))
