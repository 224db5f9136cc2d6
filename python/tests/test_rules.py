"""Conditions, known constraints, orders, selections and shares."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import racecars
from racecars import Permutation, Simplex, Subset, when
from racecars.space import space_of

TREE = {
    "kernel": ["linear", "poly", "rbf"],
    "degree": when("kernel = poly", range(2, 6)),
    "gamma": when("kernel in (poly, rbf)", (1e-4, 1.0, "log")),
    "steps": when("degree > 3", racecars.Real(0, 1, count=2)),
}


def loss(params: dict[str, Any]) -> float:
    """Knows which parameters are there."""
    kernel = params["kernel"]
    assert ("degree" in params) == (kernel == "poly")
    assert ("gamma" in params) == (kernel != "linear")
    assert ("steps" in params) == (params.get("degree", 0) > 3)
    steps = float(np.sum(params["steps"])) if "steps" in params else 2.0
    return steps + {"linear": 1.0, "poly": 0.0, "rbf": 2.0}[kernel]


@pytest.mark.parametrize("method", ["auto", "race-cars", "gp", "de", "evolution", "random"])
def test_inactive_parameters_are_not_there(method: str) -> None:
    res = racecars.minimize(loss, space=TREE, maxfev=80, rng=1, method=method)
    assert res.fun < 1
    assert res.params["kernel"] == "poly" and res.params["degree"] > 3
    inactive = np.isnan(np.array([trial.x for trial in res.trials]))
    assert inactive.any() and not inactive[:, 0].any()


def test_spaces_with_rules_survive_pickle_and_checkpoints(tmp_path: Path) -> None:
    space = space_of(TREE, where="not (kernel = poly and gamma > 0.5)")
    again = pickle.loads(pickle.dumps(space))
    assert again == space and again != space_of(TREE)
    whole = racecars.minimize(loss, space=TREE, maxfev=40, rng=2)
    path = tmp_path / "run.ckpt"
    racecars.minimize(loss, space=TREE, maxfev=20, rng=2, checkpoint=path)
    resumed = racecars.minimize(loss, space=TREE, maxfev=40, rng=2, checkpoint=path)
    assert resumed.nfev == whole.nfev == 40


def test_every_point_satisfies_where() -> None:
    def inside(x: Any) -> float:
        assert x.sum() <= 1.5 + 1e-12 and x[0] < x[1]
        return float(((x - 1) ** 2).sum())

    res = racecars.minimize(
        inside, [(0, 1)] * 5, where=["sum(x) <= 1.5", "x[0] < x[1]"], maxfev=600, rng=1
    )
    # The optimum has a sum of 1.5: (3.5 / 5)^2 * 5.
    assert res.nfev == 600 and res.fun < 2.5
    other = racecars.minimize(
        lambda x: float(x[2]),
        [(0, 1), (0, 2), (0, 3)],
        where="x[2] > x[0] + x[1]",
        maxfev=50,
        rng=1,
    )
    assert other.x[2] > other.x[0] + other.x[1]


def near_the_diagonal(x: Any) -> bool:
    return bool(abs(x - x[0]).max() < 0.2)


def test_every_point_satisfies_functions() -> None:
    calls = []

    def objective(x: Any) -> float:
        assert near_the_diagonal(x) and x[0] < 0.9
        calls.append(1)
        return float(((x - 1) ** 2).sum())

    where = ["x[0] < 0.9", near_the_diagonal]
    for method in ("auto", "race-cars", "cma-es", "gp", "random"):
        calls.clear()
        res = racecars.minimize(
            objective, [(0, 1)] * 4, where=where, maxfev=60, rng=1, method=method
        )
        assert res.nfev == res.nit == len(calls) == 60


def test_functions_get_dicts_and_only_what_texts_allow() -> None:
    def allowed(p: dict[str, Any]) -> bool:
        assert ("degree" in p) == (p["kernel"] == "poly")
        assert p.get("gamma", 0) < 0.5
        return bool(p["kernel"] != "linear" and p.get("degree", 3) == 3)

    def objective(p: dict[str, Any]) -> float:
        assert allowed(p)
        return loss(p)

    where = ["gamma < 0.5", allowed]
    res = racecars.minimize(objective, space=TREE, where=where, maxfev=50, rng=1)
    assert res.params["kernel"] == "poly" and res.params["degree"] == 3
    racecars.minimize(objective, space=TREE, where=where, maxfev=10, rng=1, workers=2)


def test_a_small_space_with_a_function_is_exhausted() -> None:
    space = {"i": range(30), "j": range(30)}
    res = racecars.minimize(
        lambda p: -p["j"],
        space=space,
        where=lambda p: p["i"] == p["j"],
        maxfev=100,
        rng=1,
        noise="no",
    )
    assert res.stop_reason == "exhausted" and res.nfev == 30 and res.fun == -29


def test_functions_are_not_saved_but_given_again(tmp_path: Path) -> None:
    bounds, where = [(0, 1)] * 3, near_the_diagonal

    def run(maxfev: int, **keywords: Any) -> Any:
        return racecars.minimize(
            lambda x: float(((x - 1) ** 2).sum()), bounds, maxfev=maxfev, rng=1, **keywords
        )

    one = racecars.Optimizer(bounds, where=where, rng=1)
    one.tell(one.ask(), 1.0)
    for again in (
        pickle.loads(pickle.dumps(one)),
        racecars.Optimizer.from_bytes(one.to_bytes(), bounds, where),
    ):
        assert (
            again.ask(5) == racecars.Optimizer.from_bytes(one.to_bytes(), one.space).ask(5)
        ).all()
    with pytest.raises(ValueError, match="only its name is known"):
        racecars.Optimizer.from_bytes(one.to_bytes())
    with pytest.raises(ValueError, match="only its name is known"):
        racecars.Optimizer.from_bytes(one.to_bytes(), bounds)
    whole = run(40, where=where)
    for keywords in ({"checkpoint": tmp_path / "run.ckpt"}, {"study": tmp_path / "study"}):
        run(20, where=where, **keywords)
        resumed = run(40, where=where, **keywords)
        assert resumed.nfev == 40 and all(near_the_diagonal(trial.x) for trial in resumed.trials)
        assert (resumed.history[:20] == whole.history[:20]).all()
        with pytest.raises(ValueError):
            run(60, where=lambda x: True, **keywords)


def test_what_functions_do_wrong() -> None:
    def run(where: Any, bounds: Any = ((0, 1), (0, 1))) -> Any:
        return racecars.minimize(lambda x: float(x[0]), bounds, where=where, maxfev=20, rng=1)

    with pytest.raises(ZeroDivisionError):
        run(lambda x: bool(1 / 0))
    calls = iter(range(1000))
    with pytest.raises(KeyError):  # while it proposes
        run(lambda x: next(calls) < 540 or {}["missing"])
    with pytest.raises(TypeError, match="must return True"):
        run(lambda x: x[0] - 0.5)
    with pytest.raises(ValueError, match="constraint function `nothing`: no point was found"):

        def nothing(x: Any) -> bool:
            return False

        run(["x[0] > x[1]", nothing])
    with pytest.warns(UserWarning, match="of the ranges satisfies the constraints; `<lambda>`"):
        assert run(lambda x: bool(x[0] + x[1] < 0.1)).fun < 0.1


def test_orders_selections_and_shares() -> None:
    items = [object(), object(), object(), object()]
    space = {"order": Permutation(8), "pick": Subset(items, (1, 2)), "mix": Simplex(3)}

    def cost(p: dict[str, Any]) -> float:
        assert sorted(p["order"]) == list(range(8))
        assert 1 <= len(p["pick"]) <= 2 and all(item in items for item in p["pick"])
        assert abs(p["mix"].sum() - 1) < 1e-9 and (p["mix"] >= 0).all()
        misplaced = sum(place != item for place, item in enumerate(p["order"]))
        return misplaced + len(p["pick"]) + float(p["mix"][0])

    res = racecars.minimize(cost, space=space, maxfev=1500, rng=1)
    assert res.params["order"] == list(range(8)) and res.fun < 1.2
    table = res.to_dataframe()
    assert {len(pick) for pick in table["pick"]} == {1, 2}
    assert (table[[f"order[{i}]" for i in range(8)]].sum(axis=1) == 28).all()
    start = {"order": list(range(8)), "pick": items[:1], "mix": [0.0, 0.5, 0.5]}
    assert racecars.minimize(cost, space=space, x0=start, maxfev=1, rng=1).fun == 1


def test_a_study_of_a_space_with_rules_is_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    racecars.minimize(loss, space=TREE, where="gamma < 0.9", maxfev=20, rng=1, study=folder)
    res = racecars.minimize(loss, space=TREE, where="gamma < 0.9", maxfev=30, rng=1, study=folder)
    assert len(res.trials) == 30
    frame = res.to_dataframe()
    assert frame["degree"].isna().any() and frame["kernel"].notna().all()


def test_mistakes_are_named() -> None:
    def error(kind: type[Exception], **keywords: Any) -> str:
        with pytest.raises(kind) as caught:
            racecars.minimize(lambda x: 0.0, maxfev=2, **keywords)
        return str(caught.value)

    space = {"a": (0.0, 1.0), "m": ["x", "y"]}
    assert "no point was found" in error(ValueError, space=space, where="a > 2")
    assert "neither a name nor a value" in error(ValueError, space=space, where="a > b")
    assert "nor a function that takes a point" in error(TypeError, space=space, where=[3])
    assert "is not a pair" in error(ValueError, space={**space, "b": when("m = x", object())})
    assert "cannot be selected" in error(ValueError, space={"p": Subset(["a"], 2)})
    takes = error(
        ValueError, space={"a": (0.0, 1.0), "b": (0.0, 1.0)}, where="a < b", method="zo-adam"
    )
    assert "without conditions, constraints" in takes
