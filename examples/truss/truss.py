# %% [markdown]
# # A design with constraints: the ten-bar truss
#
# A cantilever of ten bars carries two loads. How thick must each bar be for the truss to be as
# light as possible, if no bar may be stressed beyond 25 ksi and no joint may move by more than 2
# inches? This is a classic of structural optimization (its units, too); the best known design
# weighs 5060.85 lb.

# %%
from __future__ import annotations

import contextlib
import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import NonlinearConstraint, differential_evolution, minimize

import racecars

SHORT = "--short" in sys.argv  # what the tests run
BUDGET = 150 if SHORT else 1000
SEEDS = range(1, 2 if SHORT else 6)

JOINTS = np.array([[720, 360], [720, 0], [360, 360], [360, 0], [0, 360], [0, 0]], float)
BARS = np.array(
    [[4, 2], [2, 0], [5, 3], [3, 1], [2, 3], [0, 1], [4, 3], [5, 2], [2, 1], [3, 0]],
)
SPAN = JOINTS[BARS[:, 1]] - JOINTS[BARS[:, 0]]
LENGTH = np.linalg.norm(SPAN, axis=1)
DIRECTION = SPAN / LENGTH[:, None]
LOADS = np.zeros(8)  # of the four free joints, in x and y
LOADS[[3, 7]] = -100.0  # kips
STIFFNESS, DENSITY = 1e4, 0.1  # of aluminium, in ksi and lb/in³


# %% [markdown]
# The analysis is a finite-element program of a few lines. For optimizers it is a black box: areas
# in, and out come the weight and eleven constraints, each at most 0 where it is met. They are
# measured by the evaluation, so the function returns `racecars.Measured`. The units need not fit
# together.


# %%
def analyse(areas: Any) -> tuple[float, Any]:
    matrix = np.zeros((12, 12))
    for (a, b), d, k in zip(BARS, DIRECTION, STIFFNESS * areas / LENGTH):
        block = k * np.outer(d, d)
        at = [2 * a, 2 * a + 1, 2 * b, 2 * b + 1]
        matrix[np.ix_(at, at)] += np.block([[block, -block], [-block, block]])
    moved = np.zeros(12)
    moved[:8] = np.linalg.solve(matrix[:8, :8], LOADS)
    pairs = moved.reshape(6, 2)
    stretch = ((pairs[BARS[:, 1]] - pairs[BARS[:, 0]]) * DIRECTION).sum(axis=1)
    stress = STIFFNESS * stretch / LENGTH
    weight = float(DENSITY * areas @ LENGTH)
    return weight, np.append(np.abs(stress) - 25, np.abs(moved).max() - 2)


def truss(areas: Any) -> racecars.Measured:
    weight, constraints = analyse(areas)
    return racecars.Measured(weight, constraints)


bounds = [(0.1, 35.0)] * 10
res = racecars.minimize(truss, bounds, maxfev=BUDGET, rng=1)
print(f"{res.fun:.2f} lb after {res.nfev} evaluations, constraints violated by {res.maxcv:g}")
print("areas in square inches:", res.x.round(2))

# %% [markdown]
# ## The same budget for others
#
# SciPy's SLSQP takes its gradients from finite differences, which count; it starts from a random
# design, and starts again where it stops. Differential evolution is SciPy's global optimizer.
# `random` is our own random search. All have the same number of analyses, and the lightest
# feasible design counts.


# %%
class Spent(Exception):
    pass


class Counter:
    """Counts analyses, keeps the best feasible weight after each, and ends at the budget."""

    def __init__(self) -> None:
        self.at: Any = None
        self.best: list[float] = []

    def __call__(self, areas: Any) -> tuple[float, Any]:
        if self.at is None or not np.array_equal(areas, self.at):
            if len(self.best) == BUDGET:
                raise Spent
            self.at, self.found = np.array(areas), analyse(areas)
            weight, constraints = self.found
            before = self.best[-1] if self.best else np.inf
            self.best.append(min(before, weight) if constraints.max() <= 1e-6 else before)
        return self.found


def slsqp(seed: int) -> list[float]:
    count, random = Counter(), np.random.default_rng(seed)
    rule = {"type": "ineq", "fun": lambda x: -count(x)[1]}
    try:
        while True:
            start = random.uniform(0.1, 35, 10)
            minimize(lambda x: count(x)[0], start, bounds=bounds, constraints=rule, method="SLSQP")
    except Spent:
        return count.best


def evolution(seed: int) -> list[float]:
    count = Counter()
    rule = NonlinearConstraint(lambda x: count(x)[1], -np.inf, 0)
    with contextlib.suppress(Spent):
        differential_evolution(
            lambda x: count(x)[0], bounds, constraints=rule, rng=seed, polish=False, maxiter=10**6
        )
    return count.best


def ours(method: str, seed: int) -> list[float]:
    res = racecars.minimize(truss, bounds, maxfev=BUDGET, rng=seed, method=method)
    return list(res.best_so_far)


runs = {
    "racecars": [ours("auto", seed) for seed in SEEDS],
    "SciPy, SLSQP": [slsqp(seed) for seed in SEEDS],
    "SciPy, differential evolution": [evolution(seed) for seed in SEEDS],
    "random search": [ours("random", seed) for seed in SEEDS],
}
print(f"lightest design after {BUDGET} evaluations, median of {len(SEEDS)} seeds (worst):")
for name, lines in runs.items():
    last = [line[-1] for line in lines]
    print(f"{name:32} {np.median(last):8.2f} lb ({max(last):.2f})")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for (a, b), area in zip(BARS, res.x):
    thin = area < 0.15
    colour, width = ("tab:red", 1.0) if thin else ("tab:blue", 0.6 + area / 3.5)
    left.plot(*JOINTS[[a, b]].T, color=colour, linewidth=width, solid_capstyle="round")
left.plot(*JOINTS.T, "o", color="black", markersize=5)
for x, y in JOINTS[[1, 3]]:
    left.annotate("100 kips", (x, y - 90), ha="center", va="top", fontsize=8, annotation_clip=False)
    left.annotate("", (x, y - 90), (x, y - 8), arrowprops={"arrowstyle": "->"})
left.plot([-14, -14], [-30, 390], color="0.4", linewidth=6)
left.set(xlim=(-40, 800), ylim=(-170, 400), aspect="equal", title=f"{res.fun:.0f} lb")
left.axis("off")
left.text(360, -145, "red: as thin as allowed", color="tab:red", fontsize=8, ha="center")
for name, lines in runs.items():
    shown = np.median(np.array([line[:BUDGET] for line in lines]), axis=0)
    above = np.maximum(shown - 5060.85, 0.01)
    right.step(np.arange(1, len(shown) + 1), above, where="post", label=name)
right.set(xscale="log", yscale="log", xlim=(10, BUDGET), ylim=(8e-3, 2e4))
right.set(xlabel="evaluations", ylabel="lb above the best known design")
right.legend(fontsize=8)
figure.savefig("picture.svg")
