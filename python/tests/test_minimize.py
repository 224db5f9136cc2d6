"""`minimize` in one process."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import racecars

BOUNDS = [(-5.0, 5.0)] * 5


def sphere(x: Any) -> float:
    return float((x**2).sum())


@pytest.mark.parametrize("method", racecars.METHODS)
def test_every_method_minimizes(method: str) -> None:
    # Some methods begin at the centre.
    def fun(x: Any) -> float:
        return sphere(x - 0.7)

    res = racecars.minimize(fun, BOUNDS, maxfev=600, rng=1, method=method)
    assert (res.nfev, res.nit, res.success, res.status) == (600, 600, True, 0)
    assert res.fun == fun(res.x) == res.history.min() == res.best_so_far[-1]
    # `quadratic` solves this in 12 evaluations.
    assert res.fun < res.history[:10].min()


def test_the_loop_of_the_core_and_ask_and_tell_agree() -> None:
    res = racecars.minimize(sphere, BOUNDS, maxfev=300, rng=4)
    optimizer = racecars.Optimizer(BOUNDS, budget=300, rng=4)
    for value in res.history:
        candidate = optimizer.ask()
        assert sphere(candidate.x) == value
        optimizer.tell(candidate, value)


def test_values_of_any_numeric_type() -> None:
    for cast in (np.float32, int, lambda v: np.array(v), lambda v: np.array([v]), np.float64):
        res = racecars.minimize(lambda x, cast=cast: cast(sphere(x)), BOUNDS, maxfev=30, rng=1)
        assert (res.n_failed, res.nfev) == (0, 30)


class Unconvertible:
    """Like a tensor of PyTorch that has a gradient."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("has a gradient")


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "fun returned NoneType"),
        (math.nan, "fun returned nan"),
        (-math.inf, "fun returned -inf"),
        ("x", "fun returned str"),
        (np.zeros(3), r"fun returned ndarray of shape \(3,\)"),
        (10**400, r"fun returned int, not a number \(OverflowError: "),
        (Unconvertible(), r"not a number \(RuntimeError: has a gradient\)"),
        (np.ma.masked, "fun returned a masked value"),
        (np.ma.array([1.0, 2.0], mask=True).mean(), "fun returned a masked value"),
        (np.ma.array(5.0, mask=True), "fun returned a masked value"),
        (np.timedelta64(3, "s"), "fun returned timedelta64, not a number"),
        (np.datetime64("2020-01-01"), "fun returned datetime64, not a number"),
        (np.array(["3"]), "fun returned ndarray of shape .*, not a number"),
        (np.array(["3"], dtype=object), "fun returned ndarray of shape .*, not a number"),
        (np.complex128(1 + 1j), "fun returned complex128, not a number"),
    ],
)
def test_what_is_no_value_is_a_failure(returned: Any, words: str) -> None:
    with pytest.warns(RuntimeWarning, match=words):
        res = racecars.minimize(lambda x: returned, BOUNDS, maxfev=5, rng=1)
    assert (res.n_failed, res.success, res.status, res.fun) == (5, False, -2, math.inf)


def test_masked_columns_are_failures() -> None:
    def fun(columns: Any) -> Any:
        return np.ma.array((columns**2).sum(axis=0), mask=columns[0] < 1)

    with pytest.warns(RuntimeWarning, match="fun returned a masked value"):
        res = racecars.minimize(fun, BOUNDS, maxfev=100, rng=1, vectorized=True)
    assert res.n_failed > 0 and res.x[0] >= 1 and res.fun == pytest.approx(sphere(res.x))


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (np.ma.masked, "a constraint returned NaN or a masked value"),
        (np.ma.array([-1.0, -1.0], mask=[False, True]), "a constraint returned NaN or a masked"),
        (np.datetime64("1960-01-01"), "TypeError: values of type .*, which are no numbers"),
    ],
)
def test_constraints_without_numbers_are_failures(returned: Any, words: str) -> None:
    constraint = {"constraints": lambda x: returned}
    with pytest.warns(RuntimeWarning, match=words):
        res = racecars.minimize(sphere, BOUNDS, maxfev=5, rng=1, **constraint)
    assert (res.n_failed, res.success) == (5, False)


def test_masked_constraints_of_columns_are_failures() -> None:
    def constraint(columns: Any) -> Any:
        return np.ma.array(-np.ones(columns.shape[1]), mask=columns[0] < 1)

    def fun(columns: Any) -> Any:
        return (columns**2).sum(axis=0)

    with pytest.warns(RuntimeWarning, match="a constraint returned NaN or a masked value"):
        res = racecars.minimize(
            fun, BOUNDS, maxfev=100, rng=1, vectorized=True, constraints=constraint
        )
    assert res.n_failed > 0 and res.x[0] >= 1


def test_exceptions_are_kept_shown_and_counted() -> None:
    def fun(x: Any) -> float:
        if x[0] > 0:
            raise ValueError("to the right")
        return sphere(x)

    with pytest.warns(RuntimeWarning, match="ValueError: to the right") as shown:
        res = racecars.minimize(fun, BOUNDS, maxfev=200, rng=1)
    assert len(shown) == 1 and shown[0].filename == __file__
    assert res.n_failed == np.isnan(res.history).sum() > 0
    failure = res.errors[0]
    assert isinstance(failure.error, ValueError) and failure.x[0] > 0
    assert "in fun" in failure.traceback and "to the right" in res.message
    with pytest.raises(ValueError, match="to the right"):
        racecars.minimize(fun, BOUNDS, maxfev=200, rng=1, on_error="raise")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise KeyError("text")

    __repr__ = __str__

    def __bool__(self) -> bool:
        return False


@pytest.mark.parametrize("way", [{}, {"workers": 2}, {"workers": "threads"}, {"vectorized": True}])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Unprintable(), "Unprintable: its text cannot be shown, since __str__ raised KeyError"),
        (ValueError(os.fsdecode(b"no \xff")), r"ValueError: no \udcff"),
    ],
)
def test_exceptions_that_cannot_be_shown(way: Any, error: Exception, text: str) -> None:
    def fun(x: Any) -> float:
        raise error

    with pytest.warns(RuntimeWarning, match="evaluation 0 failed"):
        res = racecars.minimize(fun, BOUNDS, maxfev=10, rng=1, **way)
    assert (res.n_failed, res.errors[0].text) == (10, text)
    assert type(error).__name__ in str(res.errors) and str(res)
    with pytest.raises(type(error)):
        racecars.minimize(fun, BOUNDS, maxfev=10, rng=1, on_error="raise", **way)


def test_retries() -> None:
    calls: list[int] = []

    def fun(x: Any) -> float:
        calls.append(1)
        if len(calls) % 3:
            raise OSError("not now")
        return sphere(x)

    res = racecars.minimize(fun, BOUNDS, maxfev=10, rng=1, retries=2)
    assert (res.n_failed, res.nfev, len(calls)) == (0, 10, 30)


def test_dict_spaces_call_with_dicts() -> None:
    space = {"lr": (1e-5, 1e-1, "log"), "depth": range(1, 9), "act": ["relu", "tanh"]}

    def loss(p: dict[str, Any], shift: float) -> float:
        return abs(math.log10(p["lr"]) + 3) + (p["depth"] - shift) ** 2 + (p["act"] == "relu")

    start = {"lr": 1e-2, "depth": 8, "act": "relu"}
    res = racecars.minimize(loss, space=space, args=(4,), x0=start, maxfev=400, rng=1)
    assert (res.params["depth"], res.params["act"]) == (4, "tanh")
    assert res.history[0] == loss(start, 4)
    more = racecars.minimize(loss, args=(4,), method=res.optimizer, maxfev=100)
    assert more.params["depth"] == 4 and more.optimizer.told == 500


def test_x0_comes_first_and_counts() -> None:
    starts = np.array([[1.0] * 5, [2.0] * 5])
    res = racecars.minimize(sphere, BOUNDS, x0=starts, maxfev=10, rng=1)
    np.testing.assert_array_equal(res.history[:2], [5, 20])
    assert res.nfev == 10
    with pytest.raises(ValueError, match=r"x0 has shape \(3,\); it takes \(5,\)"):
        racecars.minimize(sphere, BOUNDS, x0=[0, 0, 0])
    with pytest.raises(ValueError, match="9 is not a number from -5 to 5"):
        racecars.minimize(sphere, BOUNDS, x0=[9] * 5)


def test_stop_rules() -> None:
    res = racecars.minimize(sphere, BOUNDS, target=5.0, rng=1)
    assert res.status == 1 and res.fun <= 5 and (res.history[:-1] > 5).all()
    start = time.monotonic()
    res = racecars.minimize(sphere, BOUNDS, maxtime=0.2, rng=1)
    assert res.status == 2 and res.nfev > 0 and time.monotonic() - start >= 0.2
    res = racecars.minimize(sphere, BOUNDS, patience=30, rng=1)
    assert (res.status, res.stop_reason) == (5, "no-improvement")
    assert (np.diff(res.best_so_far[-31:]) == 0).all()
    # One point is evaluated twice to detect noise.
    for noise, evaluations in (("detect", 8), ("no", 7)):
        res = racecars.minimize(lambda p: p["a"], space={"a": range(7)}, noise=noise, rng=1)
        assert (res.status, res.nfev, res.fun, res.success) == (4, evaluations, 0, True)
    assert racecars.minimize(sphere, BOUNDS, rng=1).nfev == 1000


def test_known_points_are_learned_from_and_not_evaluated() -> None:
    known = [(np.zeros(5), 0.0), ([1.0] * 5, 5.0), ([2.0] * 5, racecars.Infeasible(1.0))]
    res = racecars.minimize(sphere, BOUNDS, known=known, maxfev=10, rng=1)
    assert (res.fun, res.nfev, len(res.history), res.n_infeasible) == (0.0, 10, 10, 0)
    assert res.history.min() > 0 and res.optimizer.told == 13
    res = racecars.minimize(sphere, BOUNDS, known=known, target=0.0)
    assert (res.stop_reason, res.nfev) == ("target", 0)
    space = {"n": range(5), "c": ["a", "b"]}
    known = [({"n": n, "c": "a"}, n) for n in range(5)]
    res = racecars.minimize(lambda p: p["n"] + 0.5, space=space, known=known, noise="no", rng=1)
    assert (res.params, res.fun, res.nfev) == ({"n": 0, "c": "a"}, 0.0, 5)
    bad: Any
    for bad, words in (
        ("x", r"known\[0\] is not a pair"),
        ([(0.0, 1.0)], r"known\[0\] has shape \(\); it takes \(5,\)"),
        ([([9.0] * 5, 1.0)], "9 is not a number from -5 to 5"),
    ):
        with pytest.raises(ValueError, match=words):
            racecars.minimize(sphere, BOUNDS, known=bad)


def test_an_optimizer_in_use_can_be_looked_at_and_is_given_back() -> None:
    optimizer = racecars.Optimizer(BOUNDS, rng=1)
    told: list[int] = []

    def callback(intermediate_result: Any) -> None:
        told.append(optimizer.told)
        assert optimizer.best is not None and racecars.Optimizer.from_bytes(optimizer.to_bytes())
        with pytest.raises(RuntimeError, match="in use by `minimize`"):
            optimizer.ask()
        with pytest.raises(RuntimeError, match="in use by `minimize`"):
            racecars.minimize(sphere, BOUNDS, method=optimizer)

    res = racecars.minimize(sphere, BOUNDS, method=optimizer, maxfev=5, callback=callback)
    assert res.optimizer is optimizer and told == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="the target is NaN"):
        racecars.minimize(sphere, BOUNDS, method=optimizer, target=math.nan)
    with pytest.raises(ZeroDivisionError):
        racecars.minimize(lambda x: 1 / 0, BOUNDS, method=optimizer, on_error="raise")
    optimizer.tell(optimizer.ask(), 0.0)
    assert optimizer.told == 6


def test_heavy_steps_release_the_interpreter() -> None:
    over = threading.Event()
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while not over.wait(1e-4):
            ticks += 1

    def interacting(x: Any) -> float:
        return float((np.cumsum(x - 1) ** 2).sum())

    def ticks_during(method: str) -> tuple[int, Any]:
        before = ticks
        res = racecars.minimize(interacting, [(-5, 5)] * 32, maxfev=6400, rng=1, method=method)
        return ticks - before, res

    thread, interval = threading.Thread(target=tick), sys.getswitchinterval()
    try:
        # So the other thread gets the interpreter only where it is released.
        sys.setswitchinterval(1000.0)
        thread.start()
        light, _ = ticks_during("race-cars")
        heavy, res = ticks_during("auto")
    finally:
        sys.setswitchinterval(interval)
        over.set()
        thread.join()
    assert "cma-es" in {member["name"] for member in res.portfolio["members"]}
    assert light < 20 < heavy


def test_vectorized_columns_are_points() -> None:
    shapes: list[tuple[int, ...]] = []

    def fun(columns: Any) -> Any:
        shapes.append(columns.shape)
        return (columns**2).sum(axis=0)

    res = racecars.minimize(fun, BOUNDS, maxfev=100, rng=1, vectorized=True)
    assert res.nfev == 100 and shapes == [(5, 32)] * 3 + [(5, 4)]
    assert res.fun == pytest.approx(sphere(res.x))
    with pytest.raises(ValueError, match=r"fun returned shape \(5,\) for 32 points"):
        racecars.minimize(lambda c: c.sum(axis=1), BOUNDS, vectorized=True)


def test_integrality() -> None:
    res = racecars.minimize(
        lambda x: sphere(x - 1.3), BOUNDS, integrality=[1, 1, 0, 0, 0], maxfev=500, rng=1
    )
    assert list(res.x[:2]) == [1, 1]


def test_constraints_of_our_own() -> None:
    constraint = [lambda x: 1 - x[0], {"type": "eq", "fun": lambda x: 0.0}]
    calls: list[Any] = []

    def fun(x: Any) -> float:
        calls.append(x)
        return sphere(x)

    res = racecars.minimize(fun, BOUNDS, constraints=constraint, maxfev=800, rng=1)
    assert res.x[0] >= 1 and res.fun < 3 and res.maxcv == 0
    # Points that violate constraints cost no budget.
    assert all(x[0] >= 1 for x in calls) and res.nfev == len(calls) == 800 < res.nit
    assert res.n_infeasible == res.nit - 800
    # The optimum is where a constraint ends.
    assert abs(res.x[0] - 1) < 1e-6 and res.fun < 1 + 1e-6
    vector = racecars.minimize(
        lambda c: (c**2).sum(axis=0),
        BOUNDS,
        constraints=constraint[:1],
        maxfev=800,
        rng=1,
        vectorized=True,
    )
    assert vector.x[0] >= 1 and vector.n_infeasible > 0
    never = racecars.minimize(sphere, BOUNDS, constraints=lambda x: 1.0 + abs(x[0]), maxfev=50)
    assert (never.success, never.nfev, never.status) == (False, 0, -2)
    # The draws are bounded, too.
    assert 50 < never.nit <= 50 * 101
    assert never.maxcv >= 1 and "No feasible point" in never.message
    with pytest.raises(ValueError, match=r"constraints\[0\]: a dict takes"):
        racecars.minimize(sphere, BOUNDS, constraints={"type": "x"})


def test_constraints_that_the_evaluation_measures() -> None:
    def fun(x: Any) -> Any:
        return racecars.Measured(float((x - 3).sum()), [1e-3 * (float((x**2).sum()) - 4), -1.0])

    res = racecars.minimize(fun, BOUNDS, maxfev=400, rng=1)
    n = len(BOUNDS)
    assert 0 <= res.fun + 3 * n + 2 * n**0.5 < 1e-5
    assert res.n_infeasible > 0 and res.nfev == res.nit == 400
    assert "sqp" in [member["name"] for member in res.portfolio["members"]]
    with pytest.warns(RuntimeWarning, match="no value for a feasible point"):
        racecars.minimize(lambda x: racecars.Measured(None, [-1.0]), BOUNDS, maxfev=3, rng=1)
    with pytest.warns(RuntimeWarning, match="a constraint returned NaN"):
        racecars.minimize(lambda x: racecars.Measured(1.0, [np.nan]), BOUNDS, maxfev=3, rng=1)


def test_a_value_may_come_with_a_violation() -> None:
    def fun(x: Any) -> Any:
        value, by = float(x.sum()), max(0.0, 4.0 - float((x**2).sum()))
        return racecars.Infeasible(by, value) if by else value

    res = racecars.minimize(fun, BOUNDS, maxfev=300, rng=1)
    assert res.n_infeasible > 0 and res.maxcv == 0


def test_fun_may_say_infeasible() -> None:
    def fun(x: Any) -> Any:
        return racecars.Infeasible(1 - x[0]) if x[0] < 1 else sphere(x)

    res = racecars.minimize(fun, BOUNDS, maxfev=500, rng=1)
    assert res.x[0] >= 1 and res.n_failed == 0 and res.nfev == 500


def test_callbacks() -> None:
    seen: list[Any] = []

    def callback(intermediate_result: Any) -> None:
        seen.append(intermediate_result)
        if intermediate_result.nfev == 20:
            raise StopIteration

    res = racecars.minimize(sphere, BOUNDS, callback=callback, rng=1)
    assert (res.nfev, res.status, [s.nfev for s in seen]) == (20, 3, list(range(1, 21)))
    bests = [s.fun for s in seen]
    np.testing.assert_array_equal(bests, res.best_so_far)
    points: list[Any] = []
    res = racecars.minimize(sphere, BOUNDS, callback=lambda xk: points.append(xk) or True, rng=1)
    assert res.nfev == 1 and points[0].shape == (5,)


def test_keyboard_interrupt_returns_the_best_so_far() -> None:
    def fun(x: Any) -> float:
        if len(done) == 50:
            raise KeyboardInterrupt
        done.append(1)
        return sphere(x)

    done: list[int] = []
    res = racecars.minimize(fun, BOUNDS, maxfev=1000, rng=1)
    assert (res.nfev, res.status, res.success) == (50, -1, False)
    assert res.fun == res.history.min()
    # A signal from outside, while the native loop runs.
    seen = threading.Event()
    killer = threading.Thread(target=lambda: seen.wait() and os.kill(os.getpid(), signal.SIGINT))
    killer.start()
    res = racecars.minimize(lambda x: seen.set() or 0.0, BOUNDS, maxfev=10**9, rng=1)
    killer.join()
    assert res.status == -1 and res.nfev > 0


def test_system_exit_is_not_swallowed() -> None:
    def fun(x: Any) -> float:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        racecars.minimize(fun, BOUNDS, maxfev=10)


def test_disp(capsys: pytest.CaptureFixture[str]) -> None:
    racecars.minimize(sphere, BOUNDS, maxfev=30, rng=1, disp=True)
    assert "30 evaluations, best " in capsys.readouterr().out


def test_notebooks_and_plots() -> None:
    import matplotlib

    matplotlib.use("Agg")
    res = racecars.minimize(sphere, BOUNDS, maxfev=30, rng=1)
    page = res._repr_html_()
    assert page.startswith("<table>") and "<svg" in page and "nfev" in page
    assert len(res.plot().lines) == 2


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"maxfev": 0}, "maxfev is 0"),
        ({"maxtime": 0}, "maxtime is 0"),
        ({"patience": 0}, "patience is 0"),
        ({"retries": -1}, "retries is -1"),
        ({"on_error": "x"}, "on_error is 'x'"),
        ({"resume": "x"}, "resume is 'x'"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": 2.5}, "workers is float, not an integer"),
        ({"workers": "threads", "timeout": 1}, "timeout needs workers that can be ended"),
        ({"timeout": 0}, "timeout is 0"),
        ({"target": math.nan}, "target is NaN"),
        ({"space": {"a": (0, 1)}}, "bounds and space are both given"),
        ({"lookahead": 0}, "lookahead is 0"),
    ],
)
def test_arguments_are_checked(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as refused:
        racecars.minimize(sphere, BOUNDS, **keywords)
    assert words in str(refused.value)


def test_no_warning_without_a_reason() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        racecars.minimize(sphere, BOUNDS, maxfev=50, rng=1)
        racecars.minimize(sphere, BOUNDS, maxfev=50, rng=1, workers=2)


def test_auto_says_what_it_did_and_leaves_settings_to_race_cars(tmp_path: Path) -> None:
    res = racecars.minimize(sphere, [(-5, 5)] * 10, maxfev=1000, rng=1)
    assert res.optimizer.method == "auto" and res.fun < 1e-12
    members = {member["name"]: member["evaluations"] for member in res.portfolio["members"]}
    assert members["survey"] == 61 and sum(members.values()) == 1000
    tuned = racecars.minimize(
        sphere, [(-5, 5)] * 10, maxfev=100, rng=1, gamma=0.9, checkpoint=tmp_path / "run"
    )
    assert tuned.optimizer.method == "race-cars" and "portfolio" not in tuned


def test_the_luckiest_value_of_a_noisy_function_is_not_its_best() -> None:
    noise = np.random.default_rng(1)

    def noisy(x: np.ndarray) -> float:
        return float(np.sum(np.square(x - 1)) + noise.normal())

    def bias(**options: Any) -> float:
        runs = [
            racecars.minimize(noisy, [(-5, 5)] * 5, maxfev=600, rng=seed, **options)
            for seed in range(8)
        ]
        claims = [run.fun - float(np.sum(np.square(run.x - 1))) for run in runs]
        assert all("noise" in options or run.portfolio["noisy"] for run in runs)
        return abs(float(np.mean(claims)))

    assert bias() < 0.5 < bias(noise="no")
    with pytest.raises(
        ValueError, match="setting `noise` of auto is `maybe`, not detect, yes or no"
    ):
        racecars.minimize(noisy, [(-5, 5)], maxfev=5, noise="maybe")
    with pytest.raises(TypeError, match="race-cars has no setting `noise`; it has training_size"):
        racecars.minimize(noisy, [(-5, 5)], maxfev=5, noise="yes", gamma=0.9)
    with pytest.raises(TypeError, match="auto has no setting `gamma`; it has noise"):
        racecars.minimize(noisy, [(-5, 5)], maxfev=5, method="auto", gamma=0.9)
