# %% [markdown]
# # A robot arm around obstacles
#
# An arm of ten links must touch a target behind two walls and a pillar. The ten joint angles are
# the parameters. The distance to the target has many local minima: most ways of folding the arm
# end at a wall.

# %%
from __future__ import annotations

import contextlib
import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Rectangle
from scipy.optimize import differential_evolution, minimize

import racecars

SHORT = "--short" in sys.argv  # what the tests run
BUDGET = 300 if SHORT else 4000
SEEDS = range(1, 2 if SHORT else 11)
JOINTS = 10

TARGET = np.array([6.2, -2.4])
WALLS = np.array([[2.0, -6.0, 2.6, 1.2], [4.6, -0.4, 5.2, 6.0]])  # left, bottom, right, top
PILLAR, RADIUS = np.array([7.2, 0.4]), 0.9


def joints(angles: Any) -> Any:
    """Where the joints are, from the base to the tip. Each angle is relative to the link before."""
    way = np.cumsum(angles)
    steps = np.stack([np.cos(way), np.sin(way)], axis=1)
    return np.concatenate([[[0.0, 0.0]], np.cumsum(steps, axis=0)])


def inside(points: Any) -> float:
    """How deep points of the arm are in obstacles, on average."""
    low, high = WALLS[:, None, :2], WALLS[:, None, 2:]
    deep = np.minimum(points - low, high - points).min(axis=2).clip(0).max(axis=0)
    deep += (RADIUS - np.linalg.norm(points - PILLAR, axis=1)).clip(0)
    return float(deep.mean())


def cost(angles: Any) -> float:
    places = joints(angles)
    share = np.linspace(0, 1, 8)[:, None]
    along = (places[:-1, None] * (1 - share) + places[1:, None] * share).reshape(-1, 2)
    bent = float(np.mean(angles**2))
    return float(np.linalg.norm(places[-1] - TARGET)) + 50 * inside(along) + 0.05 * bent


bounds = [(-2.0, 2.0)] * JOINTS  # radians
res = racecars.minimize(cost, bounds, maxfev=BUDGET, rng=1)
print(f"cost {res.fun:.4f}, {np.linalg.norm(joints(res.x)[-1] - TARGET):.4f} from the target")

# %% [markdown]
# ## SciPy with the same budget
#
# Nelder and Mead's method and BFGS (with finite differences) start at random angles, and start
# again where they stop. Differential evolution is SciPy's global optimizer.


# %%
class Spent(Exception):
    pass


class Counter:
    """Keeps the best value after each evaluation, and ends at the budget."""

    def __init__(self) -> None:
        self.best: list[float] = []

    def __call__(self, x: Any) -> float:
        if len(self.best) == BUDGET:
            raise Spent
        value = cost(np.clip(x, -2, 2))
        self.best.append(min(value, self.best[-1] if self.best else np.inf))
        return value


def restarted(method: str, seed: int) -> list[float]:
    count, random = Counter(), np.random.default_rng(seed)
    try:
        while True:
            minimize(count, random.uniform(-2, 2, JOINTS), bounds=bounds, method=method)
    except Spent:
        return count.best


def evolution(seed: int) -> list[float]:
    count = Counter()
    with contextlib.suppress(Spent):
        differential_evolution(count, bounds, rng=seed, maxiter=10**6, tol=0)
    return count.best


def ours(method: str, seed: int) -> list[float]:
    return list(racecars.minimize(cost, bounds, maxfev=BUDGET, rng=seed, method=method).best_so_far)


runs = {
    "racecars": [ours("auto", seed) for seed in SEEDS],
    "SciPy, Nelder-Mead": [restarted("Nelder-Mead", seed) for seed in SEEDS],
    "SciPy, L-BFGS-B": [restarted("L-BFGS-B", seed) for seed in SEEDS],
    "SciPy, differential evolution": [evolution(seed) for seed in SEEDS],
    "random search": [ours("random", seed) for seed in SEEDS],
}
print(f"cost after {BUDGET} evaluations, median of {len(SEEDS)} seeds (best, worst):")
for name, lines in runs.items():
    last = [line[-1] for line in lines]
    print(f"{name:32} {np.median(last):.4f} ({min(last):.4f}, {max(last):.4f})")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for x0, y0, x1, y1 in WALLS:
    left.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, color="0.75"))
left.add_patch(Circle((PILLAR[0], PILLAR[1]), RADIUS, color="0.75"))
left.plot(*joints(res.x).T, "o-", color="tab:blue", linewidth=3, markersize=5)
left.plot(0, 0, "s", color="black", markersize=9)
left.plot(*TARGET, "*", color="tab:red", markersize=14)
left.set(xlim=(-1, 8.5), ylim=(-4, 4), aspect="equal")
left.axis("off")
for name, lines in runs.items():
    shown = np.median(np.array(lines), axis=0)
    right.plot(np.arange(1, len(shown) + 1), shown, label=name)
right.set(
    xscale="log", yscale="log", xlabel="evaluations", ylabel="cost, median of the best so far"
)
right.set_xlim(10, BUDGET)
ticks = [0.5, 1, 2, 5, 10]
right.set_yticks(ticks, [str(tick) for tick in ticks])
right.set_yticks([], minor=True)
right.legend(fontsize=8)
figure.savefig("picture.svg")
