"""Trials as data, `maximize`, points taken over, and spaces by name."""

from __future__ import annotations

import builtins
import math
import pickle
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import BOUNDS, SPACE, loss, sphere

import racecars
from racecars import _core


def test_trials_have_every_point_value_and_time() -> None:
    res = racecars.minimize(sphere, BOUNDS, maxfev=200, rng=1)
    trials = res.trials
    assert (len(trials), trials.total, trials.stride) == (200, 200, 1)
    np.testing.assert_array_equal(trials.value, res.history)
    np.testing.assert_array_equal(trials.value, [sphere(x) for x in trials.x])
    assert (np.diff(trials.time) >= 0).all() and 0 < trials.time[-1] <= res.time
    assert (trials.seconds >= 0).all() and set(trials.outcome) == {"value"}
    best = trials[int(trials.value.argmin())]
    np.testing.assert_array_equal(best.x, res.x)
    assert best.value == res.fun and best.params == {}
    assert trials[-1].number == 199 and [trial.number for trial in trials[3:6]] == [3, 4, 5]
    good = trials[trials.value < 1]
    assert isinstance(good, racecars.Trials) and (good.value < 1).all()
    with pytest.raises(IndexError, match="trial 200 is not there; 200 trials are"):
        trials[200]
    again = pickle.loads(pickle.dumps(trials))
    np.testing.assert_array_equal(again.x, trials.x)
    assert list(again.outcome) == list(trials.outcome) and repr(again) == "<Trials: 200>"


@pytest.mark.filterwarnings("ignore:evaluation .* failed:RuntimeWarning")
@pytest.mark.parametrize("way", [{}, {"workers": 2}, {"vectorized": True}])
def test_trials_say_what_came_of_each_point(way: Any) -> None:
    def one(x: Any) -> Any:
        if x[0] > 3:
            raise ValueError("too far")
        return math.nan if x[0] < -3 else sphere(x)

    def columns(x: Any) -> Any:
        values = (x**2).sum(axis=0)
        return np.where(np.abs(x[0]) > 3, math.nan, values)

    fun = columns if way.get("vectorized") else one
    limit = {"constraints": lambda x: x[1] - 4}
    res = racecars.minimize(fun, BOUNDS, maxfev=300, rng=1, method="random", **limit, **way)
    kinds = {kind: int((res.trials.outcome == kind).sum()) for kind in set(res.trials.outcome)}
    assert kinds.get("error", 0) + kinds["nan"] == res.n_failed > 0
    assert kinds["infeasible"] == res.n_infeasible > 0
    for trial in res.trials:
        assert (trial.violation > 0) == (trial.outcome == "infeasible")
        assert (trial.outcome == "value") == math.isfinite(trial.value)
        if trial.outcome == "infeasible":
            assert trial.violation == pytest.approx(trial.x[1] - 4)
    assert {failure.number for failure in res.errors} <= set(res.trials.number)


def test_workers_and_times_are_in_the_trials() -> None:
    def slow(x: Any) -> float:
        time.sleep(0.02)
        return sphere(x)

    res = racecars.minimize(slow, BOUNDS, maxfev=20, rng=1, workers=2)
    assert set(res.trials.worker) == {0, 1} and (res.trials.seconds >= 0.02).all()
    ordered = racecars.minimize(slow, BOUNDS, maxfev=20, rng=1, workers=2, deterministic=True)
    np.testing.assert_array_equal(ordered.trials.number, np.arange(20))
    np.testing.assert_array_equal(ordered.trials.value, [sphere(x) for x in ordered.trials.x])
    threads = racecars.minimize(slow, BOUNDS, maxfev=8, rng=1, workers="threads")
    assert set(threads.trials.worker) == {-1}


def test_many_trials_are_thinned_and_say_so() -> None:
    n, count = _core.MAX_COORDINATES // 8, 20
    space = {"w": racecars.Real(-1, 1, count=n)}
    res = racecars.minimize(
        lambda p: float(p["w"][0]), space=space, maxfev=count, rng=1, method="random"
    )
    trials = res.trials
    assert (trials.total, trials.stride, len(trials)) == (count, 4, 5)
    assert list(trials.number) == [0, 4, 8, 12, 16]
    np.testing.assert_array_equal(trials.value, res.history[::4])
    np.testing.assert_array_equal(trials.value, trials.x[:, 0])
    assert repr(trials) == "<Trials: 5 of 20, every 4th>"

    def slow(x: Any) -> float:
        time.sleep(1e-4)
        return float(x[0])

    # The room for evaluations that take no time is not that of others.
    n = _core.MAX_SHORT_COORDINATES // 100
    assert racecars.minimize(slow, [(-1, 1)] * n, maxfev=200, rng=1).trials.stride == 1


def test_a_data_frame_has_a_row_per_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    res = racecars.minimize(loss, space=SPACE, maxfev=60, rng=1)
    table = res.to_dataframe()
    assert list(table)[:6] == ["lr", "depth", "act", "w[0]", "w[1]", "value"]
    assert table.index.name == "number" and len(table) == 60
    row = table.loc[int(table["value"].idxmin())]
    assert (row["value"], row["act"], row["depth"]) == (
        res.fun,
        res.params["act"],
        res.params["depth"],
    )
    assert table["depth"].dtype.kind == "i" and list(table["w[1]"]) == list(res.trials.x[:, 4])
    plain = racecars.minimize(sphere, BOUNDS, maxfev=10, rng=1).to_dataframe()
    assert list(plain)[:4] == ["x[0]", "x[1]", "x[2]", "value"]
    named = racecars.minimize(lambda p: p["value"], space={"value": (0.0, 1.0)}, maxfev=10, rng=1)
    columns = named.to_dataframe()
    assert list(columns["value"]) == list(columns["trial_value"]) == list(named.history)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas: pip install 'racecars\[dataframe\]'"):
        res.to_dataframe()


def test_pandas_and_matplotlib_are_not_imported_before_they_are_needed(script: Any) -> None:
    ran = script(
        """
        import sys, racecars
        res = racecars.minimize(lambda x: float(x[0]), [(0, 1)], maxfev=20, rng=1)
        assert len(res.trials.x) == 20
        racecars.plot
        print(sorted({"pandas", "matplotlib"} & set(sys.modules)))
        """
    )
    out, error = ran.communicate(timeout=600)
    assert out.strip() == "[]", error


@pytest.mark.parametrize("way", [{}, {"workers": 2}, {"deterministic": True, "workers": 2}])
def test_maximize_is_minimize_with_the_users_sign(way: Any) -> None:
    low = racecars.minimize(sphere, BOUNDS, maxfev=300, rng=1, x0=[1, 1, 1])
    if not way:
        high = racecars.maximize(lambda x: -sphere(x), BOUNDS, maxfev=300, rng=1, x0=[1, 1, 1])
        np.testing.assert_array_equal(high.history, -low.history)
        np.testing.assert_array_equal(high.best_so_far, -low.best_so_far)
        np.testing.assert_array_equal(high.x, low.x)
        assert (high.fun, high.optimizer.best.fun) == (-low.fun, low.fun)
    best: list[float] = []

    def callback(intermediate_result: Any) -> None:
        best.append(intermediate_result.fun)

    res = racecars.maximize(
        lambda x: 3 - sphere(x), BOUNDS, target=2.5, rng=1, callback=callback, **way
    )
    assert res.stop_reason == "target" and res.fun >= 2.5 and best == sorted(best)
    known = [([0, 0, 0], 700.0), ([1, 1, 1], -900.0)]
    assert racecars.maximize(sphere, BOUNDS, known=known, maxfev=1, rng=1).fun == 700
    with pytest.warns(RuntimeWarning, match="failed"):
        failed = racecars.maximize(lambda x: math.nan, BOUNDS, maxfev=3, rng=1)
    assert failed.fun == -math.inf


def test_a_checkpoint_of_the_other_goal_is_refused(tmp_path: Path) -> None:
    ways: Any = {"maxfev": 10, "rng": 1, "checkpoint": tmp_path / "run"}
    racecars.maximize(sphere, BOUNDS, **ways)
    with pytest.raises(ValueError, match="of goal to maximize, not to minimize"):
        racecars.minimize(sphere, BOUNDS, **ways)
    res = racecars.maximize(sphere, BOUNDS, **{**ways, "maxfev": 20})
    assert res.nfev == 20 and list(res.trials.number) == list(range(10, 20))
    assert res.fun == res.history.max()


def test_start_points_may_leave_parameters_out() -> None:
    space = {**SPACE, "size": racecars.Choice(["s", "m", "l"], ordered=True), "bias": bool}
    asked: list[dict[str, Any]] = []

    def fun(p: dict[str, Any]) -> float:
        asked.append(p)
        return loss(p)

    racecars.minimize(fun, space=space, x0=[{"depth": 7}, {"act": "tanh"}], maxfev=4, rng=1)
    first, second = asked[:2]
    assert first["lr"] == pytest.approx(1e-3) and list(first["w"]) == [0, 0]
    assert (first["depth"], first["act"], first["size"], first["bias"]) == (7, "relu", "m", False)
    assert (second["depth"], second["act"]) == (4, "tanh")
    asked.clear()
    known = [({**first, "depth": 2, "size": "l"}, 3.0), ({**first, "depth": 3}, 5.0)]
    for run, depth, size in ((racecars.minimize, 2, "l"), (racecars.maximize, 3, "m")):
        run(fun, space=space, x0={"act": "tanh"}, known=known, maxfev=1, rng=1)
        last = asked[-1]
        assert (last["depth"], last["act"], last["size"]) == (depth, "tanh", size)
    with pytest.raises(ValueError, match="no coordinate is named `dept`"):
        racecars.minimize(fun, space=space, x0={"dept": 7}, maxfev=4)


def test_trials_are_taken_over_by_name() -> None:
    first = racecars.minimize(loss, space=SPACE, maxfev=100, rng=1)
    same = racecars.minimize(loss, space=SPACE, maxfev=1, rng=2, from_=first)
    assert same.optimizer.told == 101 and same.fun <= first.fun and same.nfev == 1
    assert len(same.trials) == 1
    # Narrower, wider, one gone, one more.
    other: Any = {"lr": (1e-4, 1.0, "log"), "act": ["tanh", "relu", "gelu"], "m": (0.0, 1.0)}
    other["depth"] = range(3, 20)
    inside = (first.trials.x[:, 0] >= 1e-4) & (first.trials.x[:, 1] >= 3)
    assert 0 < inside.sum() < 100
    told: list[Any] = []
    with pytest.raises(
        ValueError, match="from_: parameter `m` is new: the trials to take over do not"
    ):
        racecars.minimize(told.append, space=other, maxfev=1, from_=first)
    warned = f"from_: {100 - inside.sum()} of 100 trials are outside the space"
    with pytest.warns(RuntimeWarning, match=warned):
        res = racecars.minimize(
            lambda p: 1e9, space=other, maxfev=1, from_=first.trials, assume={"m": 0.25}, rng=1
        )
    assert res.optimizer.told == 1 + inside.sum()
    best = first.trials[inside]
    wanted = best[int(best.value.argmin())]
    assert res.fun == wanted.value
    assert res.params["m"] == 0.25 and res.params["act"] == wanted.params["act"]
    assert res.params["lr"] == pytest.approx(wanted.params["lr"])
    with pytest.raises(ValueError, match="from_ is int, not a result of minimize"):
        racecars.minimize(sphere, BOUNDS, from_=3)
    with pytest.raises(ValueError, match="assume: `k` is no parameter; there are lr, act"):
        racecars.minimize(loss, space=other, from_=first, assume={"k": 1})
    with pytest.raises(ValueError, match="has an effect only with from_"):
        racecars.minimize(loss, space=other, assume={"m": 1})


@pytest.mark.filterwarnings("ignore:evaluation .* failed:RuntimeWarning")
def test_violations_are_taken_over_and_failures_are_not() -> None:
    def fun(x: Any) -> Any:
        return math.nan if x[0] > 0 else racecars.Infeasible(1.0) if x[0] < -2 else sphere(x)

    first = racecars.minimize(fun, BOUNDS, maxfev=50, rng=1)
    two = racecars.minimize(fun, BOUNDS, maxfev=50, rng=2)
    res = racecars.minimize(fun, BOUNDS, maxfev=1, rng=1, from_=[first, two.trials])
    failed = first.n_failed + two.n_failed
    assert failed > 0 and first.n_infeasible > 0 and res.optimizer.told == 101 - failed
    assert (res.nfev, res.fun) == (1, min(first.fun, two.fun))


def test_pairs_of_integers_in_a_space_by_name_warn() -> None:
    def space(**entries: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            racecars.Optimizer(entries)
        assert all(each.filename == __file__ for each in caught)
        return [str(each.message) for each in caught]

    (text,) = space(n=(5, 40), x=(0.0, 1.0))
    assert text.startswith("`n` is a pair of integers, which means every float in between.")
    assert "'n': range(5, 41) or racecars.Integer(5, 40); for floats (5.0, 40.0)" in text
    (text,) = space(n=(5, 40), m=(np.int64(1), np.int64(3)))
    assert text.startswith("`n`, `m` are pairs of integers")
    assert (
        space(a=(0, 1), b=(-5, 5), c=(1, 10, "log"), d=(5.0, 40), e=range(5, 41), f=[5, 40]) == []
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        racecars.Optimizer([(5, 40)] * 3)


def test_vectorized_functions_of_a_space_by_name_get_arrays() -> None:
    space = {**SPACE, "k": [3, 1, 2], "fast": bool}
    shapes: list[Any] = []

    def fun(p: dict[str, Any]) -> Any:
        shapes.append({name: (array.shape, array.dtype.kind) for name, array in p.items()})
        far = np.abs(np.log10(p["lr"]) + 3) + (p["depth"] - 4) ** 2 + p["fast"] + p["k"]
        return far + (p["act"] == "relu") + (p["w"] ** 2).sum(axis=0)

    res = racecars.minimize(fun, space=space, maxfev=100, rng=1, vectorized=True)
    assert shapes[0] == {
        "lr": ((32,), "f"),
        "depth": ((32,), "i"),
        "act": ((32,), "O"),
        "w": ((2, 32), "f"),
        "k": ((32,), "i"),
        "fast": ((32,), "b"),
    }
    p = res.params
    assert res.fun == pytest.approx(loss(p) + p["k"] + p["fast"]) and res.nfev == 100
    limited = racecars.minimize(
        fun,
        space=space,
        constraints=lambda p: p["depth"] - 3,
        maxfev=100,
        rng=1,
        vectorized=True,
    )
    assert limited.params["depth"] <= 3 and limited.nfev == 100 and limited.n_infeasible > 0
    with pytest.raises(ValueError, match=r"shape \(\) for 32 points, in arrays by name"):
        racecars.minimize(lambda p: p["lr"].sum(), space=space, vectorized=True)


def test_patience_has_a_tolerance() -> None:
    def slow_descent(x: Any, at: list[int] = [0]) -> float:  # noqa: B006
        at[0] += 1
        return 10.0 - 1e-3 * at[0]

    ways: Any = {"patience": 50, "maxfev": 400, "rng": 1, "noise": "no"}
    assert racecars.minimize(slow_descent, BOUNDS, **ways).nfev == 400
    res = racecars.minimize(slow_descent, BOUNDS, patience_tolerance=1.0, **ways)
    assert (res.stop_reason, res.nfev) == ("no-improvement", 51)
    with pytest.raises(ValueError, match="patience_tolerance is -1; it must be 0 or more"):
        racecars.minimize(sphere, BOUNDS, patience=5, patience_tolerance=-1)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ("maxiter", "it is called `maxfev` here"),
        ("n_trials", "it is called `maxfev` here"),
        ("max_evals", "it is called `maxfev` here"),
        ("seed", "it is called `rng` here"),
        ("random_state", "it is called `rng` here"),
        ("n_jobs", "it is called `workers` here"),
        ("maxfevv", "did you mean `maxfev`?"),
        ("populatoin", "did you mean `population`?"),
        ("direction", "racecars.maximize maximizes"),
        ("zzz", "there are args, "),
    ],
)
def test_wrong_keywords_are_answered_with_the_right_ones(wrong: str, text: str) -> None:
    for run in (racecars.minimize, racecars.maximize):
        with pytest.raises(TypeError) as caught:
            run(sphere, BOUNDS, **{wrong: 3})  # type: ignore[arg-type]
        assert f"there is no keyword `{wrong}`; " in str(caught.value)
        assert text in str(caught.value)


def test_an_import_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    res = racecars.minimize(sphere, BOUNDS, maxfev=5, rng=1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert builtins.callable(res.plot)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'racecars\[plot\]'"):
        res.plot()
