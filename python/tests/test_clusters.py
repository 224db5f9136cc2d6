"""Workers of Dask, Ray and MPI, for real, on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import racecars

BOUNDS = [(-5.0, 5.0)] * 4
warned = pytest.mark.filterwarnings("ignore:evaluation .* failed:RuntimeWarning")


def sphere(x: Any) -> float:
    return float((x**2).sum())


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, silence_logs=50) as cluster, Client(cluster) as client:
        yield client


def test_dask(dask_client: Any) -> None:
    res = racecars.minimize(lambda x: sphere(x), BOUNDS, maxfev=200, rng=1, workers=dask_client)
    assert (res.nfev, res.n_failed) == (200, 0) and res.fun == sphere(res.x)


def test_dask_evaluates_equal_points_anew(dask_client: Any, tmp_path: Path) -> None:
    def fun(p: dict[str, Any]) -> float:
        with (tmp_path / "calls").open("a") as file:
            file.write("x")
        return float(p["a"])

    space = {"a": range(3)}
    for _ in range(2):
        racecars.minimize(fun, space=space, noise="no", rng=1, workers=dask_client)
    assert (tmp_path / "calls").read_text() == "x" * 6


@warned
def test_dask_workers_may_die(dask_client: Any) -> None:
    def fun(x: Any) -> float:
        return sphere(x) if x[0] < 4.5 else os._exit(1)  # type: ignore[func-returns-value]

    bad = [4.8, 0, 0, 0]
    res = racecars.minimize(fun, BOUNDS, x0=bad, maxfev=12, rng=1, workers=dask_client)
    assert res.nit == 12 and res.n_failed >= 1 and "KilledWorker" in res.errors[0].text


@warned
def test_ray(local_ray: Any) -> None:
    def fun(x: Any) -> float:
        if x[0] > 4.5:
            os._exit(1)
        if x[0] > 4:
            raise ValueError("far out")
        return float((x**2).sum())

    starts = [[4.8, 0, 0, 0], [4.2, 0, 0, 0]]
    res = racecars.minimize(fun, BOUNDS, x0=starts, maxfev=100, rng=1, workers="ray")
    assert res.nit == 100 and res.fun == sphere(res.x) and res.n_failed >= 2
    texts = " ".join(failure.text for failure in res.errors)
    assert "WorkerCrashedError" in texts and "ValueError: far out" in texts


@warned
def test_a_ray_remote_function(local_ray: Any) -> None:
    @local_ray.remote(num_cpus=0.5)
    def fun(x: Any) -> float:
        if x[0] > 4:
            raise ValueError("far out")
        return float((x**2).sum())

    limit = {"type": "ineq", "fun": lambda x: x[1]}
    res = racecars.minimize(
        fun, BOUNDS, x0=[4.5, 1, 0, 0], constraints=limit, maxfev=60, rng=1, workers=fun
    )
    # What violates a known constraint costs no budget.
    assert res.nfev == 60 and res.x[1] >= 0 and res.n_infeasible == res.nit - 60 > 0
    assert "ValueError: far out" in res.errors[0].text


MPI = """
    from mpi4py.futures import MPIPoolExecutor
    import racecars

    if __name__ == "__main__":
        with MPIPoolExecutor() as executor:
            res = racecars.minimize(
                lambda x: float((x**2).sum()), [(-5, 5)] * 4, maxfev=200, rng=1, workers=executor
            )
            print(executor.num_workers, res.nfev, res.n_failed)
"""


def test_mpi(script: Any) -> None:
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        found = shutil.which("mpiexec")
        if found is None:
            pytest.skip("there is no mpiexec; PyPI's mpich brings one")
        mpiexec = Path(found)
    process = script(MPI, str(mpiexec), "-n", "3", sys.executable, "-m", "mpi4py.futures")
    output, errors = process.communicate(timeout=120)
    assert output == "2 200 0\n", errors
