"""Spaces: what is understood, and what is refused in which words."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import racecars
from racecars.space import space_of

MIXED = {
    "rate": (1e-5, 1e-1, "log"),
    "depth": range(1, 9),
    "width": range(16, 65, 16),
    "act": ["relu", None, np.tanh],
    "bias": bool,
    "units": racecars.Integer(8, 512, log=True),
    "drop": racecars.Real(0, 1, step=0.25),
    "level": racecars.Choice(["low", "mid", "high"], ordered=True),
    "w": racecars.Real(-1, 1, count=3),
}


def test_every_kind_of_coordinate_is_decoded_as_it_was_given() -> None:
    optimizer = racecars.Optimizer(MIXED, rng=1)
    for _ in range(200):
        candidate = optimizer.ask()
        p = candidate.params
        assert 1e-5 <= p["rate"] <= 1e-1
        assert p["depth"] in range(1, 9) and type(p["depth"]) is int
        assert p["width"] in range(16, 65, 16)
        assert p["act"] in ("relu", None, np.tanh)
        assert type(p["bias"]) is bool
        assert 8 <= p["units"] <= 512
        assert p["drop"] in (0, 0.25, 0.5, 0.75, 1)
        assert p["level"] in ("low", "mid", "high")
        assert p["w"].shape == (3,)
        again = optimizer.space.params(candidate.x)
        assert {**again, "w": 0} == {**p, "w": 0}
        np.testing.assert_array_equal(optimizer.space.x(p), candidate.x)
        optimizer.tell(candidate, p["rate"])


def test_bounds_of_scipy_integrality_and_fixed_coordinates() -> None:
    bounds = scipy.optimize.Bounds([0, -3, 2], [1, 3.5, 2])
    optimizer = racecars.Optimizer(bounds, integrality=[False, True, False], rng=1)
    points = optimizer.ask(50)
    assert points.shape == (50, 3)
    assert (points[:, 2] == 2).all()
    assert set(points[:, 1]) <= set(range(-3, 4))
    assert ((points[:, 0] >= 0) & (points[:, 0] <= 1)).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([(0, math.nan)], "bounds[0]: high is nan, not a finite number"),
        ([(0, 1), (-math.inf, 1)], "bounds[1]: low is -inf, not a finite number"),
        ([(0, 1), (2, 1)], "bounds[1]: low 2.0 is above high 1.0"),
        ([], "bounds are empty"),
        ([(1, 2, 3)], "bounds must be pairs"),
        (3, "bounds must be pairs"),
        ({}, "empty dict"),
        ({"a": []}, "coordinate `a`: the list of choices is empty"),
        ({"a": range(3, 3)}, "coordinate `a`: range(3, 3) is empty"),
        ({"a": (1.0, 0.0)}, "coordinate `a`: low 1 is not below high 0"),
        ({"a": (0, 1, "log")}, "coordinate `a`: low 0 is not positive"),
        ({"a": (1, 2, "lag")}, "scale 'lag' is not one of 'linear', 'log'"),
        ({"a": [1, 1.0]}, "coordinate `a`: 1 is repeated among the choices"),
        ({"a": "abc"}, "coordinate `a`: 'abc' is not a pair"),
        ({"a": (0, math.nan)}, "coordinate `a`: high is NaN"),
        ({"a": racecars.Real(0, 1, step=0.3)}, "step 0.3 does not fit"),
    ],
)
def test_what_cannot_be_searched_is_refused(given: Any, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        space_of(given)
    assert words in str(refused.value)


def test_integrality_that_leaves_nothing_or_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no integer lies between 0\.2 and 0\.8"):
        space_of([(0.2, 0.8)], integrality=[True])
    with pytest.raises(ValueError, match="takes one flag or 2"):
        space_of([(0, 1)] * 2, integrality=[True] * 3)
    with pytest.raises(TypeError, match="not a string"):
        space_of({1: (0, 1)})


@pytest.mark.parametrize("given", [MIXED, [(-1.0, 2.0)] * 3])
def test_spaces_are_pickled_with_the_objects_of_their_choices(given: Any) -> None:
    space = space_of(given)
    copy = pickle.loads(pickle.dumps(space))
    assert copy == space and copy.is_by_name == space.is_by_name
    x = racecars.Optimizer(space, rng=1).ask().x
    np.testing.assert_equal(copy.params(x), space.params(x))
