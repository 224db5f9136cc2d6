"""Ask and tell."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import racecars

BOUNDS = [(-5.0, 5.0)] * 6


def sphere(x: Any) -> float:
    return float((x**2).sum())


@pytest.mark.parametrize("method", racecars.METHODS)
def test_every_method_asks_tells_saves_and_goes_on_to_the_bit(method: str, tmp_path: Path) -> None:
    optimizer = racecars.Optimizer(BOUNDS, method, budget=300, rng=3)
    assert optimizer.method == method
    for _ in range(150):
        candidate = optimizer.ask()
        optimizer.tell(candidate, sphere(candidate.x))
    out = optimizer.ask()
    optimizer.save(tmp_path / "saved")
    twin = racecars.Optimizer.load(tmp_path / "saved")
    assert (twin.told, twin.pending) == (150, 1)
    twin.tell(twin.restore(out.id, out.code), sphere(out.x))
    optimizer.tell(out, sphere(out.x))
    for _ in range(50):
        one, two = optimizer.ask(), twin.ask()
        np.testing.assert_array_equal(one.x, two.x)
        optimizer.tell(one, sphere(one.x))
        twin.tell(two, sphere(two.x))
    best = optimizer.best
    assert best is not None and best.fun == sphere(best.x)
    assert not list(tmp_path.glob("*.tmp"))


def test_rows_are_recognized_in_any_order_and_others_are_known_points() -> None:
    optimizer = racecars.Optimizer(BOUNDS, "cma-es", rng=1)
    rows = optimizer.ask(20)
    assert optimizer.pending == 20
    some = rows[::-2].copy()
    optimizer.tell(some, (some**2).sum(axis=1))
    assert (optimizer.pending, optimizer.told) == (10, 10)
    optimizer.tell(rows[0], 3.0)
    assert optimizer.pending == 9
    optimizer.tell(rows[0], 3.0)  # now a known point
    optimizer.tell(np.zeros(6), 0.0)
    assert (optimizer.pending, optimizer.told) == (9, 13)
    assert optimizer.best is not None and optimizer.best.fun == 0.0
    columns = np.asfortranarray(rows[1:3])
    optimizer.tell(columns, [1.0, 2.0] @ np.eye(2))


def test_lists_of_points_take_lists_of_values() -> None:
    optimizer = racecars.Optimizer(BOUNDS, "cma-es", rng=1)
    rows = optimizer.ask(4)
    optimizer.tell(rows[:2], [3, 2.5])
    optimizer.tell(list(rows[2:]), np.array([2, 1]))
    assert (optimizer.pending, optimizer.told) == (0, 4)
    candidates = [optimizer.ask(), optimizer.ask()]
    optimizer.tell(candidates, [0.5, 0.25])
    assert (optimizer.pending, optimizer.told) == (0, 6)
    assert optimizer.best is not None and optimizer.best.fun == 0.25
    with pytest.raises(ValueError, match="2 points take 2 values, not 1"):
        optimizer.tell(list(rows[:2]), [1.0])
    with pytest.raises(TypeError, match="list of values"):
        optimizer.tell(list(rows[:2]), 1.0)
    with pytest.raises(TypeError, match="one by one"):
        optimizer.tell(list(rows[:2]), error="no")
    named = racecars.Optimizer({"x": (0.0, 1.0), "act": ["relu", "tanh"]}, rng=1)
    named.tell([{"x": 0.5, "act": "tanh"}, named.ask().params], [1.0, 2.0])
    assert named.best is not None and named.best.params == {"x": 0.5, "act": "tanh"}


def test_failures_and_violations_rank_behind_values() -> None:
    optimizer = racecars.Optimizer(BOUNDS, rng=1)
    optimizer.tell(optimizer.ask(), error=ValueError("no"))
    optimizer.tell(optimizer.ask(), float("nan"))
    assert optimizer.best is None
    optimizer.tell(optimizer.ask(), violation=2.0)
    optimizer.tell(optimizer.ask(), 7.0, violation=0.5)
    assert optimizer.best is not None
    assert (optimizer.best.violation, optimizer.best.fun) == (0.5, np.inf)
    optimizer.tell(optimizer.ask(), 1e9, violation=0.0)
    assert (optimizer.best.violation, optimizer.best.fun) == (0.0, 1e9)


def test_what_cannot_be_told_is_refused() -> None:
    optimizer = racecars.Optimizer(BOUNDS, rng=1)
    candidate = optimizer.ask()
    optimizer.tell(candidate, 1.0)
    with pytest.raises(ValueError, match="candidate 0 has been told before"):
        optimizer.tell(candidate, 1.0)
    with pytest.raises(ValueError, match="the point has 2 coordinates, the space has 6"):
        optimizer.tell(np.zeros(2), 1.0)
    with pytest.raises(ValueError, match=r"coordinate `x\[0\]`: 9 is not a number from -5 to 5"):
        optimizer.tell(np.full(6, 9.0), 1.0)
    with pytest.raises(TypeError, match="tell takes a value, or violation="):
        optimizer.tell(optimizer.ask())
    with pytest.raises(TypeError, match="not str"):
        optimizer.tell("here", 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="3 points take 3 values, not 2"):
        optimizer.tell(optimizer.ask(3), np.zeros(2))
    with pytest.raises(ValueError, match="candidate 1000 was never asked"):
        optimizer.tell(optimizer.restore(1000, np.zeros(6)), 1.0)
    stranger = racecars.Optimizer([(0, 1)], rng=1).ask()
    with pytest.raises(ValueError, match="another space"):
        optimizer.tell(stranger, 1.0)


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="algorithm `x` is not one of auto"):
        racecars.Optimizer(BOUNDS, "x")
    with pytest.raises(TypeError, match="race-cars has no setting `sigma`; it has training_size"):
        racecars.Optimizer(BOUNDS, sigma=1)
    with pytest.raises(
        ValueError, match="setting `restarts` of cma-es is `x`, not none, ipop or bipop"
    ):
        racecars.Optimizer(BOUNDS, "cma-es", restarts="x")
    with pytest.raises(ValueError, match="gamma = 3"):
        racecars.Optimizer(BOUNDS, gamma=3)
    for method, options in {
        "race-cars": {"gamma": 0.9, "rho": 0.1, "training_size": 10, "replacing": "farthest"},
        "cma-es": {"population": 8, "sigma": 0.1, "restarts": "bipop"},
        "de": {"population": 20, "weight": (0.4, 0.9), "crossover": 0.5},
        "zo-adam": {"learning_rate": 0.02, "directions": 4},
        "embedding": {"dimension": 3, "algorithm": "cma-es(population=8)"},
    }.items():
        racecars.Optimizer(BOUNDS, method, **options).ask()
        assert set(options) <= set(racecars.settings(method))


@pytest.mark.parametrize("method", racecars.METHODS)
def test_every_setting_is_listed_and_may_be_left_to_be_derived(method: str) -> None:
    settings = racecars.settings(method)
    assert all(len(about) > 10 for about in settings.values())
    with pytest.raises(TypeError, match=f"{method} has no setting `nothing`"):
        racecars.Optimizer(BOUNDS, method, nothing=1)


def test_settings_are_python_values_of_any_kind() -> None:
    def first(method: str, **options: Any) -> Any:
        return racecars.Optimizer(BOUNDS, method, rng=1, **options).ask(30)

    for population in (np.int64(9), "9", " 9 "):
        np.testing.assert_array_equal(
            first("cma-es", population=9), first("cma-es", population=population, sigma=None)
        )
    weights = [(0.25, 0.75), [0.25, 0.75], np.array([0.25, 0.75]), "[0.25, 0.75]"]
    for weight in weights[1:]:
        np.testing.assert_array_equal(first("de", weight=weight), first("de", weight=weights[0]))
    np.testing.assert_array_equal(
        first("sracos", repeats=True), first("sracos", repeats=np.bool_(True))
    )
    for sigma in (np.nan, np.inf, np.float32("nan")):
        with pytest.raises(ValueError, match=r"setting `sigma` of cma-es is `.*`, not a number"):
            first("cma-es", sigma=sigma)
    with pytest.raises(TypeError, match="option `sigma` is dict; an option is a string, a number"):
        first("cma-es", sigma={})
    with pytest.raises(ValueError, match=r"setting `population` of cma-es is `2\.5`, not a whole"):
        first("cma-es", population=2.5)


def test_rng_is_a_seed_or_a_generator() -> None:
    def first(rng: Any) -> Any:
        return racecars.Optimizer(BOUNDS, rng=rng, method="race-cars").ask().x

    np.testing.assert_array_equal(first(5), first(5))
    np.testing.assert_array_equal(first(np.random.default_rng(5)), first(np.random.default_rng(5)))
    assert (first(None) != first(None)).any()
    with pytest.raises(ValueError, match="rng is -1"):
        first(-1)


def test_an_exhausted_space_says_so() -> None:
    optimizer = racecars.Optimizer({"a": range(3), "b": bool}, rng=1)
    assert optimizer.ask(100).shape == (6, 2)
    with pytest.raises(racecars.SpaceExhausted, match="all 6 points"):
        optimizer.ask()


def test_damaged_saves_are_refused(tmp_path: Path) -> None:
    optimizer = racecars.Optimizer(BOUNDS, rng=1)
    saved = bytearray(optimizer.to_bytes())
    saved[-1] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        racecars.Optimizer.from_bytes(bytes(saved))
    with pytest.raises(ValueError, match="another space"):
        racecars.Optimizer.from_bytes(optimizer.to_bytes(), [(0, 1)])


def test_choices_of_any_kind_come_back_with_the_space() -> None:
    space = {"f": [np.sin, np.cos], "x": (0, 1)}
    optimizer = racecars.Optimizer(space, rng=1)
    loaded = racecars.Optimizer.from_bytes(optimizer.to_bytes(), space)
    assert loaded.ask().params["f"] in (np.sin, np.cos)
    assert pickle.loads(pickle.dumps(optimizer)).ask().params["x"] == optimizer.ask().params["x"]


@pytest.mark.parametrize("method", ["race-cars", "cma-es"])
def test_threads_may_share_one(method: str) -> None:
    optimizer = racecars.Optimizer([(-1, 1)] * 40, method, rng=1)

    def work() -> None:
        for _ in range(200):
            candidate = optimizer.ask()
            optimizer.tell(candidate, sphere(candidate.x))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (optimizer.told, optimizer.pending) == (800, 0)
