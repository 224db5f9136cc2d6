"""Workers of other packages behind one interface. Packages are imported only where used."""

from __future__ import annotations

import concurrent.futures
import hashlib
import pickle
import time
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from typing import Any, ClassVar, Optional

from racecars._objective import Objective, Outcome, Unevaluated, described, failed, outcome_of

Done = tuple[int, Optional[float], list[Optional[Outcome]]]
"""A task's number, the seconds that its evaluations took, and the outcome of each; ``None`` for an
evaluation that was lost with its worker, when another one may have been the cause."""


class PoolBroken(Exception):
    """No worker is left, and none can be started."""


class Pool:
    """Workers that evaluate lists of points."""

    size: int
    """The number of lists evaluated at a time."""
    takes_many = True
    """Whether a list may have more than one point."""
    latency = 0.001
    """The approximate seconds that it takes to send a list and receive its outcomes."""

    def submit(self, number: int, points: list[Any]) -> None:
        raise NotImplementedError

    def wait(self, seconds: float | None) -> Iterable[Done]:
        """The lists that have been evaluated; waits for the first, at most this many seconds."""
        raise NotImplementedError

    def close(self) -> None:
        """Drops the evaluations under way, without waiting."""

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def evaluate(objective: Any, points: list[Any]) -> tuple[float, list[Outcome]]:
    """Evaluates a list of points in a worker; returns the seconds taken and the outcomes."""
    start = time.perf_counter()
    if isinstance(objective, Shipped):
        objective = objective.unpacked()
    outcomes = [sendable(objective.outcome(point)) for point in points]
    return time.perf_counter() - start, outcomes


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


def lost(error: BaseException, count: int) -> list[Outcome | None]:
    """The outcomes of points whose worker was lost: any of several may have been the cause."""
    if count > 1:
        return [None] * count
    return [Outcome(failure="lost", text=f"the worker was lost: {described(error)}")]


class Futures(Pool):
    """Any executor of ``concurrent.futures``."""

    def __init__(self, executor: Executor, objective: Objective, owned: bool = False) -> None:
        self.executor, self.owned = executor, owned
        is_here = isinstance(executor, ThreadPoolExecutor)
        self.objective: Any = objective if is_here else Shipped(objective)
        count = getattr(executor, "num_workers", None) or getattr(executor, "_max_workers", None)
        self.size = int(count or 1)
        self.latency = 0.0001 if is_here else 0.001
        self.tasks: dict[concurrent.futures.Future[Any], tuple[int, int]] = {}

    def submit(self, number: int, points: list[Any]) -> None:
        try:
            future = self.executor.submit(evaluate, self.objective, points)
        except (BrokenExecutor, RuntimeError) as error:
            raise PoolBroken(f"the executor takes no more work: {described(error)}") from error
        self.tasks[future] = (number, len(points))

    def wait(self, seconds: float | None) -> Iterable[Done]:
        first = concurrent.futures.FIRST_COMPLETED
        for future in concurrent.futures.wait(self.tasks, seconds, first).done:
            number, count = self.tasks.pop(future)
            error = future.exception()
            if error is None:
                took, outcomes = future.result()
                yield number, took, list(outcomes)
            else:
                yield number, None, lost(error, count)

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
        self.tasks: dict[Any, tuple[int, int]] = {}

    def submit(self, number: int, points: list[Any]) -> None:
        future = self.client.submit(evaluate, self.objective, points, pure=False)
        self.tasks[future] = (number, len(points))

    def wait(self, seconds: float | None) -> Iterable[Done]:
        wait: Any = __import__("distributed").wait

        try:
            finished = wait(list(self.tasks), timeout=seconds, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            return
        for future in finished:
            number, count = self.tasks.pop(future)
            try:
                took, outcomes = future.result()
                yield number, took, list(outcomes)
            except Exception as error:
                yield number, None, lost(error, count)

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
        self.tasks: dict[Any, tuple[int, int]] = {}
        self.objective = ray.put(objective)
        self.remote = ray.remote(evaluate).options(max_retries=0)

    def submit(self, number: int, points: list[Any]) -> None:
        self.tasks[self.remote.remote(self.objective, points)] = (number, len(points))

    def wait(self, seconds: float | None) -> Iterable[Done]:
        finished, _ = self.ray.wait(list(self.tasks), num_returns=1, timeout=seconds)
        for reference in finished:
            number, count = self.tasks.pop(reference)
            try:
                yield self.unpacked(number, self.ray.get(reference))
            except self.ray.exceptions.RayError as error:
                yield number, None, self.failed(error, count)

    def unpacked(self, number: int, returned: Any) -> Done:
        took, outcomes = returned
        return number, took, list(outcomes)

    def failed(self, error: Any, count: int) -> list[Outcome | None]:
        return lost(error, count)

    def close(self) -> None:
        for reference in self.tasks:
            self.ray.cancel(reference, force=True)


class RayFunction(Ray):
    """A remote function of the user's own, called instead of ``fun``."""

    takes_many = False

    def __init__(self, function: Any, objective: Objective) -> None:
        super().__init__(objective)
        self.function, self.args = function, objective.args
        self.constraints = objective.constraints
        self.broken: list[Done] = []

    def submit(self, number: int, points: list[Any]) -> None:
        if self.constraints and not (violation := self.constraints.violation(points[0])) <= 0.0:
            outcome = outcome_of(Unevaluated(violation))
            self.broken.append((number, None, [outcome]))
            return
        self.tasks[self.function.remote(points[0], *self.args)] = (number, 1)

    def wait(self, seconds: float | None) -> Iterable[Done]:
        if self.broken:
            done, self.broken = self.broken, []
            return done
        return super().wait(seconds)

    def unpacked(self, number: int, returned: Any) -> Done:
        return number, None, [outcome_of(returned)]

    def failed(self, error: Any, count: int) -> list[Outcome | None]:
        if isinstance(error, self.ray.exceptions.RayTaskError):
            return [failed(error.cause if isinstance(error.cause, Exception) else error)]
        return lost(error, count)


class Map(Pool):
    """A function like ``map``, which gets a list of all points to be evaluated."""

    size = 16
    takes_many = False

    def __init__(self, function: Callable[..., Iterable[Any]], objective: Objective) -> None:
        self.function, self.call = function, objective.outcome
        self.waiting: list[tuple[int, Any]] = []

    def submit(self, number: int, points: list[Any]) -> None:
        self.waiting.append((number, points[0]))

    def wait(self, seconds: float | None) -> Iterable[Done]:
        waiting, self.waiting = self.waiting, []
        outcomes = list(self.function(self.call, [point for _, point in waiting]))
        if len(outcomes) != len(waiting):
            text = f"workers returned {len(outcomes)} outcomes for {len(waiting)} points"
            raise ValueError(f"{text}; a function like map returns one for each")
        for (number, _), outcome in zip(waiting, outcomes):
            yield number, None, [outcome]
