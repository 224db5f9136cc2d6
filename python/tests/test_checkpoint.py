"""Checkpoints: written whole or not at all, and gone on with to the bit."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import racecars

BOUNDS = [(-5.0, 5.0)] * 4
KEYWORDS: dict[str, Any] = {"maxfev": 300, "rng": 5}


def sphere(x: Any) -> float:
    return float((x**2).sum())


def interrupt_at(stop: int) -> Any:
    def callback(intermediate_result: Any) -> None:
        if intermediate_result.nit >= stop:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_run_goes_on_to_the_bit(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "run"
    extra = {} if workers == 1 else {"workers": workers, "deterministic": True}
    whole = racecars.minimize(sphere, BOUNDS, **KEYWORDS, **extra)
    for stop in (1, 50, 51, 200):
        part = racecars.minimize(
            sphere, BOUNDS, **KEYWORDS, **extra, checkpoint=path, callback=interrupt_at(stop)
        )
        assert (part.nit, part.status) == (stop, -1)
    rest = racecars.minimize(sphere, BOUNDS, **KEYWORDS, **extra, checkpoint=path)
    np.testing.assert_array_equal(rest.history, whole.history)
    assert rest.fun == whole.fun and rest.nfev == 300
    again = racecars.minimize(
        lambda x: pytest.fail("evaluated"), BOUNDS, **KEYWORDS, checkpoint=path
    )
    np.testing.assert_array_equal(again.history, whole.history)


def test_a_run_that_is_killed_goes_on(script: Any, tmp_path: Path) -> None:
    text = """
        import time, racecars
        def fun(x):
            time.sleep(0.01)
            return float((x**2).sum())
        racecars.minimize(fun, [(-5, 5)] * 4, maxfev=300, rng=5, checkpoint="run")
    """
    path = tmp_path / "run"
    process = script(text)
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    calls: list[int] = []

    def fun(x: Any) -> float:
        calls.append(1)
        return sphere(x)

    res = racecars.minimize(fun, BOUNDS, **KEYWORDS, checkpoint=path, resume="must")
    assert res.nfev == 300 and 0 < len(calls) < 300
    whole = racecars.minimize(sphere, BOUNDS, **KEYWORDS)
    np.testing.assert_array_equal(res.history, whole.history)


def test_failures_and_counts_are_kept(tmp_path: Path) -> None:
    def fun(x: Any) -> float:
        if x[0] > 0:
            raise ValueError("right")
        return sphere(x)

    path = tmp_path / "run"
    with pytest.warns(RuntimeWarning):
        first = racecars.minimize(fun, BOUNDS, maxfev=50, rng=5, checkpoint=path)
    then = racecars.minimize(fun, BOUNDS, maxfev=50, rng=5, checkpoint=path)
    assert (then.nfev, then.n_failed) == (50, first.n_failed)
    assert then.errors[0].text == "ValueError: right"
    np.testing.assert_array_equal(then.errors[0].x, first.errors[0].x)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(FileNotFoundError):
        racecars.minimize(sphere, BOUNDS, checkpoint=path, resume="must")
    racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path)
    with pytest.raises(ValueError, match="another space"):
        racecars.minimize(sphere, BOUNDS[:2], checkpoint=path)
    with pytest.raises(ValueError, match="is of method race-cars, not cma-es"):
        racecars.minimize(sphere, BOUNDS, checkpoint=path, method="cma-es")
    damaged = bytearray(path.read_bytes())
    damaged[-5] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="damaged"):
        racecars.minimize(sphere, BOUNDS, checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="not the checkpoint"):
        racecars.minimize(sphere, BOUNDS, checkpoint=path)
    assert racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path, resume="never").nfev
