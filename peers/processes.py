"""Work in processes side by side, and how far it is."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

# How often progress is said where it cannot be overwritten.
PERIOD = 10.0


def run_all(
    work: Callable[[Job], Result], jobs: list[Job], processes: int
) -> Iterator[tuple[Job, Result | Exception]]:
    """Does jobs, so many at a time, in fresh processes, which take our environment.

    Each comes with its result, or with what was raised, also where its process is gone.
    """
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        futures: dict[Future[Result], Job] = {pool.submit(work, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                try:
                    yield futures[future], future.result()
                except Exception as error:
                    yield futures[future], error
        except BaseException:  # an interrupt: nothing else is begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def said(error: BaseException) -> str:
    """An error in a line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


class Progress:
    """Says on standard error how far work is, and how long the rest takes at that pace."""

    def __init__(self, title: str, total: float) -> None:
        self.title, self.total, self.done = title, total, 0.0
        self.start = self.said = time.monotonic()

    def step(self, what: str, size: float = 1) -> None:
        """Another piece of the work is done."""
        self.done += size
        now = time.monotonic()
        is_last = self.done >= self.total
        if sys.stderr.isatty():
            end = "\n" if is_last else ""
            print(f"\r\x1b[K{self.line(what, now)}", end=end, file=sys.stderr, flush=True)
        elif now - self.said > PERIOD or is_last:
            self.said = now
            print(self.line(what, now), file=sys.stderr, flush=True)

    def line(self, what: str, now: float) -> str:
        passed = now - self.start
        left = passed * (self.total / self.done - 1)
        share = f"{100 * self.done / self.total:.0f} %"
        return f"{self.title}: {share}, {what} ({passed:.0f} s, {left:.0f} s left)"
