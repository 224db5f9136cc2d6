# %% [markdown]
# # A function of 500 coordinates
#
# With many coordinates, the overhead of the optimizer limits the number of evaluations. Here it is
# about a microsecond per evaluation, so most of the time of fifty thousand evaluations is that of
# the function.

# %%
from __future__ import annotations

import time
from typing import Any

import numpy as np

import racecars

N = 500
rng = np.random.default_rng(1)
shift = rng.uniform(-0.5, 0.5, N)


def ackley(x: Any) -> float:
    z = x - shift
    wide = -20 * np.exp(-0.2 * np.sqrt(np.mean(z**2)))
    return float(wide - np.exp(np.mean(np.cos(2 * np.pi * z))) + 20 + np.e)


# %%
start = time.perf_counter()
res = racecars.minimize(ackley, [(-1, 1)] * N, maxfev=100 * N, rng=1)
print(f"{res.fun:.4f} after {res.nfev} evaluations in {time.perf_counter() - start:.1f} s")

# %% [markdown]
# Random points, for comparison:

# %%
points = rng.uniform(-1, 1, (2000, N))
random = min(ackley(x) for x in points)
print(f"{random:.4f} is the best of {len(points)} random points")
assert res.fun < random / 2

# %% [markdown]
# `res.optimizer` continues where the run has stopped.

# %%
more = racecars.minimize(ackley, [(-1, 1)] * N, maxfev=50 * N, method=res.optimizer)
print(f"{more.fun:.4f} after {more.nfev} more")
assert more.fun <= res.fun
