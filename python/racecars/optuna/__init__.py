"""RACE-CARS, and our other algorithms, as a sampler for Optuna.

>>> import optuna
>>> from racecars.optuna import RaceCarsSampler
>>> optuna.logging.set_verbosity(optuna.logging.WARNING)
>>> study = optuna.create_study(sampler=RaceCarsSampler(seed=1))
>>> study.optimize(lambda trial: trial.suggest_float("x", -5, 5) ** 2, n_trials=100)
>>> study.best_value < 0.1
True
"""

from racecars._needs import need

need("optuna", "optuna", "racecars.optuna")

from racecars.optuna._sampler import RaceCarsSampler  # noqa: E402

__all__ = ["RaceCarsSampler"]
