"""The overhead per trial of several ways to run: ours, Optuna's and Ray Tune's.

The function returns at once, so that all the time is bookkeeping: choosing the point, sending it,
and recording the outcome. Workers get cheap evaluations in batches, so an evaluation of 50 ms is
measured too: the time of a worker beyond these. Runs in one process are measured in processor time,
which other jobs on the machine do not disturb; runs in several processes, or with a disk, in
wall-clock time. For Ray Tune it is the difference between a longer and a shorter run, so that its
start does not count.

    ./scripts/wheel --into .venv-python && .venv-python/bin/python -m peers.bookkeeping [--json]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import racecars

LOW, HIGH = -5.0, 5.0
WORKERS = 2
SLEEP = 0.05


def constant(x: Any) -> float:
    return 1.0


def sleep(x: Any) -> float:
    time.sleep(SLEEP)
    return 1.0


def native(
    dim: int, count: int, workers: Any = 1, fun: Any = constant, method: str | None = None
) -> None:
    racecars.minimize(fun, [(LOW, HIGH)] * dim, maxfev=count, rng=1, workers=workers, method=method)


def study(dim: int, count: int, sampler: Any, storage: Any = None) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: Any) -> float:
        for i in range(dim):
            trial.suggest_float(f"x{i}", LOW, HIGH)
        return 1.0

    optuna.create_study(sampler=sampler, storage=storage).optimize(objective, n_trials=count)


def ours_in_memory(dim: int, count: int) -> None:
    from racecars.optuna import RaceCarsSampler

    study(dim, count, RaceCarsSampler(seed=1))


def random_in_memory(dim: int, count: int) -> None:
    from optuna.samplers import RandomSampler

    study(dim, count, RandomSampler(seed=1))


def ours_in_a_journal(dim: int, count: int) -> None:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    from racecars.optuna import RaceCarsSampler

    with tempfile.TemporaryDirectory() as folder:
        storage = JournalStorage(JournalFileBackend(str(Path(folder) / "journal.log")))
        study(dim, count, RaceCarsSampler(seed=1), storage)


def tuned(dim: int, count: int) -> None:
    from ray import tune

    from racecars.ray import RaceCarsSearch

    def train(config: dict[str, float]) -> None:
        tune.report({"loss": 1.0})

    # Tune prints regardless of its settings.
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        search = RaceCarsSearch(seed=1)
        settings = tune.TuneConfig(metric="loss", mode="min", num_samples=count, search_alg=search)
        tune.Tuner(
            train,
            param_space={f"x{i}": tune.uniform(LOW, HIGH) for i in range(dim)},
            tune_config=settings,
            run_config=tune.RunConfig(storage_path=folder, name="run", verbose=0),
        ).fit()


def least(
    work: Callable[[int, int], None],
    dim: int,
    count: int,
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """The minimum time of a trial over the rounds, after a warm-up."""
    work(dim, max(2, count // 10))
    times = []
    for _ in range(rounds):
        start = clock()
        work(dim, count)
        times.append((clock() - start) / count)
    return min(times)


@contextmanager
def dask() -> Iterator[Any]:
    distributed: Any = importlib.import_module("distributed")
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextmanager
def ray() -> Iterator[None]:
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # do not yield to other processes
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


Figure = dict[str, Any]


def figure(what: str, dim: int, cost: float) -> Figure:
    return {"what": what, "dim": dim, "seconds": cost, "seconds_per_parameter": cost / dim}


def spread(where: str, workers: Any, rounds: int) -> Iterator[Figure]:
    """The cost of the native loop on workers."""
    work = partial(native, workers=workers)
    cost = least(work, 50, 2_000, rounds, time.perf_counter)
    yield figure(f"racecars.minimize{where}", 50, cost)
    work = partial(native, workers=workers, fun=sleep)
    cost = least(work, 50, 50, rounds, time.perf_counter) * WORKERS - SLEEP
    yield figure(f"racecars.minimize{where}, evaluations of 50 ms", 50, cost)


def measure(rounds: int, trials: int) -> Iterator[Figure]:
    """Yields the results."""
    clock = time.perf_counter
    for dim in (5, 50, 500):
        yield figure("racecars.minimize", dim, least(native, dim, 20_000, rounds))
        work = partial(native, method="race-cars")
        yield figure("racecars.minimize, race-cars", dim, least(work, dim, 20_000, rounds))
    yield from spread(f", {WORKERS} processes", WORKERS, rounds)
    with dask() as client:
        yield from spread(" on Dask", client, rounds)
    for dim in (5, 50, 500):
        cost = least(ours_in_memory, dim, 100, rounds)
        yield figure("Optuna, RaceCarsSampler, in memory", dim, cost)
        cost = least(random_in_memory, dim, 100, rounds)
        yield figure("Optuna, RandomSampler, in memory", dim, cost)
    for dim in (5, 50):
        cost = least(ours_in_a_journal, dim, 50, rounds, clock)
        yield figure("Optuna, RaceCarsSampler, journal", dim, cost)
    with ray():
        yield from spread(" on Ray", "ray", rounds)
        times = [clock()]
        counts = (max(2, trials // 4), trials)
        for count in counts:
            tuned(5, count)
            times.append(clock())
        cost = ((times[2] - times[1]) - (times[1] - times[0])) / (counts[1] - counts[0])
        yield figure(f"Ray Tune, RaceCarsSearch, {WORKERS} at a time", 5, cost)


def text(cost: float) -> str:
    """A time with two digits and a unit."""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    size, unit = next((one for one in units if cost > one[0] / 2), units[-1])
    return f"{float(f'{cost / size:.2g}'):g} {unit}"


def rows(figures: Iterable[Figure]) -> Iterator[str]:
    """The results as rows of a table."""
    yield "| way | parameters | per trial | per parameter and trial |"
    yield "| --- | ---: | ---: | ---: |"
    for one in figures:
        costs = text(one["seconds"]), text(one["seconds_per_parameter"])
        yield f"| {one['what']} | {one['dim']} | {costs[0]} | {costs[1]} |"


def main() -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "peers.bookkeeping", description=__doc__, formatter_class=about
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--rounds", type=int, default=3, help="the number of rounds")
    parser.add_argument("--trials", type=int, default=24, help="the number of trials of Ray Tune")
    options = parser.parse_args()
    figures = measure(options.rounds, options.trials)
    if options.json:
        print(json.dumps(list(figures), indent=2))
    else:
        for row in rows(figures):
            print(row, flush=True)


if __name__ == "__main__":
    main()
