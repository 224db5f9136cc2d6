# %% [markdown]
# # On Ray
#
# Two ways to use a Ray cluster. `workers="ray"` is our own loop with Ray's tasks: it costs
# milliseconds per evaluation, or less. `RaceCarsSearch` is a searcher for Ray Tune, which starts a
# process and writes files for every trial: that costs a second or more, but provides schedulers,
# checkpoints and reports.

# %%
from __future__ import annotations

import math
import tempfile
import time
from typing import Any

import ray
from ray import tune

import racecars
from racecars.ray import RaceCarsSearch

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)


def loss(p: dict[str, Any]) -> float:
    """A stand-in for a training."""
    far = abs(math.log10(p["lr"]) + 3) + abs(p["layers"] - 4) / 4
    return float(far + (p["act"] != "tanh"))


# %% [markdown]
# Our loop:

# %%
space = {"lr": (1e-5, 1e-1, "log"), "layers": range(1, 9), "act": ["relu", "tanh"]}
start = time.perf_counter()
res = racecars.minimize(loss, space=space, maxfev=200, rng=1, workers="ray")
print(f"minimize: {res.fun:.3f} in {time.perf_counter() - start:.1f} s for {res.nfev} evaluations")
print(res.params)
assert res.n_failed == 0

# %% [markdown]
# Ray Tune, with the same space in its own terms:

# %%


def train(config: dict[str, Any]) -> None:
    tune.report({"loss": loss(config)})


start = time.perf_counter()
with tempfile.TemporaryDirectory() as folder:
    tuner = tune.Tuner(
        train,
        param_space={
            "lr": tune.loguniform(1e-5, 1e-1),
            "layers": tune.randint(1, 9),
            "act": tune.choice(["relu", "tanh"]),
        },
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", num_samples=5, search_alg=RaceCarsSearch(seed=1)
        ),
        run_config=tune.RunConfig(storage_path=folder, name="example", verbose=0),
    )
    best = tuner.fit().get_best_result()
    assert best.metrics is not None
    print(f"Tune: {best.metrics['loss']:.3f} in {time.perf_counter() - start:.1f} s for 5 trials")
    print(best.config)

# %%
ray.shutdown()
