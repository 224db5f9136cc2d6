"""Works on a study until it has so many complete trials: `optuna_worker.py STORAGE TRIALS [STICK]`.

It prints `ready`, and begins when it is sent a line, so that several begin together. With STICK, it
prints the number of its trial of that rank, and does not end it. In the end it prints which trials
were its own, how many had ended when it last asked, and how many its optimizer had been told.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import optuna
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import MaxTrialsCallback
from optuna.trial import Trial, TrialState

from racecars.optuna import RaceCarsSampler

NAME = "shared"
DIMENSION = 5


def storage_of(place: str) -> Any:
    if "://" in place:
        return RDBStorage(place)
    return JournalStorage(JournalFileBackend(place))


def main(place: str, trials: int, stick: int = 0) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # The same seed in all processes, as a user would have it.
    sampler = RaceCarsSampler(seed=1)
    study = optuna.load_study(study_name=NAME, storage=storage_of(place), sampler=sampler)
    own: list[int] = []

    def objective(trial: Trial) -> float:
        own.append(trial.number)
        xs = [trial.suggest_float(f"x{i}", -5, 5) for i in range(DIMENSION)]
        time.sleep(0.01)
        if len(own) == stick:
            print(trial.number, flush=True)
            time.sleep(3600)
        return sum((x - 1) ** 2 for x in xs)

    print("ready", flush=True)
    sys.stdin.readline()
    enough = MaxTrialsCallback(trials, states=(TrialState.COMPLETE,))
    study.optimize(objective, callbacks=[enough])
    study.ask().suggest_float("x0", -5, 5)
    ended = len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
    assert sampler._learner is not None and sampler._learner._optimizer is not None
    told = sampler._learner._optimizer.told
    print(json.dumps({"own": own, "ended": ended, "told": told}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
