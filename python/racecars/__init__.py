"""Black-box optimization for functions with no gradient, many coordinates and a price per call.

>>> import racecars
>>> res = racecars.minimize(lambda x: (x**2).sum(), [(-10, 10)] * 50, maxfev=5000, rng=1)
>>> bool(res.fun < 1)
True

:func:`minimize` and :func:`maximize` are SciPy-like, in one process or on many workers;
:class:`Optimizer` is ask and tell; :mod:`racecars.plot` draws results; :func:`settings` lists what
can be set of each of the :data:`METHODS`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from racecars._core import METHODS, Candidate, SpaceExhausted, __version__, settings
from racecars._minimize import maximize, method, minimize
from racecars._objective import Infeasible, Measured
from racecars.embedding import Embedding
from racecars.optimizer import Best, Optimizer
from racecars.space import Choice, Integer, Permutation, Real, Simplex, Space, Subset, when
from racecars.trials import Trial, Trials, read_study

if TYPE_CHECKING:
    from racecars import plot
    from racecars.result import Failure, OptimizeResult

__all__ = [
    "METHODS",
    "Best",
    "Candidate",
    "Choice",
    "Embedding",
    "Failure",
    "Infeasible",
    "Integer",
    "Measured",
    "OptimizeResult",
    "Optimizer",
    "Permutation",
    "Real",
    "Simplex",
    "Space",
    "SpaceExhausted",
    "Subset",
    "Trial",
    "Trials",
    "__version__",
    "maximize",
    "method",
    "minimize",
    "plot",
    "read_study",
    "settings",
    "when",
]


def __getattr__(name: str) -> Any:
    # SciPy takes long to import: not before the first result.
    if name in ("Failure", "OptimizeResult"):
        from racecars import result

        return getattr(result, name)
    # These need packages that may not be installed.
    if name in ("optuna", "plot", "ray"):
        return importlib.import_module(f"racecars.{name}")
    raise AttributeError(f"module 'racecars' has no attribute {name!r}")
