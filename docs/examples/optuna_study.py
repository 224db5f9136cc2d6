# %% [markdown]
# # An Optuna study, and its dashboard
#
# `RaceCarsSampler` can be used like any sampler of Optuna. Parameters may be conditional, as the
# numbers of units below on the number of layers.

# %%
from __future__ import annotations

import math

import optuna
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from racecars.optuna import RaceCarsSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial: optuna.Trial) -> float:
    """A stand-in for a training."""
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 4)
    units = [trial.suggest_int(f"units{i}", 8, 512, log=True) for i in range(layers)]
    trial.set_constraint("memory", sum(units) - 300)
    width = sum(abs(math.log2(n) - 6) for n in units) / layers
    return abs(math.log10(rate) + 3) + abs(layers - 3) / 2 + width / 3


# %% [markdown]
# The study is in a file, so that any number of processes can run this script at the same time. With
# `search_space`, the parameters known in advance are proposed from the first trial on.

# %%
study = optuna.create_study(
    study_name="example",
    storage=JournalStorage(JournalFileBackend("study.log")),
    sampler=RaceCarsSampler(
        seed=1,
        search_space={
            "rate": FloatDistribution(1e-5, 1e-1, log=True),
            "layers": IntDistribution(1, 4),
        },
    ),
    load_if_exists=True,
)
study.optimize(objective, n_trials=100)
print(f"{study.best_value:.3f} with {study.best_params}")
assert study.best_trial.constraints["memory"] <= 0

# %% [markdown]
# The dashboard shows the study, also while it runs:
#
#     pip install optuna-dashboard
#     optuna-dashboard study.log
