"""Checkpoints: written whole or not at all, and gone on with to the bit."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import racecars
from racecars._checkpoint import Checkpoint

BOUNDS = [(-5.0, 5.0)] * 4
KEYWORDS: dict[str, Any] = {"maxfev": 300, "rng": 5}
warned = pytest.mark.filterwarnings("ignore:evaluation .* failed:RuntimeWarning")


def sphere(x: Any) -> float:
    return float((x**2).sum())


def interrupt_at(stop: int) -> Any:
    def callback(intermediate_result: Any) -> None:
        if intermediate_result.nit >= stop:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_run_goes_on_to_the_bit(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "run"
    extra = {} if workers == 1 else {"workers": workers, "deterministic": True}
    whole = racecars.minimize(sphere, BOUNDS, **KEYWORDS, **extra)
    for stop in (1, 50, 51, 200):
        part = racecars.minimize(
            sphere, BOUNDS, **KEYWORDS, **extra, checkpoint=path, callback=interrupt_at(stop)
        )
        assert (part.nit, part.status) == (stop, -1)
    rest = racecars.minimize(sphere, BOUNDS, **KEYWORDS, **extra, checkpoint=path)
    np.testing.assert_array_equal(rest.history, whole.history)
    assert rest.fun == whole.fun and rest.nfev == 300
    again = racecars.minimize(
        lambda x: pytest.fail("evaluated"), BOUNDS, **KEYWORDS, **extra, checkpoint=path
    )
    np.testing.assert_array_equal(again.history, whole.history)


def test_a_run_that_is_killed_goes_on(script: Any, tmp_path: Path) -> None:
    text = """
        import time, racecars
        def fun(x):
            time.sleep(0.01)
            return float((x**2).sum())
        racecars.minimize(fun, [(-5, 5)] * 4, maxfev=300, rng=5, checkpoint="run")
    """
    path = tmp_path / "run"
    process = script(text)
    wait_until(lambda: path.exists() and Checkpoint(path).read()[0]["counts"][0] > 20)
    process.kill()
    process.communicate()
    calls: list[int] = []

    def fun(x: Any) -> float:
        calls.append(1)
        return sphere(x)

    res = racecars.minimize(fun, BOUNDS, **KEYWORDS, checkpoint=path, resume="must")
    assert res.nfev == 300 and 0 < len(calls) < 280
    whole = racecars.minimize(sphere, BOUNDS, **KEYWORDS)
    np.testing.assert_array_equal(res.history, whole.history)


def test_failures_and_counts_are_kept(tmp_path: Path) -> None:
    def fun(x: Any) -> float:
        if x[0] > 0:
            raise ValueError("right")
        return sphere(x)

    path = tmp_path / "run"
    with pytest.warns(RuntimeWarning):
        first = racecars.minimize(fun, BOUNDS, maxfev=50, rng=5, checkpoint=path)
    then = racecars.minimize(fun, BOUNDS, maxfev=50, rng=5, checkpoint=path)
    assert (then.nfev, then.n_failed) == (50, first.n_failed)
    assert then.errors[0].text == "ValueError: right"
    np.testing.assert_array_equal(then.errors[0].x, first.errors[0].x)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(FileNotFoundError):
        racecars.minimize(sphere, BOUNDS, checkpoint=path, resume="must")
    racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path)
    with pytest.raises(ValueError, match="another space"):
        racecars.minimize(sphere, BOUNDS[:2], checkpoint=path)
    with pytest.raises(ValueError, match="is of method auto, not cma-es"):
        racecars.minimize(sphere, BOUNDS, checkpoint=path, method="cma-es")
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="not the checkpoint"):
        racecars.minimize(sphere, BOUNDS, checkpoint=path)
    path.write_bytes(b"racecars run 2\n{}\n")
    with pytest.raises(ValueError, match="another version of racecars; resume='never'"):
        racecars.minimize(sphere, BOUNDS, checkpoint=path)
    assert racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path, resume="never").nfev


class Limits:
    """Like SciPy's NonlinearConstraint."""

    def __init__(self, low: Any, high: Any) -> None:
        self.fun, self.lb, self.ub = lambda x: x[0], low, high


class Linear:
    """Like SciPy's LinearConstraint."""

    def __init__(self, matrix: Any) -> None:
        self.A, self.lb, self.ub = matrix, -np.inf, 0.0


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ((), Limits(-5, 0), r"constraints none, not nonlinear from .-5.0. to .0.0."),
        (Limits(-5, 0), (), "constraints nonlinear from .*, not none"),
        (Limits(-5, 0), Limits(-5, -1), "constraints .* to .0.0., not .* to .-1.0."),
        (Limits(-5, 0), [Limits(-5, 0)] * 2, "constraints nonlinear .*, not nonlinear .*, nonl"),
        ({"type": "ineq", "fun": abs}, {"type": "eq", "fun": abs}, "constraints ineq .*, not eq"),
        (Linear(np.eye(4)), Linear(-np.eye(4)), "constraints linear of 16 numbers .*, not linear"),
    ],
)
def test_other_constraints_are_refused(tmp_path: Path, first: Any, then: Any, words: str) -> None:
    path = tmp_path / "run"
    racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path, constraints=first)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=f"is of {words}.*; ask for the same .*resume='never'"):
        racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path, constraints=then)
    assert path.read_bytes() == content
    racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path, constraints=first)


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ({"noise": "no"}, {"noise": "yes"}, """settings {"noise": "no"}, not {"noise": "yes"}"""),
        ({"noise": "no"}, {}, """settings {"noise": "no"}, not {}"""),
        ({}, {"method": "cma-es", "population": 9}, "method auto, not cma-es"),
        (
            {"method": "cma-es", "population": 8},
            {"method": "cma-es", "population": 9},
            """settings {"population": 8}, not {"population": 9}""",
        ),
        ({}, {"deterministic": True}, r"deterministic False, not True \(lookahead=2\)"),
        (
            {"deterministic": True, "lookahead": 1},
            {"deterministic": True, "lookahead": 3},
            r"deterministic True \(lookahead=1\), not True \(lookahead=3\)",
        ),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, first: Any, then: Any, words: str) -> None:
    path = tmp_path / "run"
    racecars.minimize(sphere, BOUNDS, maxfev=30, rng=5, checkpoint=path, **first)
    with pytest.raises(ValueError, match=f"is of {words}.*resume='never' begins anew"):
        racecars.minimize(sphere, BOUNDS, maxfev=60, rng=5, checkpoint=path, **then)
    longer = racecars.minimize(sphere, BOUNDS, maxfev=60, rng=6, checkpoint=path, **first)
    assert longer.nfev == 60


def test_equal_settings_and_another_number_of_workers_resume(tmp_path: Path) -> None:
    path = tmp_path / "run"
    same: dict[str, Any] = {"rng": 5, "checkpoint": path, "method": "cma-es", "deterministic": True}
    racecars.minimize(sphere, BOUNDS, maxfev=30, population=8, **same)
    racecars.minimize(sphere, BOUNDS, maxfev=60, population=np.int64(8), workers=2, **same)
    same["method"] = racecars.Optimizer(BOUNDS, "cma-es")
    assert racecars.minimize(sphere, BOUNDS, maxfev=90, **same).nfev == 90
    same["method"] = "cma-es"
    assert racecars.minimize(sphere, BOUNDS, maxfev=99, population=8, **same).nfev == 99


@pytest.fixture
def half_way(tmp_path: Path) -> Path:
    """The checkpoint of a run with failures, which is not at its end."""
    path = tmp_path / "run"
    racecars.minimize(failing, BOUNDS, **KEYWORDS, checkpoint=path, callback=interrupt_at(60))
    return path


def failing(x: Any) -> float:
    if x[0] > 0:
        raise ValueError("right")
    return sphere(x)


def resumed(path: Path) -> Any:
    return racecars.minimize(failing, BOUNDS, **KEYWORDS, checkpoint=path)


@warned
def test_any_damage_is_one_clear_error(half_way: Path) -> None:
    content = half_way.read_bytes()
    first_kilobytes = range(2500)  # the JSON; the rest by samples
    places = [*first_kilobytes, *range(2500, len(content), 37), len(content) - 1]
    flipped = ((place, 1 << place % 8) for place in places)
    mutants = [content[:i] + bytes([content[i] ^ bit]) + content[i + 1 :] for i, bit in flipped]
    mutants += [content[:size] for size in places]
    mutants += [content + b"\n", content + content, content[1:], b"", b"{" * 10**6]
    for mutant in mutants:
        half_way.write_bytes(mutant)
        with pytest.raises(ValueError, match=r"run (is|is not) .*; .*resume='never' begins anew"):
            resumed(half_way)
    half_way.write_bytes(content)
    assert resumed(half_way).nit == 300


@warned
def test_parts_that_contradict_each_other_are_the_same_error(half_way: Path) -> None:
    def write(change: Any) -> None:
        state, failures = Checkpoint(half_way).read()
        change(state)
        with Checkpoint(half_way) as checkpoint:
            checkpoint.write(state, failures)

    content = half_way.read_bytes()
    changes: list[Any] = [
        lambda state: state.pop("counts"),
        lambda state: state.pop("asked"),
        lambda state: state.update(counts=[61, *state["counts"][1:]]),
        lambda state: state.update(counts=[-1, *state["counts"][1:]]),
        lambda state: state.update(counts=state["counts"][1:]),
        lambda state: state.update(pending="x"),
        lambda state: state.update(codes=np.zeros(3)),
        lambda state: state.update(optimizer=state["optimizer"][:-9]),
    ]
    for change in changes:
        half_way.write_bytes(content)
        write(change)
        with pytest.raises(ValueError, match=r"run.* is damaged.*; .*resume='never' begins"):
            resumed(half_way)


def test_two_runs_on_one_checkpoint_exclude_each_other(script: Any, tmp_path: Path) -> None:
    text = """
        import os, pathlib, signal, sys, racecars
        def fun(x):
            if os.fork() == 0:  # a process that outlives the run does not keep the lock
                pathlib.Path("child").write_text(str(os.getpid()))
                signal.pause()
            pathlib.Path("evaluating").touch()
            signal.pause()
        racecars.minimize(fun, [(-5, 5)] * 4, maxfev=300, rng=5, checkpoint="run")
    """
    path = tmp_path / "run"
    process = script(text)
    wait_until((tmp_path / "evaluating").exists)
    content = path.read_bytes()
    for resume in ("auto", "must", "never"):
        with pytest.raises(BlockingIOError, match="run is in use by another run"):
            racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path, resume=resume)
    assert path.read_bytes() == content
    process.kill()
    process.wait()
    try:
        assert racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path).nfev == 300
    finally:
        wait_until((tmp_path / "child").exists)
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
        process.communicate()


def test_runs_that_begin_together_exclude_each_other(script: Any, tmp_path: Path) -> None:
    runs = [
        script(
            """
            import os, pathlib, sys, time, racecars
            pathlib.Path(f"ready-{os.getpid()}").touch()
            while not pathlib.Path("go").exists():
                pass
            try:
                fun = lambda x: time.sleep(0.01) or 0.0
                racecars.minimize(fun, [(0, 1)], maxfev=100, rng=1, checkpoint="run")
            except BlockingIOError:
                sys.exit(3)
            """
        )
        for _ in range(4)
    ]
    wait_until(lambda: len(list(tmp_path.glob("ready-*"))) == len(runs))
    for ready in tmp_path.glob("ready-*"):
        ready.unlink()
    (tmp_path / "go").touch()
    ends = sorted(run.wait() for run in runs)
    for run in runs:
        run.communicate()
    assert ends == [0, 3, 3, 3]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["go", "run", "script.py"]


def test_a_checkpoint_within_a_run_of_the_same_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"

    def fun(x: Any) -> float:
        with pytest.raises(BlockingIOError, match="in use"):
            racecars.minimize(sphere, BOUNDS, maxfev=1, checkpoint=path)
        return 0.0

    racecars.minimize(fun, BOUNDS, maxfev=2, checkpoint=path, on_error="raise")


def test_a_run_does_not_overwrite_what_took_the_place_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "run"

    def replace(intermediate_result: Any) -> None:
        if intermediate_result.nit == 100:
            path.unlink()
            path.write_text("mine")

    with pytest.warns(RuntimeWarning, match=r"could not be written.*in use by another run"):
        res = racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path, callback=replace)
    assert res.nfev == 300 and "checkpoint could not be written" in res.message
    assert path.read_text() == "mine"

    def remove(intermediate_result: Any) -> None:
        if intermediate_result.nit == 100:
            path.unlink()

    path.unlink()
    racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=path, callback=remove)
    res = racecars.minimize(lambda x: pytest.fail("evaluated"), BOUNDS, **KEYWORDS, checkpoint=path)
    assert res.nfev == 300


def test_symbolic_links(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    target, link = tmp_path / "disk" / "target", tmp_path / "link"
    link.symlink_to(target)
    for resume in ("auto", "must", "never"):
        with pytest.raises(FileNotFoundError, match=r"link is a symbolic link to .*target, which"):
            racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=link, resume=resume)
    racecars.minimize(sphere, BOUNDS, maxfev=30, rng=5, checkpoint=target)
    old = target.read_bytes()
    assert racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=link).nfev == 300
    assert link.is_symlink() and target.read_bytes() != old
    assert [path.name for path in target.parent.iterdir()] == ["target"]
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(FileNotFoundError, match="link is a symbolic link to"):
        racecars.minimize(sphere, BOUNDS, **KEYWORDS, checkpoint=link)


def test_a_full_disk_warns_and_the_run_continues(script: Any, tmp_path: Path) -> None:
    process = script(
        """
        import pathlib, resource, warnings, racecars
        def limit(size):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        def run(maxfev, callback=None):
            return racecars.minimize(lambda x: float((x**2).sum()), [(-5, 5)] * 4, maxfev=maxfev,
                rng=5, checkpoint="run", callback=callback)
        def no_room(intermediate_result):
            limit(100)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(100)
            old = pathlib.Path("run").read_bytes()
            res = run(300, no_room)
            assert res.nfev == 300 and "could not be written: [Errno 27]" in res.message
            assert pathlib.Path("run").read_bytes() == old
            limit(resource.RLIM_INFINITY)
            again = run(300)
            assert again.nfev == 300 and (again.history == res.history).all()
            limit(100)
            racecars.minimize(lambda x: 0.0, [(0, 1)], maxfev=9, checkpoint="other")
        texts = [str(one.message) for one in caught]
        assert len(texts) == 2, texts
        assert "run could not be written: [Errno 27]" in texts[0] and "it has 100 e" in texts[0]
        assert "there is none" in texts[1]
        """
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "script.py"]


def wait_until(happened: Any, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)
