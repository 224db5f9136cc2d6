"""`minimize(..., study=folder)`: the journal of a run, reports and plots."""

from __future__ import annotations

import json
import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from problems import BOUNDS, SPACE, loss, sphere

import racecars
from racecars import _core

matplotlib.use("Agg")


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def events(folder: Path) -> list[str]:
    return [next(iter(line)) for line in lines(folder)]


def same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one.history, other.history)
    np.testing.assert_array_equal(one.trials.x, other.trials.x)
    np.testing.assert_array_equal(one.x, other.x)
    assert (one.fun, one.nfev, one.nit, one.n_infeasible) == (
        other.fun,
        other.nfev,
        other.nit,
        other.n_infeasible,
    )


def test_a_study_changes_nothing_and_has_a_line_per_event(tmp_path: Path) -> None:
    plain = racecars.minimize(loss, space=SPACE, maxfev=80, rng=1, x0={"depth": 7})
    kept = racecars.minimize(
        loss, space=SPACE, maxfev=80, rng=1, x0={"depth": 7}, study=tmp_path / "s"
    )
    same(plain, kept)
    first, *rest, last = lines(tmp_path / "s")
    assert first["study"]["seed"] == 1 and first["study"]["budget"] == 80
    assert events(tmp_path / "s")[1:-1] == ["ask", "tell"] * 80
    assert last["stop"]["reason"] == "evaluations"
    values = [line["tell"]["outcome"]["value"] for line in rest if "tell" in line]
    assert values == list(kept.history)
    trials = racecars.read_study(tmp_path / "s")
    np.testing.assert_array_equal(trials.value, kept.history)
    np.testing.assert_allclose(trials.x, kept.trials.x, rtol=1e-12)
    assert trials[0].params["act"] == "relu"


@pytest.mark.parametrize(
    "way",
    [
        {},
        {"method": "race-cars"},
        {"method": "random", "constraints": lambda x: x[0] - 2},
        {"workers": 2, "deterministic": True},
        {"vectorized": True},
    ],
)
def test_a_study_is_resumed_as_if_it_had_not_stopped(way: Any, tmp_path: Path) -> None:
    def fun(x: Any) -> Any:
        return (x**2).sum(axis=0)

    # Planned with the same budget: what stops the first run is its callback.
    stop = {"callback": lambda x: len(told) >= 40 or told.append(x)}
    told: list[Any] = []
    ways = {"maxfev": 120, "rng": 3, **way}
    whole = racecars.minimize(fun, BOUNDS, **ways)
    first = racecars.minimize(fun, BOUNDS, study=tmp_path, **stop, **ways)
    assert first.stop_reason == "observer" and first.nit < 120
    second = racecars.minimize(fun, BOUNDS, study=tmp_path, **{**ways, "rng": 4})
    same(whole, second)
    assert "resume" in events(tmp_path)
    # A study that has used its budget does nothing, and with a larger one goes on.
    third = racecars.minimize(fun, BOUNDS, study=tmp_path, **ways)
    same(second, third)
    more = racecars.minimize(fun, BOUNDS, study=tmp_path, **{**ways, "maxfev": 130})
    assert more.nfev == 130
    np.testing.assert_array_equal(more.history[: whole.nit], whole.history)


@pytest.mark.parametrize("workers", ["workers=1", "workers=2, deterministic=True"])
def test_a_killed_run_resumes_with_what_it_knew(script: Any, tmp_path: Path, workers: str) -> None:
    text = f"""
        import racecars, time
        calls = open("calls", "a", buffering=1)
        def fun(x):
            calls.write("one\\n")
            time.sleep(0.005)
            return float(((x - 1) ** 2).sum())
        res = racecars.minimize(
            fun, [(-5, 5)] * 3, maxfev=150, rng=1, study="s", {workers})
        print(res.history.tolist())
    """
    journal = tmp_path / "s" / "journal.jsonl"
    for size in (40, 90):
        run = script(text)
        while not journal.exists() or journal.read_text().count('"tell"') < size:
            assert run.poll() is None, run.communicate()
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait()
    out, error = script(text).communicate(timeout=600)
    assert out, error
    way: Any = {"workers": 2, "deterministic": True} if "2" in workers else {}
    whole = racecars.minimize(
        lambda x: float(((x - 1) ** 2).sum()), [(-5, 5)] * 3, maxfev=150, rng=1, **way
    )
    assert json.loads(out) == whole.history.tolist()
    # Only what was under way is evaluated again.
    assert (tmp_path / "calls").read_text().count("one") <= 150 + 2 * 2
    assert len(racecars.read_study(tmp_path / "s")) == 150


@pytest.mark.filterwarnings("ignore:evaluation .* failed:RuntimeWarning")
def test_failures_violations_and_workers_are_in_the_journal(tmp_path: Path) -> None:
    def fun(x: Any) -> Any:
        time.sleep(0.002)
        if x[0] > 0:
            raise OSError("no")
        return racecars.Infeasible(2.0) if x[0] < -2 else sphere(x)

    ways: Any = {"rng": 1, "workers": 2, "constraints": lambda x: x[1] - 4, "method": "random"}
    res = racecars.maximize(fun, BOUNDS, maxfev=60, study=tmp_path, **ways)
    trials = racecars.read_study(tmp_path)
    assert list(trials.outcome) == list(res.trials.outcome) and trials.maximize
    assert {"error", "infeasible", "value"} == set(trials.outcome)
    np.testing.assert_array_equal(trials.violation, res.trials.violation)
    tells = [line["tell"] for line in lines(tmp_path) if "tell" in line]
    assert {tell["worker"] for tell in tells} == {0, 1}
    failed = next(tell for tell in tells if "failed" in tell["outcome"])
    assert "OSError: no" in failed["stderr"]
    again = racecars.maximize(fun, BOUNDS, maxfev=60, study=tmp_path, **ways)
    same(res, again)
    assert again.n_failed == res.n_failed


def test_known_points_and_those_taken_over_are_in_the_journal(tmp_path: Path) -> None:
    first = racecars.minimize(loss, space=SPACE, maxfev=30, rng=1, study=tmp_path / "a")
    ways: Any = {"maxfev": 10, "rng": 1, "known": [({**first.params, "depth": 1}, 50.0)]}
    two = racecars.minimize(loss, SPACE, study=tmp_path / "b", from_=tmp_path / "a", **ways)
    three = racecars.minimize(loss, SPACE, from_=first, **ways)
    np.testing.assert_allclose(two.history, three.history, rtol=1e-9)
    assert len(lines(tmp_path / "b")[0]["study"]["known"]) == 31
    # With a study, what it knew is taken over, too.
    four = racecars.minimize(loss, SPACE, maxfev=1, rng=1, from_=tmp_path / "b")
    assert four.optimizer.told == 1 + 10 + 31 and four.fun <= min(first.fun, two.fun)
    # They are not told again.
    more = racecars.minimize(
        loss, SPACE, study=tmp_path / "b", from_=tmp_path / "a", **{**ways, "maxfev": 12}
    )
    assert more.optimizer.told == 43 and list(more.history[:10]) == list(two.history)


def test_without_a_limit_a_study_plans_as_a_run_does(tmp_path: Path) -> None:
    ways: Any = {"patience": 40, "rng": 1}
    plain = racecars.minimize(sphere, BOUNDS, **ways)
    kept = racecars.minimize(sphere, BOUNDS, study=tmp_path, **ways)
    same(plain, kept)
    assert json.loads(_core.report_data(str(tmp_path)))["study"]["budget"] is None


def test_another_run_is_refused_in_words_of_this_package(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    with pytest.raises(FileNotFoundError, match="has no journal to resume from"):
        racecars.minimize(sphere, BOUNDS, study=folder, resume="must")
    racecars.minimize(sphere, BOUNDS, maxfev=20, rng=1, study=folder)
    for ways, text in (
        ({"bounds": [(-5, 6)] * 3}, "parameter `x` has another range"),
        ({"bounds": BOUNDS, "method": "cma-es"}, "algorithm is cma-es, but"),
    ):
        with pytest.raises(ValueError, match=text) as caught:
            racecars.minimize(sphere, maxfev=20, study=folder, **ways)  # type: ignore[arg-type]
        assert "study=" in str(caught.value) and "--" not in str(caught.value)
    with pytest.raises(ValueError, match="the goal is to maximize last, but"):
        racecars.maximize(sphere, BOUNDS, maxfev=20, study=folder)
    with pytest.raises(ValueError, match="study and checkpoint are both given"):
        racecars.minimize(sphere, BOUNDS, study=folder, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="study needs the name of a method"):
        racecars.minimize(sphere, study=folder, method=racecars.Optimizer(BOUNDS))
    anew = racecars.minimize(sphere, BOUNDS, maxfev=5, rng=2, study=folder, resume="never")
    assert anew.nit == 5 and len(racecars.read_study(folder)) == 5
    assert len(list(folder.glob("journal*.jsonl"))) == 2
    with pytest.raises(OSError, match="holds no study that has begun"):
        racecars.read_study(tmp_path)


def test_two_runs_on_one_folder_exclude_each_other(tmp_path: Path) -> None:
    refused: list[str] = []

    def fun(x: Any) -> float:
        if not refused:
            with pytest.raises(BlockingIOError) as caught:
                racecars.minimize(sphere, BOUNDS, maxfev=20, study=tmp_path)
            refused.append(str(caught.value))
        return sphere(x)

    racecars.minimize(fun, BOUNDS, maxfev=20, rng=1, study=tmp_path)
    assert "is running the study in" in refused[0]
    assert racecars.minimize(sphere, BOUNDS, maxfev=30, study=tmp_path).nit == 30


def test_a_journal_that_is_gone_ends_the_run_with_a_copy(tmp_path: Path) -> None:
    calls: list[Any] = []

    def fun(x: Any) -> float:
        calls.append(x)
        if len(calls) == 20:
            (tmp_path / "journal.jsonl").unlink()
        return sphere(x)

    with pytest.raises(ValueError, match=r"was deleted or moved during the run. A copy of it is"):
        racecars.minimize(fun, BOUNDS, maxfev=50, rng=1, study=tmp_path)
    (copy,) = tmp_path.glob("journal-*.jsonl")
    copy.rename(tmp_path / "journal.jsonl")
    whole = racecars.minimize(sphere, BOUNDS, maxfev=50, rng=1)
    same(whole, racecars.minimize(fun, BOUNDS, maxfev=50, study=tmp_path))
    # Only the evaluation whose outcome could not be written is made again.
    assert len(calls) == 51


def test_a_process_that_outlives_the_run_does_not_keep_the_study(
    script: Any, tmp_path: Path
) -> None:
    run = script(
        """
        import os, racecars, time
        def fun(x):
            if not os.path.exists("child"):
                child = os.fork()
                if child == 0:
                    time.sleep(600)
                    os._exit(0)
                with open("child.tmp", "w") as file:
                    file.write(str(child))
                os.rename("child.tmp", "child")
            time.sleep(0.01)
            return float(x[0])
        racecars.minimize(fun, [(-5, 5)] * 3, maxfev=1000, rng=1, study="s")
        """
    )
    while not (tmp_path / "child").exists():
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    child = int((tmp_path / "child").read_text())
    try:
        run.send_signal(signal.SIGKILL)
        run.wait()
        os.kill(child, 0)  # is there still
        res = racecars.minimize(sphere, BOUNDS, maxfev=1000, study=tmp_path / "s", patience=1)
        assert res.nit > 0
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_report_of_a_study_and_of_a_run_without_one(tmp_path: Path) -> None:
    kept = racecars.minimize(loss, space=SPACE, maxfev=80, rng=1, study=tmp_path / "s")
    assert kept.report() == tmp_path / "s" / "report.html"
    plain = racecars.minimize(loss, space=SPACE, maxfev=80, rng=1)
    for page in (kept.report(), plain.report(tmp_path / "page.html"), plain.report(show=False)):
        text = page.read_text()
        assert "<html" in text and '"told":80' in text and '"lr"' in text

    # The journal of the run without a study is that of one: its search is replayed.
    def data(trials: racecars.Trials) -> Any:
        folder, _keeper = trials._folder()
        return json.loads(_core.report_data(folder))

    ours, theirs = data(kept.trials), data(plain.trials)
    assert ours["parameters"] == theirs["parameters"]
    assert ours["portfolio"] == theirs["portfolio"] is not None
    assert data(plain.trials[:50])["state"]["told"] == 50


def test_plots_draw_what_the_trials_say(tmp_path: Path) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    space: Any = {**SPACE, "bias": bool, "units": racecars.Integer(8, 512, log=True)}
    kept = racecars.minimize(loss, space=space, maxfev=150, rng=6, study=tmp_path)
    high = racecars.maximize(lambda p: -loss(p), space=space, maxfev=150, rng=6)
    for source in (kept, high, kept.trials, tmp_path):
        bars = racecars.plot.importance(source)
        names = [label.get_text() for label in bars.get_yticklabels()]
        assert sorted(names) == sorted(kept.trials.space.coordinates)
        assert set(names[:3]) == {"lr", "depth", "act"}
        axes = racecars.plot.slices(source)
        assert [ax.get_xlabel() for ax in axes.flat[:7]] == kept.trials.space.coordinates
        assert axes.flat[0].get_xscale() == "log"
        assert len(axes.flat[0].collections[0].get_offsets()) == 150
        assert isinstance(racecars.plot.parallel(source), Axes)
        assert racecars.plot.region(source, ["lr", "w"]).shape == (1, 3)
        plt.close("all")
    shown = kept.plot()
    assert shown.get_yscale() == "log" and kept.plot(log=False).get_yscale() == "linear"
    assert kept.plot(ax=shown) is shown
    # Signs differ, so that the plots of both goals are the same.
    ours, theirs = (res.plot().lines[1].get_ydata() for res in (kept, high))
    np.testing.assert_allclose(ours, theirs)
    with pytest.raises(ValueError, match="there is no parameter `lrr`; there are lr, depth"):
        racecars.plot.slices(kept, ["lrr"])
    few = racecars.minimize(loss, space=SPACE, maxfev=10, rng=1)
    with pytest.raises(ValueError, match="importance takes 40 evaluations"):
        racecars.plot.importance(few)
    with pytest.raises(ValueError, match="too few evaluations for a region"):
        racecars.plot.region(few)
    with pytest.raises(ValueError, match="source is float, not a result of minimize"):
        racecars.plot.parallel(math.pi)
    plt.close("all")
