"""Beside SciPy, and without it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import racecars


def test_as_a_method_of_scipys_minimize() -> None:
    seen: list[float] = []

    def callback(intermediate_result: Any) -> None:
        seen.append(intermediate_result.fun)

    res = scipy.optimize.minimize(
        lambda x, a: ((x - a) ** 2).sum(),
        [2.0, 2.0],
        args=(0.5,),
        bounds=Bounds([-5, -5], [5, 5]),
        constraints=LinearConstraint([[1, 0]], 1, np.inf),
        callback=callback,
        method=racecars.method,
        options={"maxfev": 600, "rng": 1},
    )
    assert isinstance(res, scipy.optimize.OptimizeResult)
    assert res.nfev == 600 and res.x[0] >= 1 and abs(res.fun - 0.25) < 1e-6
    assert res.history[0] == 4.5 and len(seen) == res.nit


def test_nonlinear_constraints_as_in_differential_evolution() -> None:
    ring = NonlinearConstraint(lambda x: x[0] ** 2 + x[1] ** 2, 1, 4)
    for keywords in ({}, {"vectorized": True}):
        res = racecars.minimize(
            lambda x: x[0] + x[1], [(-5, 5)] * 2, constraints=[ring], maxfev=3000, rng=1, **keywords
        )
        assert abs(res.fun + np.sqrt(8)) < 0.1
        assert 1 <= (res.x**2).sum() <= 4
    theirs = scipy.optimize.differential_evolution(
        lambda x: x[0] + x[1], [(-5, 5)] * 2, constraints=ring, rng=1
    )
    assert {"x", "fun", "nfev", "nit", "success", "message"} <= set(theirs) & set(res)


def test_scipy_is_optional(script: Any) -> None:
    process = script(
        """
        import sys
        sys.modules["scipy"] = sys.modules["scipy.optimize"] = None
        import racecars
        res = racecars.minimize(lambda x: (x**2).sum(), [(-1, 1)] * 2, maxfev=100, rng=1)
        assert res.nfev == 100 and "fun" in dir(res) and "fun" in repr(res)
        assert isinstance(res, dict)
        try:
            res.nothing
        except AttributeError:
            print("fine")
        """
    )
    output, errors = process.communicate(timeout=60)
    assert output == "fine\n", errors


def test_importing_is_quick(script: Any) -> None:
    process = script("import racecars, sys; print('scipy' in sys.modules)")
    assert process.communicate(timeout=60)[0] == "False\n"
    assert sys.modules["scipy"]
