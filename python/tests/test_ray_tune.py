"""The searcher for Ray Tune, alone and on a real local Ray."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import cloudpickle, tune
from ray.tune.search import Searcher

from racecars.ray import RaceCarsSearch

SPACE = {
    "lr": tune.loguniform(1e-5, 1e-1),
    "drop": tune.quniform(0.0, 0.9, 0.1),
    "net": {
        "layers": tune.randint(1, 9),
        "units": tune.lograndint(8, 513),
        "width": tune.qrandint(0, 100, 5),
        "act": tune.choice(["relu", None, True]),
    },
    "scale": tune.qloguniform(0.01, 10, 0.01),
    "batch": tune.qlograndint(4, 64, 4),
    "constant": 3,
}


def loss(config: dict[str, Any]) -> float:
    net = config["net"]
    far = abs(math.log10(config["lr"]) + 3) + abs(config["drop"] - 0.3)
    far += abs(net["layers"] - 4) / 4 + abs(math.log2(net["units"]) - 6) / 6
    return float(far + (net["act"] is not None))


def run(search: Searcher, n: int, sign: float = 1.0) -> list[dict[str, Any]]:
    configs = []
    for i in range(n):
        config = search.suggest(f"t{i}")
        assert config is not None
        configs.append(config)
        search.on_trial_complete(f"t{i}", {"loss": sign * loss(config)})
    return configs


def test_every_domain_is_kept_to() -> None:
    for config in run(RaceCarsSearch(SPACE, "loss", "min", seed=1), 300):
        net = config["net"]
        assert 1e-5 <= config["lr"] <= 1e-1
        assert 0 <= config["drop"] <= 0.9 and config["drop"] == round(config["drop"] / 0.1) * 0.1
        assert isinstance(net["layers"], int) and 1 <= net["layers"] <= 8
        assert isinstance(net["units"], int) and 8 <= net["units"] <= 512
        assert net["width"] % 5 == 0 and 0 <= net["width"] <= 100
        assert net["act"] in ("relu", None, True)
        assert 0.01 <= config["scale"] <= 10
        assert config["batch"] % 4 == 0 and 4 <= config["batch"] <= 64
        assert "constant" not in config


@pytest.mark.parametrize(("mode", "sign"), [("min", 1.0), ("max", -1.0)])
def test_it_optimizes(mode: str, sign: float) -> None:
    configs = run(RaceCarsSearch(SPACE, "loss", mode, seed=1), 200, sign)
    assert min(map(loss, configs)) < 0.05 < min(map(loss, configs[:10]))


def test_same_seed_same_trials() -> None:
    one, two, other = (run(RaceCarsSearch(SPACE, "loss", "min", seed=s), 30) for s in (1, 1, 2))
    assert one == two != other


def test_by_default_it_is_the_portfolio() -> None:
    space = {f"x{i}": tune.uniform(-5, 5) for i in range(10)}

    def best(budget: int | None, method: str | None = None) -> float:
        search = RaceCarsSearch(space, "loss", "min", seed=1, budget=budget, method=method)
        values = []
        for i in range(600):
            config = search.suggest(f"t{i}")
            assert isinstance(config, dict)
            values.append(sum((x - 1) ** 2 for x in config.values()))
            search.on_trial_complete(f"t{i}", {"loss": values[-1]})
        return min(values)

    alone = best(None, "race-cars")
    assert best(600) < 0.1 * alone and best(None) < 0.1 * alone


def test_nan_missing_and_failed_are_never_best() -> None:
    search = RaceCarsSearch({"x": tune.uniform(0, 1)}, "loss", "min", seed=1)
    results: list[Any] = [{"loss": math.nan}, {"other": 1.0}, None, {}, {"loss": "?"}]
    for i, result in enumerate(results):
        search.suggest(f"bad{i}")
        search.on_trial_complete(f"bad{i}", result, error=result is None)
    search.suggest("error")
    search.on_trial_complete("error", {"loss": -100.0}, error=True)
    assert search._optimizer is not None
    assert search._optimizer.told == 6 and search._optimizer.best is None
    search.on_trial_complete("never suggested", {"loss": -100.0})
    assert search._optimizer.told == 6


def test_points_to_evaluate_come_first() -> None:
    points: list[dict[str, Any]] = [
        {"lr": 1e-3, "net": {"layers": 4}},
        {"net/act": None, "lr": 1e-2},
    ]
    search = RaceCarsSearch(SPACE, "loss", "min", seed=1, points_to_evaluate=points)
    first, second, *_ = run(search, 5)
    assert first["lr"] == 1e-3 and first["net"]["layers"] == 4
    assert second["lr"] == 1e-2 and second["net"]["act"] is None
    with pytest.raises(ValueError, match="`lr` is 7"):
        RaceCarsSearch(SPACE, "loss", "min", points_to_evaluate=[{"lr": 7}])


def test_evaluated_points_are_learned() -> None:
    space = {"x": tune.uniform(0, 1), "n": tune.randint(0, 5), "c": 1}
    search = RaceCarsSearch(space, "loss", "max", seed=1)
    search.add_evaluated_point({"x": 0.25, "n": 2, "c": 1}, 7.0)
    search.add_evaluated_point({"x": 0.5, "n": 2}, math.nan)
    search.add_evaluated_point({"x": 0.5, "n": 3}, 100.0, error=True)
    assert search._optimizer is not None
    best = search._optimizer.best
    assert best is not None and best.fun == -7.0 and best.x.tolist() == [0.25, 2]
    with pytest.raises(ValueError, match="no value for `n`"):
        search.add_evaluated_point({"x": 0.5}, 1.0)


def test_save_and_restore_go_on_exactly(tmp_path: Path) -> None:
    search = RaceCarsSearch(SPACE, "loss", "min", seed=1, points_to_evaluate=[{"lr": 1e-3}] * 40)
    run(search, 30)
    search.suggest("live")
    path = tmp_path / "state"
    search.save(str(path))
    content = path.read_bytes()
    assert content.startswith(b"racecars tune 2\n") and json.loads(content.split(b"\n")[2])

    early = RaceCarsSearch(SPACE, "loss", "min")
    late = RaceCarsSearch()
    alone = RaceCarsSearch()
    for other in (early, late, alone):
        other.restore(str(path))
    assert late.set_search_properties(None, None, SPACE)
    through_pickle = pickle.loads(pickle.dumps(search))
    others = (early, late, alone, through_pickle)
    for other in others:
        other.on_trial_complete("live", {"loss": 0.0})
    search.on_trial_complete("live", {"loss": 0.0})
    expected = run(search, 30)
    assert all(run(other, 30) == expected for other in others)


def test_choices_of_any_kind_are_restored_with_the_space(tmp_path: Path) -> None:
    space = {"x": tune.uniform(0, 1), "f": tune.choice([math.sin, (1, 2)])}
    search = RaceCarsSearch(space, "loss", "min", seed=1)
    path = str(tmp_path / "state")
    search.save(path)
    other = RaceCarsSearch()
    other.restore(path)
    with pytest.raises(RuntimeError, match="no search space"):
        other.suggest("t")
    assert other.set_search_properties(None, None, space)
    assert other.suggest("t") == search.suggest("t")


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    search = RaceCarsSearch(SPACE, "loss", "min", seed=1)
    path = tmp_path / "state"
    search.save(str(path))
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(ValueError, match=r"is damaged|is not the state"):
            search.restore(str(path))
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="not the state"):
        search.restore(str(path))
    path.write_bytes(content)
    with pytest.raises(ValueError, match="another space"):
        RaceCarsSearch({"x": tune.uniform(0, 1)}, "loss", "min").restore(str(path))


def test_an_exhausted_space_finishes() -> None:
    search = RaceCarsSearch({"n": tune.randint(0, 3)}, "loss", "min", seed=1)
    found = [search.suggest(f"t{i}") for i in range(4)]
    assert sorted(one["n"] for one in found[:3]) == [0, 1, 2]
    assert found[3] == Searcher.FINISHED


@pytest.mark.parametrize(
    ("space", "text"),
    [
        ({"x": tune.grid_search([1, 2])}, "grid_search"),
        ({"x": tune.randn()}, "Normal"),
        ({"x": tune.sample_from(lambda _: 1)}, "`x` is a sample_from"),
        ({"x": tune.choice([tune.sample_from(lambda _: 1)])}, "sample_from"),
        ({"x": [tune.uniform(0, 1)]}, "in a list"),
        ({"x": 1}, "no domain"),
    ],
)
def test_what_cannot_be_searched_is_refused(space: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        RaceCarsSearch(space, "loss", "min")


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="single metric"):
        RaceCarsSearch(SPACE, ["a", "b"], ["min", "max"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mode"):
        RaceCarsSearch(SPACE, "loss", "up")
    with pytest.raises(RuntimeError, match="no search space"):
        RaceCarsSearch(metric="loss", mode="min").suggest("t")
    with pytest.raises(RuntimeError, match="no metric"):
        RaceCarsSearch(SPACE).suggest("t")


@pytest.fixture(scope="module")
def cluster(local_ray: Any) -> Iterator[None]:
    # Workers cannot import the tests.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    os.environ["TUNE_DISABLE_STRICT_METRIC_CHECKING"] = "1"
    interrupt = signal.getsignal(signal.SIGINT)
    yield
    # Tune takes the interrupt and does not give it back.
    signal.signal(signal.SIGINT, interrupt)


def train(config: dict[str, Any]) -> None:
    value = loss(config)
    if config["net"]["layers"] == 8:
        raise RuntimeError("too deep")
    if config["net"]["layers"] == 7:
        tune.report({"other": value})
    else:
        tune.report({"loss": math.nan if config["net"]["layers"] == 1 else value})


def settings(n: int, search: Any) -> Any:
    return tune.TuneConfig(metric="loss", mode="min", num_samples=n, search_alg=search)


def test_on_a_real_ray(cluster: None, tmp_path: Path) -> None:
    # No value, a failure, not a number, and a value; the next two are searched.
    points = [{"lr": 1e-3, "net": {"layers": layers}} for layers in (7, 8, 1, 4)]
    search = RaceCarsSearch(seed=1, points_to_evaluate=points)
    tuner = tune.Tuner(
        train,
        param_space=SPACE,
        tune_config=settings(6, search),
        run_config=tune.RunConfig(storage_path=str(tmp_path), name="run", verbose=0),
    )
    results = tuner.fit()
    assert len(results) == 6
    assert search._optimizer is not None and search._optimizer.told == 6
    best = results.get_best_result()
    assert best.metrics is not None and search._optimizer.best is not None
    assert search._optimizer.best.fun == pytest.approx(best.metrics["loss"])
    assert best.config is not None and best.config["constant"] == 3
    # Tune saved the searcher by itself, and another goes on with it.
    assert list((tmp_path / "run").glob("searcher-state-*"))
    again = RaceCarsSearch()
    again.restore_from_dir(str(tmp_path / "run"))
    again.set_search_properties("loss", "min", SPACE)
    assert again._optimizer is not None and again._optimizer.told == 6


@pytest.mark.parametrize(
    "space",
    [
        {"x": tune.uniform(-1, 1), "y": tune.sample_from(lambda config: config["x"])},
        {"x": tune.uniform(-1, 1), "y": {"z": [tune.sample_from(lambda: 1)]}},
        {"x": tune.choice([tune.sample_from(lambda: 1), 2])},
    ],
)
def test_a_tuner_does_not_take_sample_from(
    cluster: None, tmp_path: Path, space: dict[str, Any]
) -> None:
    tuner = tune.Tuner(
        slow,
        param_space=space,
        tune_config=settings(2, RaceCarsSearch(seed=1)),
        run_config=tune.RunConfig(storage_path=str(tmp_path), name="run", verbose=0),
    )
    with pytest.raises(ValueError, match=r"`(y|y/z/0|x/0)` is a sample_from"):
        tuner.fit()


KILLED = """
import os, sys, time
import ray
from ray import tune
from racecars.ray import RaceCarsSearch

def slow(config):
    time.sleep(0.3)
    tune.report({"loss": config["x"] ** 2})

address, folder = sys.argv[1:]
ray.init(address=address, log_to_driver=False)
tune.Tuner(
    slow,
    param_space={"x": tune.uniform(-1, 1)},
    tune_config=tune.TuneConfig(
        metric="loss", mode="min", num_samples=5, search_alg=RaceCarsSearch(seed=1)
    ),
    run_config=tune.RunConfig(storage_path=folder, name="run", verbose=0),
).fit()
"""


def slow(config: dict[str, Any]) -> None:
    tune.report({"loss": config["x"] ** 2})


def test_a_killed_run_is_restored(cluster: None, tmp_path: Path) -> None:
    address = ray.get_runtime_context().gcs_address
    environment = {**os.environ, "TUNE_GLOBAL_CHECKPOINT_S": "0.1"}
    command = [sys.executable, "-c", KILLED, address, str(tmp_path)]
    driver = subprocess.Popen(command, env=environment)
    run = tmp_path / "run"
    while len(finished(run)) < 2:
        assert driver.poll() is None
        time.sleep(0.05)
    # Ray copies its own state in place: a driver killed in the middle of that leaves half of it.
    driver.send_signal(signal.SIGSTOP)
    while not is_whole(run):
        driver.send_signal(signal.SIGCONT)
        time.sleep(0.05)
        driver.send_signal(signal.SIGSTOP)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    results = tune.Tuner.restore(str(run), trainable=slow, resume_errored=True).fit()
    metrics = [results[i].metrics or {} for i in range(len(results))]
    assert len({one["trial_id"] for one in metrics if "loss" in one}) == 5
    # The searcher was told of all, those before the end of its first driver too.
    search = RaceCarsSearch({"x": tune.uniform(-1, 1)})
    search.restore_from_dir(str(run))
    assert search._optimizer is not None and search._optimizer.told == 5


def is_whole(run: Path) -> bool:
    try:
        for path in run.glob("experiment_state-*.json"):
            json.loads(path.read_text())
        RaceCarsSearch({"x": tune.uniform(-1, 1)}).restore_from_dir(str(run))
    except Exception:
        return False
    return True


def finished(run: Path) -> list[Path]:
    return [path for path in run.glob("*/result.json") if path.read_text()]
