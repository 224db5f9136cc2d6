"""The tasks: scikit-learn models on data that comes with scikit-learn, with mixed spaces.

A value is the mean loss of a cross-validation with fixed folds and seeds, so that a configuration
has one value, which is saved in an SQLite file. Half of the models have conditions: a parameter
that a choice switches off is not there. Of the others, the forest has one that is there without
effect. Twelve tasks are for choosing, six with the same models on other data for reporting.
"""

from __future__ import annotations

import functools
import json
import sqlite3
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

VALUES = Path("target/tuning/values.db")
FOLDS = 2
# Rows of the larger data sets: an evaluation should take milliseconds. Error rates need more of
# them, or many configurations are equally good.
ROWS = 180
ERROR_ROWS = 400
# Classifiers that are judged by their log loss; others by their error rate.
PROBABILISTIC = ("forest", "boosting", "neighbours", "network")
# Digits by which configurations are told apart.
DIGITS = 12

Config = dict[str, Any]


@dataclass(frozen=True)
class Condition:
    """The parameter `name` has one of these values."""

    name: str
    values: tuple[str, ...]

    def holds(self, config: Config) -> bool:
        return config.get(self.name) in self.values

    @property
    def text(self) -> str:
        return f"{self.name} in ({', '.join(self.values)})"


@dataclass(frozen=True)
class Number:
    """A real or an integer from `low` to `high`, on a logarithmic scale if `is_log`."""

    low: float
    high: float
    is_log: bool = False
    is_integer: bool = False
    condition: Condition | None = None


@dataclass(frozen=True)
class Options:
    """One of several values without an order."""

    values: tuple[Any, ...]
    condition: Condition | None = None


Parameter = Number | Options
Space = dict[str, Parameter]


def log(low: float, high: float) -> Number:
    return Number(low, high, is_log=True)


def whole(low: int, high: int, is_log: bool = False) -> Number:
    return Number(low, high, is_log, is_integer=True)


def one_of(*values: Any) -> Options:
    return Options(values)


def only(name: str, values: str, parameter: Number) -> Number:
    """A parameter that is there only if another one has one of these values."""
    return replace(parameter, condition=Condition(name, tuple(values.split())))


def is_active(parameter: Parameter, config: Config) -> bool:
    """Whether the parameter is part of a configuration that has all before it."""
    return parameter.condition is None or parameter.condition.holds(config)


def active(space: Space, config: Config) -> Config:
    """What has an effect of a configuration of all parameters."""
    return {name: config[name] for name in space if is_active(space[name], config)}


def sampled(space: Space, random: np.random.Generator) -> Config:
    """A random configuration."""
    config: Config = {}
    for name, parameter in space.items():
        if not is_active(parameter, config):
            continue
        if isinstance(parameter, Options):
            config[name] = parameter.values[int(random.integers(len(parameter.values)))]
            continue
        low, high = parameter.low, parameter.high
        if parameter.is_integer:
            low, high = low - 0.5, high + 0.5
        if parameter.is_log:
            value = float(np.exp(random.uniform(np.log(low), np.log(high))))
        else:
            value = float(random.uniform(low, high))
        config[name] = round(value) if parameter.is_integer else value
    return config


SCALERS = one_of("none", "standard", "min-max", "robust", "quantile")
SPACES: dict[str, Space] = {
    "svm": {
        "scaler": SCALERS,
        "kernel": one_of("rbf", "poly", "sigmoid", "linear"),
        "C": log(1e-3, 1e3),
        "gamma": only("kernel", "rbf poly sigmoid", log(1e-6, 1e1)),
        "degree": only("kernel", "poly", whole(2, 5)),
        "coef0": only("kernel", "poly sigmoid", Number(-1, 1)),
        "shrinking": one_of(True, False),
    },
    "forest": {
        "n_estimators": whole(2, 20, is_log=True),
        "criterion": one_of("first", "second"),
        "max_depth": whole(1, 20),
        "min_samples_split": whole(2, 20),
        "min_samples_leaf": whole(1, 20),
        "max_features": Number(0.05, 1),
        "bootstrap": one_of(True, False),
        "max_samples": Number(0.2, 1),
    },
    "boosting": {
        "n_estimators": whole(3, 30, is_log=True),
        "learning_rate": log(1e-3, 1),
        "max_depth": whole(1, 6),
        "subsample": Number(0.3, 1),
        "max_features": Number(0.05, 1),
        "min_samples_leaf": whole(1, 20),
        "min_impurity_decrease": log(1e-6, 1e-1),
    },
    "linear": {
        "scaler": SCALERS,
        "loss": one_of("first", "second", "third"),
        "penalty": one_of("l1", "l2", "elasticnet"),
        "alpha": log(1e-6, 1e1),
        "l1_ratio": only("penalty", "elasticnet", Number(0, 1)),
        "learning_rate": one_of("optimal", "invscaling", "adaptive"),
        "eta0": only("learning_rate", "invscaling adaptive", log(1e-4, 1e1)),
        "average": one_of(True, False),
    },
    "neighbours": {
        "scaler": SCALERS,
        "components": Number(0.1, 1),
        "n_neighbors": whole(1, 50, is_log=True),
        "weights": one_of("uniform", "distance"),
        "p": Number(1, 5),
    },
    "network": {
        "scaler": SCALERS,
        "solver": one_of("adam", "sgd", "lbfgs"),
        "activation": one_of("relu", "tanh", "logistic"),
        "layers": whole(1, 3),
        "width": whole(4, 32, is_log=True),
        "alpha": log(1e-7, 1e1),
        "learning_rate_init": only("solver", "adam sgd", log(1e-4, 3e-1)),
        "batch_size": only("solver", "adam sgd", whole(16, 200, is_log=True)),
        "momentum": only("solver", "sgd", Number(0, 0.99)),
        "max_iter": whole(3, 20),
    },
}


@dataclass(frozen=True)
class Task:
    """A model on a data set."""

    model: str
    data: str
    half: str

    @property
    def name(self) -> str:
        return f"{self.model}-{self.data}"

    @property
    def space(self) -> Space:
        return SPACES[self.model]


TASKS = {
    task.name: task
    for task in (
        Task("svm", "digits", "choose"),
        Task("forest", "diabetes", "choose"),
        Task("boosting", "cancer", "choose"),
        Task("linear", "cancer", "choose"),
        Task("neighbours", "digits", "choose"),
        Task("network", "friedman", "choose"),
        Task("svm", "wine", "choose"),
        Task("forest", "wine", "choose"),
        Task("boosting", "diabetes", "choose"),
        Task("linear", "wine", "choose"),
        Task("neighbours", "cancer", "choose"),
        Task("network", "digits", "choose"),
        Task("svm", "cancer", "report"),
        Task("forest", "digits", "report"),
        Task("boosting", "friedman", "report"),
        Task("linear", "digits", "report"),
        Task("neighbours", "wine", "report"),
        Task("network", "cancer", "report"),
    )
}


@functools.cache
def data_of(name: str, count: int) -> tuple[Any, Any, bool]:
    """Inputs and outputs, at most so many rows, and whether it is a regression."""
    from sklearn import datasets

    if name == "friedman":
        x, y = datasets.make_friedman1(count, n_features=12, noise=1.0, random_state=0)
        return x, (y - y.mean()) / y.std(), True
    load = {
        "digits": datasets.load_digits,
        "diabetes": datasets.load_diabetes,
        "wine": datasets.load_wine,
        "cancer": datasets.load_breast_cancer,
    }[name]
    x, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(x))[:count]
    x, y = x[rows], y[rows]
    if name == "diabetes":
        return x, (y - y.mean()) / y.std(), True
    return x, y, False


def scaler_of(name: str) -> Any:
    from sklearn import preprocessing

    return {
        "none": "passthrough",
        "standard": preprocessing.StandardScaler(),
        "min-max": preprocessing.MinMaxScaler(),
        "robust": preprocessing.RobustScaler(),
        "quantile": preprocessing.QuantileTransformer(n_quantiles=100),
    }[name]


def estimator(model: str, config: Config, is_regression: bool) -> Any:
    """The model with these settings, behind its scaler."""
    from sklearn import ensemble, linear_model, neighbors, neural_network, svm
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline

    rest = dict(config)
    steps = [scaler_of(rest.pop("scaler"))] if "scaler" in rest else []
    if model == "svm":
        kind = svm.SVR if is_regression else svm.SVC
        steps.append(kind(**rest, max_iter=2000))
    elif model == "forest":
        is_first = rest.pop("criterion") == "first"
        names = ("squared_error", "friedman_mse") if is_regression else ("gini", "entropy")
        if not rest["bootstrap"]:
            rest["max_samples"] = None
        forests = ensemble.RandomForestRegressor, ensemble.RandomForestClassifier
        kind = forests[0] if is_regression else forests[1]
        steps.append(kind(**rest, criterion=names[0 if is_first else 1], random_state=0))
    elif model == "boosting":
        boosts = ensemble.GradientBoostingRegressor, ensemble.GradientBoostingClassifier
        steps.append((boosts[0] if is_regression else boosts[1])(**rest, random_state=0))
    elif model == "linear":
        losses = ("log_loss", "modified_huber", "hinge")
        loss = losses[("first", "second", "third").index(rest.pop("loss"))]
        steps.append(linear_model.SGDClassifier(**rest, loss=loss, max_iter=20, random_state=0))
    elif model == "neighbours":
        steps.append(PCA(rest.pop("components"), svd_solver="full", random_state=0))
        steps.append(neighbors.KNeighborsClassifier(**rest))
    else:
        layers = (rest.pop("width"),) * rest.pop("layers")
        networks = neural_network.MLPRegressor, neural_network.MLPClassifier
        network = networks[0] if is_regression else networks[1]
        steps.append(network(**rest, hidden_layer_sizes=layers, random_state=0))
    return make_pipeline(*steps)


def loss_of(task: Task, config: Config) -> float:
    """The mean loss over the folds: log loss of models with probabilities, the error rate of other
    classifiers, the mean squared error of regressions, each at most that of a constant."""
    from sklearn.metrics import log_loss, mean_squared_error
    from sklearn.model_selection import KFold, StratifiedKFold

    rows = ROWS if task.model in PROBABILISTIC else ERROR_ROWS
    x, y, is_regression = data_of(task.data, rows)
    split = KFold if is_regression else StratifiedKFold
    constant = 1.0
    if not is_regression and task.model in PROBABILISTIC:
        constant = float(np.log(len(np.unique(y))))
    losses = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for train, test in split(FOLDS, shuffle=True, random_state=0).split(x, y):
            try:
                fitted = estimator(task.model, config, is_regression).fit(x[train], y[train])
                if is_regression:
                    loss = mean_squared_error(y[test], fitted.predict(x[test]))
                elif task.model in PROBABILISTIC:
                    probability = np.clip(fitted.predict_proba(x[test]), 1e-3, 1)
                    probability /= probability.sum(axis=1, keepdims=True)
                    loss = log_loss(y[test], probability, labels=np.unique(y))
                else:
                    loss = np.mean(fitted.predict(x[test]) != y[test])
            except (ValueError, ArithmeticError):  # diverged
                loss = constant
            losses.append(min(float(loss), constant) if np.isfinite(loss) else constant)
    return float(np.mean(losses))


class Values:
    """The values of configurations, evaluated once and saved for all processes."""

    def __init__(self, path: Path = VALUES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(path, timeout=60)
        self._file.execute("pragma journal_mode = wal")
        self._file.execute(
            "create table if not exists loss "
            "(task text, config text, value real, primary key (task, config))"
        )

    def of(self, task: Task, config: Config) -> float:
        text = key_of(config)
        rows = self._file.execute(
            "select value from loss where task = ? and config = ?", (task.name, text)
        )
        row = rows.fetchone()
        if row is not None:
            return float(row[0])
        value = loss_of(task, json.loads(text))  # the same digits as in the file
        with self._file:
            self._file.execute(
                "insert or ignore into loss values (?, ?, ?)", (task.name, text, value)
            )
        return value

    def best(self, task: Task) -> float:
        """The least value that any run has found so far."""
        rows = self._file.execute("select min(value) from loss where task = ?", (task.name,))
        return float(rows.fetchone()[0])


def key_of(config: Config) -> str:
    def rounded(value: Any) -> Any:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(f"{float(value):.{DIGITS}g}")
        return str(value)

    return json.dumps({name: rounded(config[name]) for name in sorted(config)})


Evaluate = Callable[[Config], float]
