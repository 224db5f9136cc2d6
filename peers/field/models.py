"""Methods for few evaluations that fit a model of the objective. All are slow."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from peers.field.run import Peer, Run
from peers.objective import Objective
from peers.problems import Vector

# The time of these methods per evaluation grows with the number of evaluations.
MAX_EVALUATIONS = 300


def optuna_tpe(run: Run, objective: Objective) -> None:
    import optuna

    ask_and_tell(run, objective, optuna.samplers.TPESampler(seed=run.seed))


def ask_and_tell(run: Run, objective: Objective, sampler: Any) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler)
    real: Any = optuna.distributions.FloatDistribution
    space = {name: real(*ends) for name, ends in zip(names(run), run.bounds, strict=True)}
    for _ in range(objective.budget):
        trial = study.ask(space)
        study.tell(trial, objective([trial.params[name] for name in space]))


def names(run: Run) -> list[str]:
    return [f"x{i}" for i in range(run.dim)]


def optuna_gp(run: Run, objective: Objective) -> None:
    import optuna

    ask_and_tell(run, objective, optuna.samplers.GPSampler(seed=run.seed))


def hebo(run: Run, objective: Objective) -> None:
    """A. Cowen-Rivers et al., "HEBO: pushing the limits of sample-efficient hyper-parameter
    optimisation", 2022."""
    import torch
    from hebo.design_space.design_space import DesignSpace
    from hebo.optimizers.hebo import HEBO

    torch.set_num_threads(1)
    torch.manual_seed(run.seed)
    np.random.seed(run.seed)
    space = DesignSpace().parse(
        [
            {"name": name, "type": "num", "lb": low, "ub": high}
            for name, (low, high) in zip(names(run), run.bounds, strict=True)
        ]
    )
    optimizer = HEBO(space, scramble_seed=run.seed)
    for _ in range(objective.budget):
        frame = optimizer.suggest(n_suggestions=1)
        value = objective(frame[names(run)].to_numpy(dtype=float)[0])
        optimizer.observe(frame, np.array([[value]]))


def smac(run: Run, objective: Objective) -> None:
    """SMAC3's facade for continuous functions: a Gaussian process."""
    from ConfigSpace import ConfigurationSpace, Float
    from smac import BlackBoxFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    space = ConfigurationSpace(seed=run.seed)
    space.add([Float(n, ends) for n, ends in zip(names(run), run.bounds, strict=True)])
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space,
            n_trials=objective.budget,
            deterministic=True,
            seed=run.seed,
            output_directory=folder,  # type: ignore[arg-type, unused-ignore]
        )
        optimizer = BlackBoxFacade(
            scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=50
        )
        for _ in range(objective.budget):
            trial = optimizer.ask()
            value = objective([trial.config[name] for name in names(run)])
            optimizer.tell(trial, TrialValue(cost=value))


def turbo(run: Run, objective: Objective) -> None:
    """TuRBO-1 (D. Eriksson et al., "Scalable global optimization via local Bayesian optimization",
    2019) with BoTorch's Gaussian process and Thompson sampling. Its constants are the paper's."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.generation import MaxPosteriorSampling
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(run.seed)
    sobol = torch.quasirandom.SobolEngine(run.dim, scramble=True, seed=run.seed)
    width = run.high - run.low
    points: list[Vector] = []
    values: list[float] = []

    def evaluate(z: Vector) -> None:
        points.append(z)
        values.append(objective(run.low + width * z))

    while True:
        first = len(points)  # a restart forgets what was found before
        for z in sobol.draw(2 * run.dim).double().numpy():
            evaluate(z)
        length, successes, failures = 0.8, 0, 0
        while length > 0.5**7:
            x = torch.tensor(np.array(points[first:]), dtype=torch.double)
            y = -torch.tensor(values[first:], dtype=torch.double).unsqueeze(-1)
            model = SingleTaskGP(x, y, outcome_transform=Standardize(1))
            try:
                fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            except Exception:  # a failed fit keeps the initial hyperparameters
                model.eval()
            best = int(y.argmax())
            scales = model.covar_module.lengthscale.squeeze(0).detach()
            weights = scales / scales.mean()
            weights = weights / torch.prod(weights.pow(1.0 / run.dim))
            low = torch.clamp(x[best] - weights * length / 2, 0, 1)
            high = torch.clamp(x[best] + weights * length / 2, 0, 1)
            count = min(5000, max(2000, 200 * run.dim))
            inside = low + (high - low) * sobol.draw(count).double()
            moved = torch.rand(count, run.dim) <= min(20.0 / run.dim, 1.0)
            moved[torch.arange(count), torch.randint(0, run.dim, (count,))] = True
            candidates = torch.where(moved, inside, x[best].expand(count, run.dim))
            with torch.no_grad():
                chosen = MaxPosteriorSampling(model, replacement=False)(candidates, 1)
            before = min(values[first:])
            evaluate(chosen[0].numpy())
            if values[-1] < before - 1e-3 * abs(before):
                successes, failures = successes + 1, 0
            else:
                successes, failures = 0, failures + 1
            if successes == 3:
                length, successes = min(2 * length, 1.6), 0
            elif failures == max(4, run.dim):
                length, failures = length / 2, 0


def peer(name: str, package: str, run: Any, about: str, cost_us: float) -> Peer:
    return Peer(
        name,
        package,
        run,
        "auto",
        f"{about}, at most {MAX_EVALUATIONS} evaluations",
        is_slow=True,
        is_anytime=True,
        cost_us=cost_us,
        most=MAX_EVALUATIONS,
    )


PEERS = (
    peer("optuna-tpe", "optuna", optuna_tpe, "Optuna's TPESampler", 10_000),
    peer("optuna-gp", "optuna", optuna_gp, "Optuna's GPSampler", 300_000),
    peer("hebo", "HEBO", hebo, "HEBO with its defaults", 1_000_000),
    peer("smac", "smac", smac, "SMAC3's BlackBoxFacade", 300_000),
    peer("turbo", "botorch", turbo, "TuRBO-1 with BoTorch", 300_000),
)
