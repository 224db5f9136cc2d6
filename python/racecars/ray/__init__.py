"""RACE-CARS, and our other algorithms, as a searcher for Ray Tune.

.. code-block:: python

    from ray import tune
    from racecars.ray import RaceCarsSearch

    tuner = tune.Tuner(
        train,
        param_space={"lr": tune.loguniform(1e-5, 1e-1), "layers": tune.randint(1, 9)},
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", num_samples=100, search_alg=RaceCarsSearch(seed=1)
        ),
    )

Tune itself takes long per trial. For evaluations of less than some seconds,
``racecars.minimize(..., workers="ray")`` is the way to use the same cluster.
"""

from racecars._needs import need

need("ray", "ray", "racecars.ray")

from racecars.ray._search import RaceCarsSearch  # noqa: E402

__all__ = ["RaceCarsSearch"]
