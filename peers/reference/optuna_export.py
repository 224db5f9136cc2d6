"""Opens exports of studies with Optuna itself, and with its dashboard.

usage: python -m peers.reference.optuna_export RACECARS SYNTHETIC (the two programs)
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

RACECARS, SYNTHETIC = sys.argv[1:3]


def export(study: Path, to: str) -> Path:
    out = study / f"export.{to}"
    subprocess.run(
        [RACECARS, "export", str(study), "--to", to, "--out", str(out)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return out


def flat(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with one name each, as in Optuna."""
    named: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, list):
            named.update({f"{name}[{i}]": v for i, v in enumerate(value)})
        else:
            named[name] = value
    return named


def check_trial(trial: FrozenTrial, ours: dict[str, Any]) -> None:
    assert trial.params == flat(ours["params"]), (trial.params, ours)
    assert all(
        d._contains(d.to_internal_repr(trial.params[n])) for n, d in trial.distributions.items()
    )
    state = ours["state"]
    if state == "running":
        assert trial.state == TrialState.RUNNING
        return
    assert trial.datetime_start is not None and trial.datetime_complete is not None
    assert round(trial.datetime_complete.timestamp() * 1000) == ours["ended"]
    if state in ("value", "infeasible"):
        assert trial.state == TrialState.COMPLETE and trial.value == ours["value"]
    else:
        assert trial.state == TrialState.FAIL
        assert trial.user_attrs["failure"] == state
        assert trial.user_attrs["detail"] == ours["detail"]
    violations = [v for v in trial.constraints.values() if v > 0]
    assert violations == ([ours["violation"]] if state == "infeasible" else [])


def check_study(kind: str, folder: Path) -> Path:
    subprocess.run([SYNTHETIC, kind, str(folder)], check=True)
    log = export(folder, "optuna")
    document = json.loads(export(folder, "json").read_text())
    trials = {trial["trial"]: trial for trial in document["trials"]}
    storage = JournalStorage(JournalFileBackend(str(log)))
    study = optuna.load_study(study_name=folder.name, storage=storage)
    assert study.direction.name.lower() == document["study"]["direction"]
    assert [trial.number for trial in study.trials] == sorted(trials)
    for trial in study.trials:
        check_trial(trial, trials[trial.number])
    feasible = [t["value"] for t in trials.values() if t["state"] == "value"]
    best = max(feasible) if study.direction.name == "MAXIMIZE" else min(feasible)
    assert study.best_value == best
    # The study continues: Optuna's own sampler learns from our trials, and writes to the file.
    for _ in range(2):
        proposed = study.ask(study.trials[0].distributions)
        study.tell(proposed, best)
    again = optuna.load_study(
        study_name=folder.name, storage=JournalStorage(JournalFileBackend(str(log)))
    )
    assert len(again.trials) == len(trials) + 2
    print(f"ok    optuna opens {kind}: {len(trials)} trials, best {best:.6g}")
    return log


def check_dashboard(log: Path, trials: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [Path(sys.executable).parent / "optuna-dashboard", "--port", str(port), str(log)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    api = f"http://127.0.0.1:{port}/api/studies"
    try:
        for _ in range(150):
            try:
                with urllib.request.urlopen(api, timeout=5) as answer:
                    studies = json.load(answer)["study_summaries"]
                break
            except OSError:
                assert server.poll() is None, "optuna-dashboard ended"
                time.sleep(0.2)
        else:
            raise AssertionError("optuna-dashboard does not answer")
        identity = studies[0]["study_id"]
        with urllib.request.urlopen(f"{api}/{identity}", timeout=30) as answer:
            assert len(json.load(answer)["trials"]) == trials
        print(f"ok    optuna-dashboard shows {trials} trials")
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = {
            kind: check_study(kind, folder / kind) for kind in ("failing", "maximize", "halfway")
        }
        check_dashboard(logs["failing"], 602)


main()
