"""Random embeddings."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import racecars

MANY = [(-5.0, 5.0)] * 300


def few_matter(x: Any, shift: float = 0.0) -> float:
    return float((x[3] - 2 - shift) ** 2 + (x[30] + 1) ** 2)


def test_points_are_linear_in_few_coordinates_and_stay_within_the_space() -> None:
    few = racecars.Embedding(MANY, 4, rng=1)
    assert few.dimension == 4 and len(few.bounds) == 4
    np.testing.assert_array_equal(few.lift(np.zeros(4)), np.zeros(300))
    y = np.array([0.01, -0.02, 0.005, 0.01])
    np.testing.assert_allclose(few.lift(2 * y), 2 * few.lift(y), atol=1e-12)
    far = few.lift(np.ones(4))
    assert (np.abs(far) <= 5).all() and (np.abs(far) == 5).any()
    np.testing.assert_array_equal(few.lift(y), racecars.Embedding(MANY, 4, rng=1).lift(y))
    assert (few.lift(y) != racecars.Embedding(MANY, 4, rng=2).lift(y)).any()


def test_few_coordinates_find_what_matters_among_many() -> None:
    few = racecars.Embedding(MANY, 5, rng=1)
    res = racecars.minimize(few.wrap(few_matter), few.bounds, args=(0.5,), maxfev=600, rng=1)
    assert res.fun < 0.05
    assert few_matter(few.lift(res.x), 0.5) == res.fun


@pytest.mark.parametrize("workers", [1, 2])
def test_one_subspace_after_the_other_is_a_method(workers: int, tmp_path: Any) -> None:
    keywords: dict[str, Any] = {
        "method": "embedding",
        "dimension": 5,
        "rounds": 3,
        "algorithm": "cma-es(population=8)",
        "maxfev": 900,
        "rng": 1,
        "workers": workers,
    }
    res = racecars.minimize(few_matter, MANY, **keywords)
    assert res.fun < 0.05 and res.fun == few_matter(res.x)
    whole = racecars.minimize(few_matter, MANY, maxfev=900, rng=1, method="cma-es")
    assert res.fun < whole.fun
    if workers == 1:
        path, calls = tmp_path / "run", list[Any]()
        half = racecars.minimize(
            few_matter,
            MANY,
            **keywords,
            checkpoint=path,
            callback=lambda x: calls.append(x) or len(calls) == 400,
        )
        assert half.nfev == 400
        rest = racecars.minimize(few_matter, MANY, **keywords, checkpoint=path)
        np.testing.assert_array_equal(rest.history, res.history)
    with pytest.raises(ValueError, match="embedding takes continuous coordinates, and `n` is"):
        racecars.minimize(few_matter, space={"n": range(5)}, method="embedding")


def test_it_goes_through_a_point() -> None:
    point = np.linspace(-4, 4, 300)
    few = racecars.Embedding(MANY, 3, rng=1, through=point)
    assert few.dimension == 4
    np.testing.assert_allclose(few.lift([1, 0, 0, 0]), point)
    np.testing.assert_allclose(few.lift([0.5, 0, 0, 0]), point / 2)


def test_names_and_log_scales() -> None:
    space = {"rate": (1e-4, 1.0, "log"), "w": racecars.Real(-1, 1, count=20)}
    few = racecars.Embedding(space, 3, rng=1)
    p = few.params(np.zeros(3))
    assert p["rate"] == pytest.approx(1e-2) and p["w"].shape == (20,)
    res = racecars.minimize(
        few.wrap(lambda p: abs(np.log10(p["rate"]) + 3)), few.bounds, maxfev=300, rng=1
    )
    assert res.fun < 0.05
    through = racecars.Embedding(space, 3, rng=1, through=p | {"rate": 1e-3})
    assert through.params([1, 0, 0, 0])["rate"] == pytest.approx(1e-3)


@pytest.mark.parametrize("space", [MANY, {"w": racecars.Real(-1, 1, count=20)}])
def test_it_can_go_to_other_processes(space: Any) -> None:
    one = racecars.Embedding(space, 3, rng=5)
    for few in (one, racecars.Embedding(space, 3, rng=5, through=last(one))):
        again = pickle.loads(pickle.dumps(few))
        y = np.full(few.dimension, 0.1)
        np.testing.assert_array_equal(again.lift(y), few.lift(y))
    few = racecars.Embedding(MANY, 3, rng=5)
    res = racecars.minimize(few.wrap(few_matter), few.bounds, maxfev=40, rng=1, workers=2)
    assert res.nfev == 40


def last(few: racecars.Embedding) -> Any:
    y = [0.2, 0.1, 0.0]
    return few.params(y) if few.space.is_by_name else few.lift(y)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="coordinate `n` is not continuous"):
        racecars.Embedding({"x": (0, 1), "n": range(5)}, 1)
    with pytest.raises(ValueError, match="0 dimensions into 300"):
        racecars.Embedding(MANY, 0)
    few = racecars.Embedding(MANY, 4, rng=1)
    with pytest.raises(ValueError, match="3 coordinates; it takes 4"):
        few.lift(np.zeros(3))
    with pytest.raises(ValueError, match="coordinate 1 is NaN"):
        few.lift([0, np.nan, 0, 0])
    with pytest.raises(ValueError):
        racecars.Embedding(MANY, 4, through=np.full(300, 9.0))
