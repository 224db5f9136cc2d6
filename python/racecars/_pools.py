"""Workers of other packages behind one interface. Packages are imported only where used."""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import pickle
import time
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from typing import Any, ClassVar, Optional

from racecars._objective import Objective, Outcome, Unevaluated, described, failed, outcome_of
from racecars._stretch import Stretch

Work = Any
"""What a worker gets at a time: a point, or a :class:`Stretch`."""
Done = tuple[int, Optional[float], list[Outcome]]
"""A task's number, the seconds that its evaluations took, if they are known, and the outcomes: one
for a point, any number for a stretch. A task that was lost has no seconds."""


class PoolBroken(Exception):
    """No worker is left, and none can be started."""


class Pool:
    """Workers that evaluate points."""

    size: int
    """The number of points evaluated at a time."""
    is_timed = True
    """Whether it is known how long evaluations take."""
    takes_stretches = True
    """Whether a worker may search on its own."""
    latency = 0.001
    """The most seconds, about, that it takes to send a point and receive its outcome."""

    def submit(self, number: int, work: Work) -> None:
        raise NotImplementedError

    def wait(self, seconds: float | None) -> Iterable[Done]:
        """The tasks that are done; waits for the first, at most this many seconds."""
        raise NotImplementedError

    def drop(self, number: int) -> None:
        """Ends a task, or, where that is not possible, forgets it."""
        raise NotImplementedError

    def worker_of(self, number: int) -> int:
        """The number from 0 of the worker that has just done a task, -1 if that is not known."""
        return -1

    def close(self) -> None:
        """Drops the evaluations under way, without waiting."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def evaluate(objective: Any, work: Work) -> tuple[float, list[Outcome]]:
    """Evaluates in a worker; returns the seconds taken and the outcomes."""
    if isinstance(objective, Shipped):
        objective = objective.unpacked()
    return done(objective.outcome, work)


def done(call: Callable[[Any], Outcome], work: Work) -> tuple[float, list[Outcome]]:
    """Does a task, given how a point is evaluated; returns the seconds taken and the outcomes."""
    if isinstance(work, Stretch):
        seconds, outcomes = work.outcomes(call)
        return seconds, [sendable(outcome) for outcome in outcomes]
    start = time.perf_counter()
    outcome = call(work)
    return time.perf_counter() - start, [sendable(outcome)]


def sendable(outcome: Outcome) -> Outcome:
    """The outcome, without its exception if that cannot be pickled."""
    if outcome.error is not None:
        try:
            pickle.loads(pickle.dumps(outcome.error))
        except Exception:
            return outcome._replace(error=None)
    return outcome


class Shipped:
    """An objective pickled once, with cloudpickle if it is installed, which takes lambdas."""

    cache: ClassVar[dict[str, Objective]] = {}

    def __init__(self, objective: Objective) -> None:
        try:
            import cloudpickle as packer
        except ImportError:
            packer = pickle
        try:
            self.packed: bytes = packer.dumps(objective)
        except Exception as error:
            text = f"fun cannot be sent to other processes: {described(error)}"
            if packer is pickle:
                text += "; `pip install cloudpickle` lets lambdas and local functions be sent"
            raise TypeError(text) from None
        self.digest = hashlib.sha256(self.packed).hexdigest()

    def unpacked(self) -> Objective:
        """The objective, which each worker unpickles once."""
        if self.digest not in Shipped.cache:
            Shipped.cache.clear()
            Shipped.cache[self.digest] = pickle.loads(self.packed)
        return Shipped.cache[self.digest]


def lost(error: BaseException) -> list[Outcome]:
    """The outcome of a task whose worker was lost."""
    return [Outcome(failure="lost", text=f"the worker was lost: {described(error)}")]


def taken_out(tasks: dict[Any, int], number: int) -> Any:
    """Removes a task by its number, and returns its key."""
    key = next(key for key, other in tasks.items() if other == number)
    del tasks[key]
    return key


class Futures(Pool):
    """Any executor of ``concurrent.futures``."""

    def __init__(self, executor: Executor, objective: Objective, owned: bool = False) -> None:
        self.executor, self.owned = executor, owned
        is_here = isinstance(executor, ThreadPoolExecutor)
        self.objective: Any = objective if is_here else Shipped(objective)
        count = getattr(executor, "num_workers", None) or getattr(executor, "_max_workers", None)
        self.size = int(count or 1)
        self.latency = 0.0001 if is_here else 0.001
        self.tasks: dict[concurrent.futures.Future[Any], int] = {}

    def submit(self, number: int, work: Work) -> None:
        try:
            future = self.executor.submit(evaluate, self.objective, work)
        except (BrokenExecutor, RuntimeError) as error:
            raise PoolBroken(f"the executor takes no more work: {described(error)}") from error
        self.tasks[future] = number

    def wait(self, seconds: float | None) -> Iterable[Done]:
        first = concurrent.futures.FIRST_COMPLETED
        for future in concurrent.futures.wait(self.tasks, seconds, first).done:
            number = self.tasks.pop(future)
            error = future.exception()
            if error is None:
                took, outcomes = future.result()
                yield number, took, list(outcomes)
            else:
                yield number, None, lost(error)

    def drop(self, number: int) -> None:
        taken_out(self.tasks, number).cancel()

    def close(self) -> None:
        for future in self.tasks:
            future.cancel()
        if self.owned:
            self.executor.shutdown(wait=False)


class Dask(Pool):
    """A Dask client. A point may be evaluated twice, so Dask's cache is not used."""

    latency = 0.01

    def __init__(self, client: Any, objective: Objective) -> None:
        self.client = client
        self.size = max(1, sum(client.nthreads().values()))
        # The result of a task, not scattered: Dask computes it again when its worker is lost.
        self.objective = client.submit(Shipped.unpacked, Shipped(objective), pure=False)
        self.tasks: dict[Any, int] = {}

    def submit(self, number: int, work: Work) -> None:
        future = self.client.submit(evaluate, self.objective, work, pure=False)
        self.tasks[future] = number

    def wait(self, seconds: float | None) -> Iterable[Done]:
        wait: Any = __import__("distributed").wait

        try:
            finished = wait(list(self.tasks), timeout=seconds, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            return
        for future in finished:
            number = self.tasks.pop(future)
            try:
                took, outcomes = future.result()
                yield number, took, list(outcomes)
            except Exception as error:
                yield number, None, lost(error)

    def drop(self, number: int) -> None:
        self.client.cancel([taken_out(self.tasks, number)])

    def close(self) -> None:
        self.client.cancel(list(self.tasks))


class Ray(Pool):
    """Ray tasks, each tried once: the run decides on retries."""

    latency = 0.005

    def __init__(self, objective: Objective) -> None:
        ray: Any = __import__("ray")
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False)
        self.ray = ray
        self.size = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self.tasks: dict[Any, int] = {}
        self.objective = ray.put(objective)
        self.remote = ray.remote(evaluate).options(max_retries=0)

    def submit(self, number: int, work: Work) -> None:
        self.tasks[self.remote.remote(self.objective, work)] = number

    def wait(self, seconds: float | None) -> Iterable[Done]:
        finished, _ = self.ray.wait(list(self.tasks), num_returns=1, timeout=seconds)
        for reference in finished:
            number = self.tasks.pop(reference)
            try:
                yield self.unpacked(number, self.ray.get(reference))
            except self.ray.exceptions.RayError as error:
                yield number, None, self.failed(error)

    def unpacked(self, number: int, returned: Any) -> Done:
        took, outcomes = returned
        return number, took, list(outcomes)

    def failed(self, error: Any) -> list[Outcome]:
        return lost(error)

    def drop(self, number: int) -> None:
        self.ray.cancel(taken_out(self.tasks, number), force=True)

    def close(self) -> None:
        for reference in self.tasks:
            self.ray.cancel(reference, force=True)


class RayFunction(Ray):
    """A remote function of the user's own, called instead of ``fun``."""

    is_timed = takes_stretches = False

    def __init__(self, function: Any, objective: Objective) -> None:
        super().__init__(objective)
        self.function, self.args = function, objective.args
        self.constraints = objective.constraints
        self.broken: list[Done] = []

    def submit(self, number: int, work: Work) -> None:
        if self.constraints and not ((values := self.constraints.values(work)) <= 0.0).all():
            outcome = outcome_of(Unevaluated(values))
            self.broken.append((number, None, [outcome]))
            return
        self.tasks[self.function.remote(work, *self.args)] = number

    def wait(self, seconds: float | None) -> Iterable[Done]:
        if self.broken:
            done, self.broken = self.broken, []
            return done
        return super().wait(seconds)

    def unpacked(self, number: int, returned: Any) -> Done:
        return number, None, [outcome_of(returned)]

    def failed(self, error: Any) -> list[Outcome]:
        if isinstance(error, self.ray.exceptions.RayTaskError):
            return [failed(error.cause if isinstance(error.cause, Exception) else error)]
        return lost(error)


class Map(Pool):
    """A function like ``map``, which gets a list of all points to be evaluated."""

    is_timed = takes_stretches = False

    def __init__(self, function: Callable[..., Iterable[Any]], objective: Objective) -> None:
        self.function, self.call = function, objective.outcome
        self.size = mapped_at_once(function)
        self.waiting: list[tuple[int, Any]] = []

    def submit(self, number: int, work: Work) -> None:
        self.waiting.append((number, work))

    def wait(self, seconds: float | None) -> Iterable[Done]:
        waiting, self.waiting = self.waiting, []
        outcomes = list(self.function(self.call, [point for _, point in waiting]))
        if len(outcomes) != len(waiting):
            text = f"workers returned {len(outcomes)} outcomes for {len(waiting)} points"
            raise ValueError(f"{text}; a function like map returns one for each")
        for (number, _), outcome in zip(waiting, outcomes):
            yield number, None, [outcome]


def mapped_at_once(function: Callable[..., Any]) -> int:
    """How many calls a function like ``map`` makes at a time: as many as the pool has workers that
    it is a method of. More points in a call would be proposed without the outcomes of the first."""
    if function is map:
        return 1
    pool = getattr(function, "__self__", None)
    for name in ("_processes", "_max_workers", "num_workers", "size"):
        count = getattr(pool, name, None)
        if isinstance(count, int) and count > 0:
            return count
    return os.cpu_count() or 1
