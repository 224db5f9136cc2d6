# %% [markdown]
# # Gradient boosting
#
# Seven hyperparameters of scikit-learn's gradient-boosted trees, for the probability that a
# tumour is malignant. Two processes evaluate; a study in a folder keeps every trial, so the same
# call resumes after an interruption; and the search ends when it has not improved for 40
# evaluations.

# %%
from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import RandomizedSearchCV, cross_val_score, train_test_split

import racecars

SHORT = "--short" in sys.argv  # what the tests run
BUDGET = 6 if SHORT else 60
SEEDS = range(1, 2 if SHORT else 4)
FOLDS, TREES = (2, 30) if SHORT else (3, 200)

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

# %%
space = {
    "learning_rate": (0.01, 0.5, "log"),
    "max_iter": racecars.Integer(10, TREES, log=True),
    "max_leaf_nodes": racecars.Integer(2, 64, log=True),
    "min_samples_leaf": range(1, 51),
    "l2_regularization": (1e-4, 100.0, "log"),
    "max_features": (0.1, 1.0),
    "max_bins": racecars.Integer(8, 255, log=True),
}


def model(p: dict[str, Any]) -> Any:
    return HistGradientBoostingClassifier(early_stopping=False, random_state=0, **p)


def loss(p: dict[str, Any]) -> float:
    scores = cross_val_score(model(p), X, y, cv=FOLDS, scoring="neg_log_loss")
    return -float(scores.mean())


def search(seed: int, method: str = "auto") -> racecars.OptimizeResult:
    return racecars.minimize(
        loss,
        space=space,
        maxfev=BUDGET,
        patience=40,
        rng=seed,
        workers=2,
        study=f"studies/{method}-{seed}",
        method=method,
    )


shutil.rmtree("studies", ignore_errors=True)  # else it would resume
res = search(1)
print(f"log loss {res.fun:.4f} after {res.nfev} evaluations: {res.message}")
print(res.params)

# %% [markdown]
# The page about the study, as `racecars report studies/auto-1` writes it: what happened, which
# parameters matter, and what needs attention.

# %%
print("wrote", os.path.relpath(res.report(show=False)))

# %% [markdown]
# ## scikit-learn's own search, with the same budget


# %%
def unseen(p: dict[str, Any]) -> float:
    """Log loss on tumours that no search has seen."""
    return float(log_loss(y_test, model(p).fit(X, y).predict_proba(X_test)))


def randomized(seed: int) -> tuple[list[float], float]:
    theirs = {
        "learning_rate": loguniform(0.01, 0.5),
        "max_iter": randint(10, TREES + 1),
        "max_leaf_nodes": randint(2, 65),
        "min_samples_leaf": randint(1, 51),
        "l2_regularization": loguniform(1e-4, 100),
        "max_features": uniform(0.1, 0.9),
        "max_bins": randint(8, 256),
    }
    search = RandomizedSearchCV(
        model({}),
        theirs,
        n_iter=BUDGET,
        cv=FOLDS,
        scoring="neg_log_loss",
        random_state=seed,
    ).fit(X, y)
    losses = -search.cv_results_["mean_test_score"]
    return list(np.minimum.accumulate(losses)), unseen(search.best_params_)


def ours(seed: int) -> tuple[list[float], float]:
    found = search(seed) if seed > 1 else res
    return list(found.best_so_far), unseen(found.params)


runs = {
    "racecars": [ours(seed) for seed in SEEDS],
    "RandomizedSearchCV": [randomized(seed) for seed in SEEDS],
}
print(f"{'log loss':22} cross-validated   on unseen tumours")
print(f"{'defaults':22} {loss({}):15.4f} {unseen({}):19.4f}")
for name, found in runs.items():
    last, other = np.mean([line[-1] for line, _ in found]), np.mean([other for _, other in found])
    print(f"{name:22} {last:15.4f} {other:19.4f}   mean of {len(found)} seeds")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for (name, found), colour in zip(runs.items(), ("tab:blue", "tab:orange")):
    for i, (line, _) in enumerate(found):
        numbers = np.arange(1, len(line) + 1)
        label = name if i == 0 else None
        left.step(numbers, line, where="post", color=colour, label=label)
left.axhline(loss({}), color="0.5", linestyle=":", label="defaults")
left.set(xlabel="evaluations", ylabel="log loss, best so far")
left.set_ylim(top=1.4 * loss({}))
left.legend(fontsize=8)
if not SHORT:
    res.plot.importance(ax=right)
figure.savefig("picture.svg")
