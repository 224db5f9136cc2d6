"""The sampler for Optuna, in several processes on one storage."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _postgres
import optuna
import optuna_worker
import pytest
from optuna.trial import TrialState

WORKER = Path(__file__).with_name("optuna_worker.py")
# A limit for what must not hang.
PATIENCE = 600


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with _postgres.server() as url:
        yield url


@pytest.fixture(params=["journal", "postgres"])
def place(request: Any, tmp_path: Path) -> str:
    if request.param == "journal":
        return str(tmp_path / "journal.log")
    return str(request.getfixturevalue("server"))


@pytest.fixture
def study(place: str) -> Iterator[optuna.Study]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna_worker.storage_of(place)
    yield optuna.create_study(study_name=optuna_worker.NAME, storage=storage)
    optuna.delete_study(study_name=optuna_worker.NAME, storage=storage)


def start(place: str, *numbers: tuple[int, ...]) -> list[subprocess.Popen[str]]:
    """Workers with these numbers, which begin together."""
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), place, *map(str, own)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for own in numbers
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    return workers


def end(worker: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0
    report: dict[str, Any] = json.loads(output)
    return report


def complete(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def test_two_processes(place: str, study: optuna.Study) -> None:
    reports = [end(worker) for worker in start(place, (60,), (60,))]
    # Both worked, both learned from all, and the same seed did not make them do the same.
    assert all(len(report["own"]) >= 10 for report in reports)
    assert max(report["told"] for report in reports) >= 60
    trials = complete(study)
    assert len(trials) >= 60
    # Each evaluates one point twice to detect noise.
    assert len({tuple(trial.params.values()) for trial in trials}) >= len(trials) - 2
    first = sorted(trial.value or 0.0 for trial in trials[:20])
    last = sorted(trial.value or 0.0 for trial in trials[-20:])
    assert last[10] < first[10]


def test_one_of_two_processes_is_killed(place: str, study: optuna.Study) -> None:
    victim, survivor = start(place, (50, 10), (50,))
    assert victim.stdout is not None
    stuck = int(victim.stdout.readline())
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert victim.returncode == -signal.SIGKILL
    report = end(survivor)

    # The victim's last trial never ends. The survivor learned all others and went on past it.
    assert study.trials[stuck].state == TrialState.RUNNING
    assert stuck < max(report["own"])
    assert report["ended"] == len(complete(study)) == 50
    # Both begin at the centre: its outcome is told once more instead of a second evaluation.
    assert report["ended"] <= report["told"] <= report["ended"] + 2
    assert len(set(range(stuck)) - set(report["own"])) == 9


def test_a_forked_process_goes_its_own_way(tmp_path: Path) -> None:
    place = str(tmp_path / "journal.log")
    from racecars.optuna import RaceCarsSampler

    storage = optuna_worker.storage_of(place)
    study = optuna.create_study(storage=storage, sampler=RaceCarsSampler(seed=1))
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=5)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, repr(study.ask().suggest_float("x", 0, 1)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert float(os.read(reader, 100)) != study.ask().suggest_float("x", 0, 1)
    os.close(reader)
    os.close(writer)
