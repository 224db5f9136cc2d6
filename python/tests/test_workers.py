"""Workers on this machine: processes, threads, executors, maps."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import racecars
from racecars._constraints import Constraints
from racecars._core import Session
from racecars._objective import Objective, Outcome
from racecars._pools import Pool, done
from racecars._run import Run
from racecars._stretch import Stretch
from racecars.workers import asynchronous, pool_of

BOUNDS = [(-5.0, 5.0)] * 4
warned = pytest.mark.filterwarnings("ignore:evaluation .* failed:RuntimeWarning")


def sphere(x: Any) -> float:
    return float((x**2).sum())


def test_processes_take_lambdas_and_keep_to_the_budget() -> None:
    here = os.getpid()
    res = racecars.minimize(
        lambda x: sphere(x) if os.getpid() != here else 1 / 0, BOUNDS, maxfev=500, rng=1, workers=3
    )
    assert (res.nfev, res.n_failed, res.optimizer.pending) == (500, 0, 0)
    assert res.fun == sphere(res.x) == res.history.min()


def test_processes_work_side_by_side(tmp_path: Path) -> None:
    def fun(x: Any) -> float:
        # Returns when all eight have begun, which one after the other they never do.
        (tmp_path / str(os.getpid())).touch()
        wait_until(lambda: len(list(tmp_path.iterdir())) == 8)
        return sphere(x)

    res = racecars.minimize(fun, BOUNDS, maxfev=8, workers=8, on_error="raise")
    assert res.nfev == 8


def test_dict_spaces_reach_workers() -> None:
    space = {"n": range(5), "f": [np.sin, np.cos]}
    fun = lambda p: float(p["f"](p["n"]))  # noqa: E731
    res = racecars.minimize(fun, space=space, noise="no", workers=2, rng=1)
    assert (res.nfev, res.status) == (10, 4)
    assert res.params == {"n": 3, "f": np.cos}


@pytest.mark.parametrize("kind", ["threads", "thread pool", "process pool", "map", "pool.map"])
def test_other_workers(kind: str) -> None:
    pools: dict[str, Any] = {
        "threads": lambda: "threads",
        "thread pool": lambda: ThreadPoolExecutor(3),
        "process pool": lambda: ProcessPoolExecutor(2),
        "map": lambda: map,
        "pool.map": lambda: multiprocessing.Pool(2).map,
    }
    workers = pools[kind]()
    fun = sphere if kind == "pool.map" else lambda x: sphere(x)
    res = racecars.minimize(fun, BOUNDS, maxfev=300, rng=1, workers=workers)
    assert (res.nfev, res.n_failed) == (300, 0)
    assert res.fun == sphere(res.x)
    if hasattr(workers, "submit"):
        assert workers.submit(os.getpid).result()  # still open
        workers.shutdown()


def test_the_process_that_fun_runs_in_is_as_documented() -> None:
    here = float(os.getpid())

    def is_here(**keywords: Any) -> bool:
        res = racecars.minimize(lambda x: float(os.getpid()), BOUNDS, maxfev=20, **keywords)
        return bool(res.fun == here)

    assert is_here() and is_here(deterministic=True, lookahead=1)
    assert is_here(workers="threads", deterministic=True)
    assert not is_here(deterministic=True) and not is_here(timeout=60) and not is_here(workers=2)


def test_deterministic_runs_do_not_depend_on_the_workers() -> None:
    def fun(x: Any) -> float:
        time.sleep(0.002 * abs(x[0]) / 5)  # out of order
        return sphere(x)

    runs = [
        racecars.minimize(fun, BOUNDS, maxfev=120, rng=7, workers=workers, deterministic=True)
        for workers in (1, 2, 5, "threads", map)
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.history, runs[0].history)
    alone = racecars.minimize(fun, BOUNDS, maxfev=120, rng=7)
    same = racecars.minimize(
        fun, BOUNDS, maxfev=120, rng=7, workers=2, deterministic=True, lookahead=1
    )
    np.testing.assert_array_equal(alone.history, same.history)


@warned
@pytest.mark.parametrize("way", ["exit", "kill"])
def test_a_worker_that_dies_is_a_failed_evaluation(way: str) -> None:
    def fun(x: Any) -> float:
        if x[0] > 2:
            if way == "exit":
                os._exit(7)
            os.kill(os.getpid(), signal.SIGKILL)
        return sphere(x)

    # RACE-CARS begins with points everywhere.
    res = racecars.minimize(fun, BOUNDS, maxfev=150, rng=1, workers=2, method="race-cars")
    assert res.nit == 150 and 0 < res.n_failed < 100
    assert all(failure.x[0] > 2 for failure in res.errors)
    words = "exit code 7" if way == "exit" else "SIGKILL"
    assert words in res.errors[0].text and res.x[0] <= 2
    assert res.errors[0].kind == "lost"


def test_a_point_that_cannot_be_sent_leaves_no_process() -> None:
    space = {"f": [lambda x: x, lambda x: 2 * x], "x": (0.0, 1.0)}
    with pytest.raises(Exception, match="pickle"):
        racecars.minimize(lambda p: p["f"](p["x"]), space=space, maxfev=9, workers=2, rng=1)
    assert multiprocessing.active_children() == []


def test_a_death_is_tried_again(tmp_path: Path) -> None:
    def fun(x: Any) -> float:
        marker = tmp_path / f"{x[0]!r}"
        if x[0] > 0 and not marker.exists():
            marker.touch()
            os._exit(1)
        return sphere(x)

    res = racecars.minimize(fun, BOUNDS, maxfev=40, rng=1, workers=2, retries=1)
    assert (res.n_failed, res.nfev) == (0, 40) and list(tmp_path.iterdir())


@warned
def test_timeouts_end_an_evaluation_with_what_it_started(tmp_path: Path) -> None:
    def fun(x: Any) -> float:
        if x[0] > 2:
            child = os.fork()
            if child == 0:
                signal.pause()
            (tmp_path / str(child)).touch()
            signal.pause()
        return sphere(x)

    start = [3.0] * len(BOUNDS)
    res = racecars.minimize(fun, BOUNDS, x0=start, maxfev=40, rng=2, workers=2, timeout=0.3)
    assert res.n_failed > 0 and "timeout of 0.3 s" in res.errors[0].text
    assert {failure.kind for failure in res.errors} == {"timeout"}
    children = [int(path.name) for path in tmp_path.iterdir()]
    assert children
    wait_until(lambda: not any(is_running(child) for child in children))


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@warned
def test_exceptions_and_exits_in_processes() -> None:
    class Odd(Exception):
        def __init__(self, one: int, two: int) -> None:  # which cannot be unpickled
            super().__init__("odd")

    def fun(x: Any) -> float:
        if x[0] > 3:
            raise ValueError("far out")
        if x[0] > 1:
            raise SystemExit(1)
        if x[0] > 0:
            raise Odd(1, 2)
        return sphere(x)

    starts = [[x, 0, 0, 0] for x in (4.0, 2.0, 0.5)]
    res = racecars.minimize(fun, BOUNDS, x0=starts, maxfev=100, rng=1, workers=2)
    texts = {failure.text for failure in res.errors}
    assert {"ValueError: far out", "SystemExit: 1", "Odd: odd"} <= texts
    with pytest.raises((ValueError, RuntimeError)):
        racecars.minimize(fun, BOUNDS, maxfev=100, rng=1, workers=2, on_error="raise")


@warned
def test_a_broken_executor_ends_the_run_with_the_best_so_far() -> None:
    def fun(x: Any) -> float:
        return sphere(x) if x[0] < 4.5 else os._exit(1)  # type: ignore[func-returns-value]

    with ProcessPoolExecutor(2) as executor:
        bad = [5.0, 0, 0, 0]
        res = racecars.minimize(fun, BOUNDS, x0=bad, maxfev=500, rng=1, workers=executor)
    assert (res.status, res.success) == (-3, False) and "workers are gone" in res.message


class Pretended(Pool):
    """A pool that evaluates here, and remembers what it was given. It is also the clock: sending a
    point takes 1 ms, and evaluating it as long as is said."""

    def __init__(self, size: int, seconds: float, breaks: str = "") -> None:
        self.size, self.seconds, self.breaks = size, seconds, breaks
        self.now = 0.0
        self.ends: dict[int, float] = {}
        self.tasks: dict[int, Any] = {}
        self.out: list[int] = []
        self.stretches: list[int] = []
        self.dropped: list[int] = []

    def submit(self, number: int, work: Any) -> None:
        self.tasks[number] = work
        self.ends[number] = self.now + 0.001 + self.seconds
        self.out.append(len(self.tasks))
        if isinstance(work, Stretch):
            self.stretches.append(number)

    def wait(self, seconds: float | None) -> Any:
        number, work = next(iter(self.tasks.items()))
        if isinstance(work, Stretch) and self.breaks == "hangs":
            assert seconds is not None
            self.now += seconds + 0.001
            return
        del self.tasks[number]
        if isinstance(work, Stretch) and self.breaks == "dies":
            yield number, None, [Outcome(failure="lost")]
            return
        outcomes = done(lambda x: Outcome(sphere(x)), work)[1]
        self.now = max(self.now, self.ends[number]) + self.seconds * (len(outcomes) - 1)
        yield number, self.seconds * len(outcomes), outcomes

    def monotonic(self) -> float:
        return self.now

    def drop(self, number: int) -> None:
        self.dropped.append(number)
        del self.tasks[number]


def run_on(pool: Pretended, monkeypatch: pytest.MonkeyPatch, **keywords: Any) -> Run:
    monkeypatch.setattr("racecars.workers.time", pool)
    optimizer = racecars.Optimizer(BOUNDS, budget=500, rng=1)
    session = Session(optimizer, optimizer.space, maxfev=500, watch=True)
    run = Run(optimizer, session, Objective(sphere, (), Constraints(())), **keywords)
    asynchronous(run, pool, maxfev=500)
    return run


def test_short_evaluations_are_made_by_one_worker_and_find_what_one_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = Pretended(8, seconds=1e-5)
    run = run_on(pool, monkeypatch)
    assert max(pool.out) == 1 and pool.stretches and not pool.dropped
    assert "so one worker evaluated: 8 would not have been faster" in run.final_result().message
    alone = racecars.minimize(sphere, BOUNDS, maxfev=500, rng=1)
    np.testing.assert_array_equal(run.session.history(), alone.history)


def test_callbacks_see_every_outcome_of_a_stretch_and_may_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []

    def stop(intermediate_result: Any) -> bool:
        seen.append(intermediate_result.nit)
        return len(seen) == 100

    pool = Pretended(2, seconds=1e-5)
    run = run_on(pool, monkeypatch, callback=stop)
    assert pool.stretches and seen == [*range(1, 101)]
    assert run.final_result().status == 3


@pytest.mark.parametrize(("seconds", "out"), [(0.0011, 3), (0.0041, 6), (10.0, 8)])
def test_no_more_are_out_than_can_be_evaluated_while_one_is_sent(
    seconds: float, out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pretended(8, seconds)
    run = run_on(pool, monkeypatch)
    assert max(pool.out) == out and not pool.stretches
    assert run.session.told == 500 and "worker" not in run.final_result().message


@pytest.mark.parametrize("breaks", ["dies", "hangs"])
def test_a_stretch_that_fails_is_made_again_one_by_one(
    breaks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pretended(8, seconds=1e-5, breaks=breaks)
    run = run_on(pool, monkeypatch, on_error="raise")
    assert len(pool.stretches) == 1 and pool.dropped == pool.stretches * (breaks == "hangs")
    assert max(pool.out) == 1
    alone = racecars.minimize(sphere, BOUNDS, maxfev=500, rng=1)
    np.testing.assert_array_equal(run.session.history(), alone.history)


def test_a_timeout_is_for_each_evaluation() -> None:
    objective = Objective(sphere, (), Constraints(()))
    assert pool_of(2, objective, None).takes_stretches
    assert not pool_of(2, objective, 1.0).takes_stretches


def test_stretches_stop_at_the_target_and_repeat_failed_evaluations(tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def fun(x: Any) -> float:
        with calls.open("a") as file:
            file.write("x")
        if calls.stat().st_size % 50 == 0:
            raise ValueError("now and then")
        return sphere(x)

    keywords: dict[str, Any] = {"maxfev": 10**6, "rng": 1, "retries": 1, "target": 1e-3}
    res = racecars.minimize(fun, BOUNDS, workers=2, **keywords)
    assert res.status == 1 and res.fun <= 1e-3 and res.n_failed == 0


def test_no_more_are_out_than_there_are_workers(tmp_path: Path) -> None:
    def fun(x: Any) -> float:
        mine = tmp_path / str(os.getpid())
        mine.touch()
        time.sleep(0.004)
        out = len(list(tmp_path.iterdir()))
        mine.unlink()
        return float(out)

    res = racecars.minimize(fun, BOUNDS, maxfev=60, rng=1, workers=3)
    assert res.history.max() <= 3


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (map, 1),
        (ThreadPoolExecutor(3).map, 3),
        (lambda call, points: map(call, points), os.cpu_count()),
    ],
)
def test_maps_get_as_many_points_as_they_have_workers(function: Any, count: int) -> None:
    assert pool_of(function, Objective(sphere, (), Constraints(())), None).size == count


def test_target_and_interrupt_do_not_wait_for_what_is_under_way() -> None:
    def fun(x: Any) -> float:
        if x[0] == 5:
            signal.pause()  # for ever
        return sphere(x)

    keywords: dict[str, Any] = {"x0": [5.0, 0, 0, 0], "maxfev": 10**6, "rng": 1, "workers": 2}
    res = racecars.minimize(fun, BOUNDS, target=40.0, **keywords)
    assert res.status == 1 and res.nfev > 0

    def interrupt(intermediate_result: Any) -> None:
        if intermediate_result.nit == 20:
            os.kill(os.getpid(), signal.SIGINT)

    res = racecars.minimize(fun, BOUNDS, callback=interrupt, **keywords)
    assert res.status == -1 and res.nfev >= 20


@pytest.mark.parametrize(
    "evaluation",
    [
        "time.sleep(0.05)",
        "signal.pause()",
        "sum(itertools.repeat(1, 10**15))",  # which never lets another thread run
        "subprocess.run(['sleep', '1000'])",
    ],
)
def test_workers_end_when_their_parent_is_killed(
    script: Any, tmp_path: Path, evaluation: str
) -> None:
    process = script(
        f"""
        import itertools, os, pathlib, signal, subprocess, time, racecars
        def fun(x):
            pathlib.Path(f"worker-{{os.getpid()}}").touch()
            {evaluation}
            return 0.0
        racecars.minimize(fun, [(0, 1)] * 2, workers=3, maxfev=10**6)
        """
    )
    wait_until(lambda: len(list(tmp_path.glob("worker-*"))) == 3)
    workers = [int(path.name.split("-")[1]) for path in tmp_path.glob("worker-*")]
    if "subprocess" in evaluation:
        wait_until(lambda: all(map(children_of, workers)))
        workers += [child for worker in workers for child in children_of(worker)]
    process.kill()
    process.wait()
    wait_until(lambda: not any(is_running(worker) for worker in workers))
    process.communicate()


def children_of(process: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def wait_until(happened: Any, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)
