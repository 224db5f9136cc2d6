# %% [markdown]
# # A support vector machine, with conditions
#
# Which parameters a support vector machine has depends on its kernel: only polynomials have a
# degree, and the linear kernel has no width. With `when`, the space says so. A parameter that is
# not there is missing from the dict, and no evaluation is spent on varying it.

# %%
from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.datasets import load_digits
from sklearn.model_selection import RandomizedSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import racecars
from racecars import when

SHORT = "--short" in sys.argv  # what the tests run
BUDGET = 8 if SHORT else 60
SEEDS = range(1, 2 if SHORT else 4)

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, train_size=200 if SHORT else 500, random_state=0)

# %%
KERNELS = ["linear", "poly", "rbf", "sigmoid"]
space = {
    "kernel": KERNELS,
    "scaler": ["none", "standard", "minmax"],
    "C": (1e-3, 1e3, "log"),
    "gamma": when("kernel != linear", (1e-5, 1e1, "log")),
    "degree": when("kernel = poly", range(2, 6)),
    "coef0": when("kernel in (poly, sigmoid)", (0.0, 2.0)),
}
SCALERS = {"none": "passthrough", "standard": StandardScaler(), "minmax": MinMaxScaler()}


def model(p: dict[str, Any]) -> Any:
    machine = {name: value for name, value in p.items() if name != "scaler"}
    return Pipeline([("scaler", SCALERS[p["scaler"]]), ("svc", SVC(**machine))])


def error(p: dict[str, Any]) -> float:
    return 1 - float(cross_val_score(model(p), X, y, cv=5).mean())


res = racecars.minimize(error, space=space, maxfev=BUDGET, rng=1)
print(f"error {res.fun:.4f} after {res.nfev} evaluations with {res.params}")

# %% [markdown]
# ## scikit-learn's own search, with the same budget
#
# `RandomizedSearchCV` draws from the same space, one dict per kernel. The error in
# cross-validation is what both searches minimize; the other one is that on 1297 digits that
# neither has seen.

# %%
common = {
    "scaler": list(SCALERS.values()),
    "svc__C": loguniform(1e-3, 1e3),
}
width = {"svc__gamma": loguniform(1e-5, 1e1)}
shift = {"svc__coef0": uniform(0, 2)}
theirs = [
    {**common, "svc__kernel": ["linear"]},
    {**common, **width, **shift, "svc__kernel": ["poly"], "svc__degree": randint(2, 6)},
    {**common, **width, "svc__kernel": ["rbf"]},
    {**common, **width, **shift, "svc__kernel": ["sigmoid"]},
]


def randomized(seed: int) -> tuple[list[float], float]:
    search = RandomizedSearchCV(
        Pipeline([("scaler", None), ("svc", SVC())]), theirs, n_iter=BUDGET, cv=5, random_state=seed
    ).fit(X, y)
    errors = 1 - search.cv_results_["mean_test_score"]
    return list(np.minimum.accumulate(errors)), 1 - search.score(X_test, y_test)


def ours(seed: int) -> tuple[list[float], float]:
    res = racecars.minimize(error, space=space, maxfev=BUDGET, rng=seed)
    fitted = model(res.params).fit(X, y)
    return list(res.best_so_far), 1 - fitted.score(X_test, y_test)


runs = {
    "racecars": [ours(seed) for seed in SEEDS],
    "RandomizedSearchCV": [randomized(seed) for seed in SEEDS],
}
default = model({"kernel": "rbf", "scaler": "standard"})
scores = cross_val_score(default, X, y, cv=5)
unseen = 1 - default.fit(X, y).score(X_test, y_test)
print(f"{'error':22} cross-validated   on unseen digits")
print(f"{'SVC, defaults':22} {1 - scores.mean():15.4f} {unseen:18.4f}")
for name, found in runs.items():
    last, other = np.mean([line[-1] for line, _ in found]), np.mean([other for _, other in found])
    print(f"{name:22} {last:15.4f} {other:18.4f}   mean of {len(found)} seeds")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
kernels = np.array([p["kernel"] for p in res.trials.params])
for kernel, colour in zip(KERNELS, ("tab:gray", "tab:orange", "tab:blue", "tab:green")):
    chosen = res.trials[kernels == kernel]
    left.plot(chosen.number + 1, chosen.value, "o", ms=4, color=colour, label=kernel)
left.set(yscale="log", xlabel="evaluations", ylabel="error", title="which kernel was tried")
left.legend(fontsize=8)
for name, found in runs.items():
    right.step(
        np.arange(1, BUDGET + 1),
        np.mean([line for line, _ in found], axis=0),
        where="post",
        label=name,
    )
right.set(yscale="log", xlabel="evaluations", title="best so far, mean over seeds")
ticks = [0.02, 0.05, 0.1, 0.2]
right.set_yticks(ticks, [str(tick) for tick in ticks])
right.set_yticks([], minor=True)
right.legend(fontsize=8)
figure.savefig("picture.svg")
