# %% [markdown]
# # A neural network's weights: 2410 coordinates without a gradient
#
# The hidden units of this network fire or do not fire: they are steps, as in spiking hardware or
# in networks of bits. Steps have a gradient of zero almost everywhere, so back-propagation cannot
# train what is below them. The weights are the parameters, and the loss is a black box.

# %%
from __future__ import annotations

import sys
import time
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import racecars

SHORT = "--short" in sys.argv  # what the tests run
BUDGET = 500 if SHORT else 30_000
HIDDEN = 32

X, y = load_digits(return_X_y=True)
X = X / 16 - 0.3
train, test = slice(0, 1000), slice(1000, None)
SIZES = [64 * HIDDEN, HIDDEN, HIDDEN * 10, 10]
N = sum(SIZES)


def parts(weights: Any) -> Any:
    """The weights and biases of both layers."""
    into, bias, out, last = np.split(weights, np.cumsum(SIZES)[:-1])
    return into.reshape(64, HIDDEN), bias, out.reshape(HIDDEN, 10), last


def scores(weights: Any, images: Any) -> Any:
    into, bias, out, last = parts(weights)
    fires = (images @ into + bias > 0).astype(float)
    return fires @ out + last


def loss(weights: Any) -> float:
    """The cross-entropy on 1000 digits."""
    found = 4 * scores(weights, X[train])
    found -= found.max(axis=1, keepdims=True)
    right = found[np.arange(len(found)), y[train]]
    return float(np.mean(np.log(np.exp(found).sum(axis=1)) - right))


def accuracy(weights: Any) -> float:
    """On digits that were not trained on."""
    return float(np.mean(scores(weights, X[test]).argmax(axis=1) == y[test]))


# %% [markdown]
# A step of the search costs microseconds in 2410 coordinates, so nearly all of the time is the
# loss.

# %%
start = time.perf_counter()
res = racecars.minimize(loss, [(-1, 1)] * N, maxfev=BUDGET, rng=1)
seconds = time.perf_counter() - start
print(f"{N} weights, {res.nfev} evaluations, loss {res.fun:.3f}, accuracy {accuracy(res.x):.1%}")
began = time.perf_counter()
for _ in range(100):
    loss(res.x)
share = (time.perf_counter() - began) / 100 * res.nfev / seconds
print(f"of the time, about {min(share, 1):.0%} was the loss itself")

# %% [markdown]
# ## The same budget at random, and what gradients can do
#
# Random weights are hopeless in so many dimensions. Where there *is* a gradient, use it: a
# network with smooth units learns more in a second. And if the hidden layer may stay random, only
# the last layer needs training, by a gradient, too.

# %%
random = racecars.minimize(loss, [(-1, 1)] * N, maxfev=BUDGET, rng=1, method="random")
smooth = MLPClassifier((HIDDEN,), activation="tanh", max_iter=500, random_state=1)
smooth.fit(X[train], y[train])
into, bias, _, _ = parts(np.random.default_rng(1).uniform(-1, 1, N))
last = LogisticRegression(max_iter=2000).fit(X[train] @ into + bias > 0, y[train])
rows = {
    "racecars": accuracy(res.x),
    "random search": accuracy(random.x),
    "steps, random hidden layer, last layer by gradient": last.score(
        X[test] @ into + bias > 0, y[test]
    ),
    "smooth units, by gradient (MLPClassifier)": smooth.score(X[test], y[test]),
}
print("accuracy on 797 digits that were not trained on:")
for name, value in rows.items():
    print(f"{name:52} {value:.1%}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
drawn = np.unique(np.geomspace(1, BUDGET, 300).astype(int)) - 1
left.plot(drawn + 1, res.best_so_far[drawn], label="racecars")
left.plot(drawn + 1, random.best_so_far[drawn], label="random search")
left.set(xscale="log", xlabel="evaluations", ylabel="loss, best so far")
left.legend()
into = parts(res.x)[0].T.reshape(HIDDEN, 8, 8)
shown = np.full((4 * 9 - 1, 8 * 9 - 1), np.nan)
for i, unit in enumerate(into):
    row, column = divmod(i, 8)
    shown[9 * row : 9 * row + 8, 9 * column : 9 * column + 8] = unit
right.imshow(shown, cmap="RdBu", vmin=-1, vmax=1)
right.set_title("what the 32 hidden units look at", fontsize="medium")
right.axis("off")
figure.savefig("picture.svg")
