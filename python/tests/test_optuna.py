"""The sampler for Optuna, in one process."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from racecars._core import Space
from racecars.optimizer import Optimizer
from racecars.optuna import RaceCarsSampler
from racecars.optuna._learner import MAX_CHECKED, Learner

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE: dict[str, BaseDistribution] = {
    "rate": FloatDistribution(1e-5, 1e-1, log=True),
    "width": IntDistribution(0, 100, step=5),
    "units": IntDistribution(1, 512, log=True),
    "drop": FloatDistribution(0, 0.9, step=0.1),
    "act": CategoricalDistribution(["relu", "tanh", None, True, 2.5]),
}


def mixed(trial: Trial) -> float:
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    width = trial.suggest_int("width", 0, 100, step=5)
    units = trial.suggest_int("units", 1, 512, log=True)
    drop = trial.suggest_float("drop", 0, 0.9, step=0.1)
    act = trial.suggest_categorical("act", ["relu", "tanh", None, True, 2.5])
    assert width % 5 == 0 and isinstance(units, int)
    far = abs(math.log10(rate) + 3) + abs(width - 35) / 100 + abs(math.log2(units) - 6) / 9
    return far + abs(drop - 0.3) + (act is not None)


def run(sampler: RaceCarsSampler, n: int = 100, objective: Any = mixed, **study: Any) -> Any:
    made = optuna.create_study(sampler=sampler, **study)
    made.optimize(objective, n_trials=n)
    return made


def values(study: Any) -> list[Any]:
    return [(trial.params, trial.values) for trial in study.trials]


def test_mixed_space_beats_random() -> None:
    ours = [run(RaceCarsSampler(seed=seed)).best_value for seed in range(3)]
    random = [
        run(optuna.samplers.RandomSampler(seed=seed)).best_value  # type: ignore[arg-type]
        for seed in range(3)
    ]
    assert sum(ours) < sum(random)


def test_same_seed_same_study() -> None:
    one = values(run(RaceCarsSampler(seed=3)))
    assert one == values(run(RaceCarsSampler(seed=3)))
    assert one != values(run(RaceCarsSampler(seed=4)))


def test_same_seed_in_two_processes_gives_different_points() -> None:
    """Two samplers with one seed on one storage, as two processes would have them."""
    # Otherwise, the center is evaluated twice on purpose.
    samplers = [RaceCarsSampler(seed=1, search_space=SPACE, noise="no") for _ in range(2)]
    storage = optuna.storages.InMemoryStorage()
    first = optuna.create_study(storage=storage, study_name="s", sampler=samplers[0])
    second = optuna.load_study(storage=storage, study_name="s", sampler=samplers[1])
    rates = [study.ask(SPACE).params["rate"] for _ in range(5) for study in (first, second)]
    assert len(set(rates)) == 10


def test_points_of_other_processes_are_not_evaluated_again() -> None:
    """Two samplers begin with the same points, of which each evaluates some; the outcomes of all
    are told to both, and to one that resumes the study."""
    space: dict[str, BaseDistribution] = {name: FloatDistribution(-1, 3) for name in "xyz"}
    # With a larger budget, the center is evaluated twice on purpose, to look for noise.
    samplers = [RaceCarsSampler(seed=1, search_space=space, budget=19) for _ in range(3)]
    storage = optuna.storages.InMemoryStorage()
    first = optuna.create_study(storage=storage, study_name="s", sampler=samplers[0])
    others = [
        optuna.load_study(storage=storage, study_name="s", sampler=sampler)
        for sampler in samplers[1:]
    ]
    for _ in range(10):
        trials = [(study, study.ask(space)) for study in (first, others[0])]
        for study, trial in trials:
            study.tell(trial, sum((x - 0.3) ** 2 for x in trial.params.values()))
    assert first.trials[0].params == {"x": 1.0, "y": 1.0, "z": 1.0}
    others[1].ask(space)
    points = [tuple(trial.params.values()) for trial in first.trials]
    assert len(set(points)) == len(points) == 21
    for sampler in samplers[:2]:
        best = told(sampler).best
        assert best is not None and best.fun <= min(t.value for t in first.trials[:18])


def test_the_first_trial_is_the_center() -> None:
    trial = run(RaceCarsSampler(seed=1), 1).trials[0]
    assert trial.params["rate"] == pytest.approx(1e-3)
    assert trial.params["width"] == 50 and trial.params["units"] == 23
    assert trial.params["drop"] in (0.4, 0.5)


def test_the_budget_of_a_resumed_study_is_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets = []

    def made(*args: Any, budget: int | None = None, **rest: Any) -> Optimizer:
        budgets.append(budget)
        return Optimizer(*args, budget=budget, **rest)

    study = run(RaceCarsSampler(seed=1), 30)
    study.sampler = RaceCarsSampler(seed=1, budget=100)
    monkeypatch.setattr("racecars.optuna._sampler.Optimizer", made)
    study.ask(SPACE)
    assert budgets == [70]


def test_maximize() -> None:
    study = run(RaceCarsSampler(seed=1), objective=lambda t: -mixed(t), direction="maximize")
    assert study.best_value > -1.0


def test_search_space_makes_the_first_trial_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("sampled independently")

    monkeypatch.setattr(RaceCarsSampler, "sample_independent", refuse)
    run(RaceCarsSampler(seed=1, search_space=SPACE), 20)


def test_conditional_parameters_are_learned() -> None:
    def objective(trial: Trial) -> float:
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return 3 + abs(trial.suggest_float("x", -5, 5) - 1)
        y = trial.suggest_float("y", 1e-5, 1, log=True)
        return abs(math.log10(y) + 3) + abs(trial.suggest_int("n", 0, 100) - 35) / 20

    for method in ("auto", "race-cars"):
        study = run(RaceCarsSampler(seed=1, method=method), 200, objective)
        assert study.best_params["kind"] == "b"
        assert study.best_value < 0.5
    kinds = [trial.params["kind"] for trial in study.trials[100:]]
    assert kinds.count("b") > kinds.count("a")


def conditions(objective: Any, trials: int = 60) -> dict[str, Any]:
    """The conditions that a sampler sees in the trials of an objective."""
    sampler = RaceCarsSampler(seed=3, method="random")
    run(sampler, trials, objective)
    assert sampler._learner is not None
    return dict(sampler._learner._conditions)


def test_conditions_are_seen_in_trials() -> None:
    def nested(trial: Trial) -> float:
        x = trial.suggest_float("always", 0, 1)
        model = trial.suggest_categorical("model `of` kind", ["svm", "net", "none"])
        if model == "none":
            return x + 2
        if model == "svm":
            return x + trial.suggest_float("C", 0, 1)
        layers = trial.suggest_int("layers", 1, 4)
        if trial.number % 7 == 3:
            raise optuna.TrialPruned
        return x + sum(trial.suggest_float(f"units{i}", 0, 1) for i in range(layers))

    found = conditions(nested)
    assert set(found) >= {"C", "layers", "units1", "units2", "units3"}
    assert found["C"].parent == found["layers"].parent == "model `of` kind"
    assert set(found["C"].without) == {"net", "none"}
    assert found["units2"].parent == "layers" and found["units2"].above in (1, 2)


def test_what_no_condition_explains_is_always_active() -> None:
    def odd(trial: Trial) -> float:
        a, b = (trial.suggest_categorical(name, [0, 1]) for name in "ab")
        return float(a == b) + (trial.suggest_float("x", 0, 1) if a != b else 0.5)

    assert conditions(odd) == {}
    study = run(RaceCarsSampler(seed=1), 60, odd)
    assert study.best_value < 0.1


def test_parameters_that_come_late_are_learned() -> None:
    """A space that grows begins anew, with all that has ended."""

    def objective(trial: Trial) -> float:
        names = ["x"] + ["y"] * (trial.number >= 30) + ["z"] * (trial.number >= 60)
        return sum(trial.suggest_float(name, -5, 5) ** 2 for name in names)

    sampler = RaceCarsSampler(seed=1)
    study = run(sampler, 150, objective)
    learner = sampler._learner
    assert learner is not None and set(learner.known) == {"x", "y", "z"}
    assert learner._optimizer is not None and learner._optimizer.told == 149
    late = [trial.value for trial in study.trials[-20:]]
    assert sorted(late)[10] < 25


def test_bounds_that_move() -> None:
    def objective(trial: Trial) -> float:
        high = 2 + 2 * (trial.number % 4)
        x = trial.suggest_float("x", 0, high)
        assert 0 <= x <= high
        n = trial.suggest_int("n", 0, high, step=2)
        assert 0 <= n <= high and n % 2 == 0
        return abs(x - 1.5) + n

    assert run(RaceCarsSampler(seed=1), 80, objective).best_value < 0.2


def test_constraints() -> None:
    def objective(trial: Trial) -> float:
        x, y = trial.suggest_float("x", -5, 5), trial.suggest_float("y", -5, 5)
        trial.set_constraint("sum", 4 - x - y)
        return x * x + y * y

    study = run(RaceCarsSampler(seed=1), 200, objective)
    assert study.best_trial.constraints["sum"] <= 0
    assert 8 <= study.best_value < 10


def test_old_constraints_are_read() -> None:
    sampler = RaceCarsSampler(seed=1)
    study = optuna.create_study(sampler=sampler)
    distributions: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
    for x, by in ((0.1, 0.5), (0.9, -0.5)):
        attrs = {"constraints": [by, -1.0]}
        kept = create_trial(
            params={"x": x}, distributions=distributions, value=x, system_attrs=attrs
        )
        study.add_trial(kept)
    study.ask().suggest_float("x", 0, 1)
    best = told(sampler).best
    assert best is not None and best.x[0] == 0.9


def told(sampler: RaceCarsSampler) -> Optimizer:
    assert sampler._learner is not None and sampler._learner._optimizer is not None
    return sampler._learner._optimizer


def test_failed_pruned_and_nan_are_told_and_never_best() -> None:
    def objective(trial: Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number % 4 == 1:
            raise RuntimeError("no")
        if trial.number % 4 == 2:
            trial.report(-100.0, 1)
            raise optuna.TrialPruned
        return math.nan if trial.number % 4 == 3 else x

    sampler = RaceCarsSampler(seed=1, search_space={"x": FloatDistribution(0, 1)})
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=41, catch=(RuntimeError,))
    study.ask().suggest_float("x", 0, 1)
    best = told(sampler).best
    assert told(sampler).told == 41
    assert best is not None and best.fun == study.best_value


def test_enqueued_trials_are_learned_unless_out_of_bounds() -> None:
    sampler = RaceCarsSampler(seed=1, search_space={"x": FloatDistribution(0, 1)})
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"x": 0.25})
    study.enqueue_trial({"x": 7.0})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(lambda t: -t.suggest_float("x", 0, 1), n_trials=2)
    study.ask().suggest_float("x", 0, 1)
    best = told(sampler).best
    assert best is not None and best.x[0] == 0.25


def test_a_space_that_is_exhausted_goes_on() -> None:
    study = run(RaceCarsSampler(seed=1), 12, lambda t: t.suggest_int("n", 0, 3))
    assert {trial.params["n"] for trial in study.trials} == {0, 1, 2, 3}


def test_threads_share_a_sampler() -> None:
    sampler = RaceCarsSampler(seed=1)
    study = optuna.create_study(sampler=sampler)
    study.optimize(mixed, n_trials=200, n_jobs=8)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    # One point is evaluated twice to detect noise.
    assert len({repr(trial.params) for trial in study.trials}) >= 199
    study.ask().suggest_float("rate", 1e-5, 1e-1, log=True)
    assert told(sampler).told == 200


def test_nothing_is_written_to_the_storage() -> None:
    study = run(RaceCarsSampler(seed=1), 30)
    assert study._storage.get_study_system_attrs(study._study_id) == {}
    assert all(not t.system_attrs and not t.user_attrs for t in study.trials)


def test_pickled_samplers_learn_the_study_anew() -> None:
    sampler = RaceCarsSampler(seed=1)
    study = run(sampler, 50)
    study.sampler = pickle.loads(pickle.dumps(sampler))
    study.ask(SPACE)
    assert told(study.sampler).told == 50


def test_one_sampler_on_two_studies() -> None:
    sampler = RaceCarsSampler(seed=1)
    run(sampler, 20)
    run(sampler, 20, lambda t: t.suggest_float("other", 0, 1))
    assert sampler._learner is not None and set(sampler._learner.known) == {"other"}


def test_hyperband_brackets_learn_together() -> None:
    def objective(trial: Trial) -> float:
        x = trial.suggest_float("x", -5, 5)
        for step in range(9):
            trial.report(x * x + 1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x * x

    sampler = RaceCarsSampler(seed=1, search_space={"x": FloatDistribution(-5, 5)})
    pruner = optuna.pruners.HyperbandPruner(max_resource=9)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    study.optimize(objective, n_trials=100)
    study.ask().suggest_float("x", -5, 5)
    assert told(sampler).told == 100
    assert study.best_value < 0.1


class Watched(list[FrozenTrial]):
    """A list that counts how often it is looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        return super().__getitem__(place)


def running(number: int) -> FrozenTrial:
    trial = create_trial(state=TrialState.RUNNING)
    trial.number = number
    return trial


def ended(number: int, x: float) -> FrozenTrial:
    trial = create_trial(params={"x": x}, distributions={"x": FloatDistribution(0, 1)}, value=x)
    trial.number = number
    return trial


def learner() -> Learner:
    def begin(space: Space, number: int) -> Optimizer:
        return Optimizer(space, rng=number)

    return Learner(begin, {}, 1.0)


def test_only_what_is_new_or_open_is_visited() -> None:
    """A trial that takes long does not make all later ones be visited again and again."""
    one, trials = learner(), Watched([running(0)])
    for number in range(1, 500):
        trials.append(ended(number, number / 500))
        trials.looks = 0
        one.visit(trials)
        assert trials.looks <= 2
    trials[0] = ended(0, 0.0)
    one.visit(trials)
    one.propose(500)
    assert one._optimizer is not None and one._optimizer.told == 500
    assert one._optimizer.best is not None and one._optimizer.best.x[0] == 0.0


def test_trials_that_never_end_cost_a_bounded_time() -> None:
    one, trials = learner(), Watched(map(running, range(5 * MAX_CHECKED)))
    one.visit(trials)
    trials.looks = 0
    one.visit(trials)
    assert trials.looks == MAX_CHECKED
    # One that ends after all is found in its turn.
    trials[7] = ended(7, 0.4)
    for _ in range(5):
        one.visit(trials)
    one.propose(len(trials))
    assert one._optimizer is not None and one._optimizer.told == 1


def test_wrong_settings_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="no-such"):
        RaceCarsSampler(method="no-such")
    with pytest.raises((TypeError, ValueError), match="no_such"):
        RaceCarsSampler(no_such=1)


def test_imports_are_lazy() -> None:
    code = """
import sys, racecars
heavy = {"optuna", "ray", "scipy", "matplotlib", "dask", "distributed"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert racecars.optuna.RaceCarsSampler and "optuna" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("package", ["optuna", "ray"])
def test_what_is_missing_is_named(package: str) -> None:
    code = f"""
import importlib.util, racecars
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == {package!r} else real(name, *a)
try:
    racecars.{package}
except ModuleNotFoundError as error:
    assert "pip install 'racecars[{package}]'" in str(error), error
else:
    raise AssertionError("imported")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
