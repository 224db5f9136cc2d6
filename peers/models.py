"""The processor time of a step of optimizers that fit a model, ours next to Optuna's.

A step is an ask and a tell of the sphere function after some random points were told. `optuna-gp`
needs torch: run it by `.venv-few/bin/python -m peers.models`; where it is missing, it is left out.

    ./scripts/wheel --into .venv-bench && .venv-bench/bin/python -m peers.models
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from peers.field.report import markdown
from peers.machine import use_one_thread
from peers.options import numbers

LOW, HIGH = -5.0, 5.0

Step = Callable[[], None]


def sphere(x: Any) -> float:
    return float(np.sum(np.square(x)))


def ours(points: Any) -> Step:
    import racecars

    dim = points.shape[1]
    optimizer = racecars.Optimizer([(LOW, HIGH)] * dim, "gp", rng=1)
    for x in points:
        optimizer.tell(x, sphere(x))

    def step() -> None:
        candidate = optimizer.ask()
        optimizer.tell(candidate, sphere(candidate.x))

    return step


def optuna_by(sampler: str) -> Callable[[Any], Step]:
    def made(points: Any) -> Step:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        names = [f"x{i}" for i in range(points.shape[1])]
        domains: dict[str, Any] = {
            name: optuna.distributions.FloatDistribution(LOW, HIGH) for name in names
        }
        study = optuna.create_study(sampler=getattr(optuna.samplers, sampler)(seed=1))
        for x in points:
            params = dict(zip(names, x.tolist(), strict=True))
            trial = optuna.trial.create_trial(params=params, distributions=domains, value=sphere(x))
            study.add_trial(trial)

        def step() -> None:
            asked = study.ask(domains)
            study.tell(asked, sphere(list(asked.params.values())))

        return step

    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m peers.models",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dims", metavar="N,..", default="10,100", help="%(default)s")
    parser.add_argument("--points", metavar="K,..", default="100,200,500", help="%(default)s")
    parser.add_argument("--steps", metavar="S", type=int, default=20, help="default: %(default)s")
    options = parser.parse_args()
    use_one_thread()
    methods = {"**gp**": ours, "optuna-tpe": optuna_by("TPESampler")}
    if importlib.util.find_spec("torch"):
        methods["optuna-gp"] = optuna_by("GPSampler")
    counts = numbers(options.points, "points")
    rows = []
    for dim in numbers(options.dims, "dims"):
        for name, method in methods.items():
            row = [name, str(dim)]
            for count in counts:
                step = method(np.random.default_rng(1).uniform(LOW, HIGH, (count, dim)))
                step()  # the first one fits the model to all points
                start = time.process_time()
                for _ in range(options.steps):
                    step()
                row.append(f"{1e3 * (time.process_time() - start) / options.steps:.2f} ms")
            rows.append(row)
    print(markdown(["method", "n", *(f"after {count} points" for count in counts)], rows))


if __name__ == "__main__":
    main()
