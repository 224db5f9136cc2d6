"""Jobs in parallel processes, and a progress display."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

# Seconds between two lines of progress if standard error is not a terminal.
PERIOD = 10.0


def run_all(
    work: Callable[[Job], Result], jobs: list[Job], processes: int
) -> Iterator[tuple[Job, Result | Exception]]:
    """Runs jobs in parallel in new processes with this process's environment.

    Yields each job with its result or its exception, also if its process died.
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
        except BaseException:  # an interrupt: start no more jobs
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def describe(error: BaseException) -> str:
    """An error as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


class Progress:
    """Shows progress and the estimated remaining time on standard error."""

    def __init__(self, title: str, total: float) -> None:
        self.title, self.total, self.done = title, total, 0.0
        self.start = self.shown = time.monotonic()

    def step(self, what: str, size: float = 1) -> None:
        """Reports that a piece of the work is done."""
        self.done += size
        now = time.monotonic()
        is_last = self.done >= self.total
        if sys.stderr.isatty():
            end = "\n" if is_last else ""
            print(f"\r\x1b[K{self.line(what, now)}", end=end, file=sys.stderr, flush=True)
        elif now - self.shown > PERIOD or is_last:
            self.shown = now
            print(self.line(what, now), file=sys.stderr, flush=True)

    def line(self, what: str, now: float) -> str:
        passed = now - self.start
        left = passed * (self.total / self.done - 1)
        share = f"{100 * self.done / self.total:.0f} %"
        return f"{self.title}: {share}, {what} ({passed:.0f} s, {left:.0f} s left)"
