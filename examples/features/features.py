# %% [markdown]
# # Choosing features
#
# How diabetes develops over a year is predicted from ten measurements, their squares and
# products: 65 features for 442 patients. Which ten of them predict best? A selection is a
# parameter of its own, `racecars.Subset`, and the search exchanges, adds and removes features.

# %%
from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import PolynomialFeatures

import racecars

SHORT = "--short" in sys.argv  # what the tests run
MOST = 1 if SHORT else 10
SEEDS = range(1, 2 if SHORT else 6)

data = load_diabetes()
features = PolynomialFeatures(2, include_bias=False)
columns = features.fit_transform(data.data / data.data.std(axis=0))
names = [name.replace(" ", "*") for name in features.get_feature_names_out(data.feature_names)]
X, X_test, y, y_test = train_test_split(columns, data.target, test_size=0.3, random_state=0)


def error(p: dict[str, Any]) -> float:
    """The cross-validated error of a linear model, as scikit-learn measures it."""
    used = np.column_stack([X[:, [names.index(name) for name in p["features"]]], np.ones(len(X))])
    errors = []
    for fit, score in KFold(5).split(used):
        weights = np.linalg.lstsq(used[fit], y[fit])[0]
        errors.append(np.sqrt(np.mean((used[score] @ weights - y[score]) ** 2)))
    return float(np.mean(errors))


def unseen(p: dict[str, Any]) -> float:
    """The error on patients that no search has seen."""
    chosen = [names.index(name) for name in p["features"]]
    fitted = LinearRegression().fit(X[:, chosen], y)
    return float(np.sqrt(np.mean((fitted.predict(X_test[:, chosen]) - y_test) ** 2)))


# %% [markdown]
# scikit-learn's way is forward selection: add the feature that helps most, ten times. That takes
# 605 evaluations, which is our budget too.

# %%
BUDGET = sum(len(names) - taken for taken in range(MOST))
space = {"features": racecars.Subset(names, (1, MOST))}
res = racecars.minimize(error, space=space, maxfev=BUDGET, rng=1)
print(f"error {res.fun:.3f} with {', '.join(sorted(res.params['features']))}")

# %%
forward = SequentialFeatureSelector(
    LinearRegression(), n_features_to_select=MOST, cv=5, scoring="neg_root_mean_squared_error"
)
forward.fit(X, y)
greedy = {"features": [name for name, chosen in zip(names, forward.get_support()) if chosen]}
print(f"error {error(greedy):.3f} with {', '.join(sorted(greedy['features']))}, step by step")

# %%
runs: dict[str, list[Any]] = {"racecars": [], "random selections": []}
for seed in SEEDS:
    for name, method in zip(runs, ("auto", "random")):
        runs[name].append(
            racecars.minimize(error, space=space, maxfev=BUDGET, rng=seed, method=method)
        )
everything = {"features": names}
print(f"{'error after ' + str(BUDGET) + ' evaluations':30} cross-validated   on unseen patients")
print(f"{'all 65 features':30} {error(everything):15.3f} {unseen(everything):20.3f}")
print(f"{'forward selection':30} {error(greedy):15.3f} {unseen(greedy):20.3f}")
for name, found in runs.items():
    last, other = (
        np.mean([run.fun for run in found]),
        np.mean([unseen(run.params) for run in found]),
    )
    print(f"{name:30} {last:15.3f} {other:20.3f}   mean of {len(found)} seeds")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, found), colour in zip(runs.items(), ("tab:blue", "tab:orange")):
    for i, run in enumerate(found):
        numbers = np.arange(1, len(run.best_so_far) + 1)
        left.step(numbers, run.best_so_far, where="post", color=colour, label=None if i else name)
left.axhline(error(greedy), color="0.5", linestyle=":", label="forward selection")
left.set(xlabel="evaluations", ylabel="error, best so far", ylim=(51, 65))
left.legend(fontsize=8)
often = {name: sum(name in run.params["features"] for run in runs["racecars"]) for name in names}
shown = sorted((name for name in names if often[name]), key=lambda name: often[name])
colours = ["tab:blue" if name in greedy["features"] else "tab:cyan" for name in shown]
right.barh(shown, [often[name] for name in shown], color=colours)
right.tick_params(axis="y", labelsize=7)
right.set(xlabel=f"chosen in so many of {len(SEEDS)} runs (dark: forward selection)")
figure.savefig("picture.svg")
