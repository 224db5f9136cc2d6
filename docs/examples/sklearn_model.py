# %% [markdown]
# # The hyper-parameters of a scikit-learn model
#
# The space is a dict of numbers on linear and log scales, integers and choices. The function gets a
# dict of values, and its return value is minimized: here the cross-validated error of a classifier.

# %%
from __future__ import annotations

from typing import Any

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

import racecars

X, y = load_digits(return_X_y=True)
X, y = X[:500], y[:500]

# %% [markdown]
# One space for three models: parameters that a model does not have are ignored.

# %%
space = {
    "model": ["svm", "logistic", "neighbours"],
    "scaler": ["standard", "minmax"],
    "C": (1e-3, 1e3, "log"),
    "gamma": (1e-5, 1e1, "log"),
    "kernel": ["rbf", "poly"],
    "degree": range(2, 6),
    "neighbours": racecars.Integer(1, 50, log=True),
    "weights": ["uniform", "distance"],
}


def model(p: dict[str, Any]) -> Any:
    scaler = StandardScaler() if p["scaler"] == "standard" else MinMaxScaler()
    if p["model"] == "svm":
        best = SVC(C=p["C"], gamma=p["gamma"], kernel=p["kernel"], degree=p["degree"])
    elif p["model"] == "logistic":
        best = LogisticRegression(C=p["C"], max_iter=200)
    else:
        best = KNeighborsClassifier(p["neighbours"], weights=p["weights"])
    return make_pipeline(scaler, best)


def error(p: dict[str, Any]) -> float:
    return 1 - float(cross_val_score(model(p), X, y, cv=3).mean())


# %% [markdown]
# Two processes evaluate. An evaluation that raises or takes more than a minute counts as failed,
# and the run continues.

# %%
res = racecars.minimize(error, space=space, maxfev=100, rng=1, workers=2, timeout=60)
print(f"error {res.fun:.3f} after {res.nfev} evaluations, {res.n_failed} failed")
print(res.params)

# %%
first = min(res.history[:10])
print(f"the best of the first ten was {first:.3f}")
assert res.fun <= first
