"""The table of cases that all drivers have in common, over `minimize`.

See tests/drivers/README.md of the repository. Every driver must come to the same result, to the
bit: the points in the order asked, the best, the counts, and the reason to stop.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomllib

import racecars
from racecars import _core, _minimize

FOLDER = Path(__file__).parents[2] / "tests" / "drivers"
CASES = tomllib.loads((FOLDER / "cases.toml").read_text())["case"]
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
RUNS = [
    pytest.param(case, lookahead, id=f"{case['name']}-{lookahead}")
    for case in CASES
    for lookahead in case["lookahead"]
]
SEQUENTIAL = [run for run in RUNS if run.values[1] == 1]

pytestmark = pytest.mark.filterwarnings("ignore:evaluation .* failed:RuntimeWarning")


class Objective:
    """The objective of a case, with what processes share: marks of attempts, a count of calls."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder

    def count(self) -> int:
        """The number of calls before this one: each adds a byte to a file. A lock would stay locked
        for ever if its process were killed, as those of an interrupted run are."""
        calls = os.open(self.folder / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(calls, b".")
            return os.lseek(calls, 0, os.SEEK_CUR) - 1
        finally:
            os.close(calls)

    def __call__(self, x: Any) -> Any:
        trial = self.count()
        if self.name == "flaky":
            mark = self.folder / hashlib.sha256(x.tobytes()).hexdigest()
            if not mark.exists():
                mark.touch()
                raise OSError("the first attempt fails")
        b = 0.0
        for number in x.tolist():
            b += (number - 1.0) * (number - 1.0)
        over = float(x[0]) - 2.0
        if over > 0.0 and self.name == "fails":
            raise ValueError("outside")
        if over > 0.0 and self.name == "nan":
            return float("nan")
        if over > 0.0 and self.name == "infeasible":
            return racecars.Infeasible(over)
        return b + (7919 * trial % 1000) / 1000 - 0.5 if self.name == "noisy" else b


class Recording:
    """A session that records the points in the order asked."""

    points: dict[int, Any]

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.session = _core.Session(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    def next(self, on_told: Any) -> Any:
        trial = self.session.next(on_told)
        if trial is not None:
            Recording.points[trial[0]] = trial[1].copy()
        return trial

    def drive(self, fun: Any, args: Any, on_told: Any, seconds: Any) -> Any:
        def recorded(x: Any, *args: Any) -> Any:
            Recording.points[len(Recording.points)] = x.copy()
            return fun(x, *args)

        return self.session.drive(recorded, args, on_told, seconds)


@pytest.fixture(autouse=True)
def _recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_minimize, "Session", Recording)
    monkeypatch.setattr(Recording, "points", {}, raising=False)


def minimize(case: dict[str, Any], objective: Objective, **keywords: Any) -> Any:
    """Runs a case. Where it maximizes, its objective is the negative, so this is the same."""
    sign = -1.0 if case.get("maximize") else 1.0
    options = {"noise": case["noise"]} if "noise" in case else {}
    target = case.get("target")
    return racecars.minimize(
        objective,
        [(case.get("low", -5.0), case.get("high", 5.0))] * case["dimension"],
        integrality=case.get("integer"),
        method=case["algorithm"],
        rng=case.get("seed", 0),
        maxfev=case["budget"],
        target=None if target is None else sign * target,
        patience=case.get("patience"),
        retries=case.get("retries", 0),
        x0=case.get("start"),
        known=[(known["point"], sign * known["value"]) for known in case.get("known", [])],
        **keywords,
        **options,
    )


def check(case: dict[str, Any], lookahead: int, res: Any) -> None:
    sign = -1.0 if case.get("maximize") else 1.0
    points = [Recording.points[number] for number in range(len(Recording.points))]
    found = {
        "stop": res.stop_reason,
        "evaluations": res.nit,
        "failures": res.n_failed,
        "infeasible": res.n_infeasible,
        "best": sign * res.fun,
        "best_point": res.x.tolist(),
        "points": zlib.crc32(np.array(points, dtype="<f8").tobytes()),
    }
    assert found == EXPECTED[case["name"]][str(lookahead)]
    for key in ("stop", "evaluations", "failures", "infeasible"):
        assert found[key] == case.get(key, found[key])
    assert len(points) == len(res.history) == res.nfev
    assert res.n_failed + res.n_infeasible == np.isnan(res.history).sum()


@pytest.mark.parametrize(("case", "lookahead"), SEQUENTIAL)
def test_sequentially(case: dict[str, Any], lookahead: int, tmp_path: Path) -> None:
    check(case, lookahead, minimize(case, Objective(case["objective"], tmp_path)))


@pytest.mark.parametrize("workers", [1, 2, 4, "threads"])
@pytest.mark.parametrize(("case", "lookahead"), RUNS)
def test_on_workers(case: dict[str, Any], lookahead: int, workers: Any, tmp_path: Path) -> None:
    objective = Objective(case["objective"], tmp_path)
    keywords = {"deterministic": True, "lookahead": lookahead}
    if workers == "threads":
        with ThreadPoolExecutor(3) as executor:
            res = minimize(case, objective, workers=executor, **keywords)
    else:
        res = minimize(case, objective, workers=workers, **keywords)
    check(case, lookahead, res)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("case", "lookahead"), RUNS)
def test_interrupted_and_resumed(
    case: dict[str, Any], lookahead: int, workers: int, tmp_path: Path
) -> None:
    objective = Objective(case["objective"], tmp_path)
    keywords = {
        "deterministic": True,
        "lookahead": lookahead,
        "workers": workers,
        "checkpoint": tmp_path / "checkpoint",
    }
    half = EXPECTED[case["name"]][str(lookahead)]["evaluations"] // 2

    def interrupt(intermediate_result: Any) -> None:
        if intermediate_result.nit == half:
            raise KeyboardInterrupt

    res = minimize(case, objective, callback=interrupt, **keywords)
    if half > 0:
        assert (res.stop_reason, res.nit, res.success) == ("interrupted", half, False)
        # What was out is asked again.
        Recording.points = {n: x for n, x in Recording.points.items() if n < half}
        res = minimize(case, objective, **keywords)
    check(case, lookahead, res)
    if "patience" in case and lookahead > 1:
        return  # what was out may have improved the best, and the run goes on
    again = minimize(case, objective, **keywords)
    assert (again.nit, again.fun, again.stop_reason) == (res.nit, res.fun, res.stop_reason)


@pytest.mark.parametrize("workers", [1, 2, "threads"])
@pytest.mark.parametrize("case", [case for case in CASES if case["objective"] != "noisy"])
def test_as_outcomes_come(case: dict[str, Any], workers: Any, tmp_path: Path) -> None:
    if case["stop"] in ("target", "no-improvement"):
        case = {**case, "evaluations": None}  # it depends on what was out
    res = minimize(case, Objective(case["objective"], tmp_path), workers=workers)
    assert res.stop_reason == case["stop"]
    for key, found in (("evaluations", res.nit), ("failures", res.n_failed)):
        assert case.get(key) in (None, found)


@pytest.mark.parametrize("noise", ["yes", "detect"])
@pytest.mark.parametrize("keywords", [{}, {"workers": 2}, {"workers": 2, "deterministic": True}])
def test_a_lucky_value_is_not_the_target(keywords: dict[str, Any], noise: str) -> None:
    calls = multiprocessing.Value("q", 0)

    def noisy(x: Any) -> float:
        with calls.get_lock():
            calls.value += 1
            draw = np.random.default_rng(calls.value).normal()
        return float(((x - 1) ** 2).sum() + draw)

    def run(target: float) -> Any:
        calls.value = 0
        bounds = [(-5, 5)] * 4
        return racecars.minimize(
            noisy, bounds, maxfev=1000, rng=3, target=target, noise=noise, **keywords
        )

    # No point is better than 0, and the noise has deviation 1.
    res = run(-1.5)
    assert res.stop_reason == "evaluations" and res.history.min() < -1.5
    reached = run(2.0)
    if not keywords:
        # On workers, the best may have changed just before the end, or after the stop.
        assert res.best_evaluations > 1 and res.fun > -1.5
        assert reached.best_evaluations >= 8 and reached.fun <= 2.0
    assert reached.stop_reason == "target" and reached.nit < 1000


def test_every_stop_reason_has_a_status() -> None:
    from racecars._run import STATUS

    assert set(STATUS) == set(_core.STOP_REASONS)
    assert len({status for status, _ in STATUS.values()}) == len(STATUS)
