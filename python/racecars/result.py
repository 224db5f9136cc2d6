"""The result of a run: SciPy's ``OptimizeResult`` with a little more."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:

    class _Base(dict[str, Any]):
        def __getattr__(self, name: str) -> Any: ...

else:
    try:
        from scipy.optimize import OptimizeResult as _Base
    except ImportError:

        class _Base(dict):
            """SciPy's ``OptimizeResult`` where there is no SciPy."""

            def __getattr__(self, name):
                try:
                    return self[name]
                except KeyError:
                    raise AttributeError(name) from None

            __setattr__ = dict.__setitem__
            __delattr__ = dict.__delitem__

            def __dir__(self):
                return list(self.keys())

            def __repr__(self):
                width = max(map(len, self), default=0)
                lines = (f"{key.rjust(width)}: {value!r}" for key, value in self.items())
                return "\n".join(lines)


class Failure(NamedTuple):
    """An evaluation that failed, of which a result keeps the first few."""

    number: int
    """The index of the evaluation in ``history``."""
    x: NDArray[np.float64]
    kind: str
    """``"error"`` (an exception), ``"nan"`` (not a finite number), ``"timeout"`` or ``"lost"`` (the
    worker died)."""
    text: str
    """The reason in one line."""
    traceback: str
    error: BaseException | None
    """The exception itself, where it was raised in this process or could be sent to it."""

    def __repr__(self) -> str:
        parts = (f"{name}={_shown(value)}" for name, value in self._asdict().items())
        return f"{type(self).__name__}({', '.join(parts)})"


def _shown(value: Any) -> str:
    """A representation, also of an exception that has none."""
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


class OptimizeResult(_Base):
    """The result of :func:`racecars.minimize`: a dict whose keys are attributes.

    ``x``, ``fun``, ``nfev``, ``nit``, ``success``, ``status`` and ``message`` are as in SciPy;
    ``params`` is the best point by name, where the space is a dict. Further:

    - ``best_evaluations``: the number of evaluations that ``fun`` is the mean of; 1, unless the
      function is noisy and the best point was re-evaluated
    - ``stop_reason``: the name of the reason why the run stopped, as in studies and in Rust
    - ``history``: the value of each point in the order told, NaN where it failed or violates a
      constraint
    - ``n_failed``, ``n_infeasible``: the numbers of these; ``errors`` has the first failures
    - ``maxcv``: the violation of the constraints at ``x``
    - ``portfolio``, where the method is a portfolio such as ``"auto"``: what was decided, and what
      each member did
    - ``optimizer``: continues from where this run ended, by ``minimize(..., method=res.optimizer)``
    - ``time``: the seconds that the run took
    """

    @property
    def best_so_far(self) -> NDArray[np.float64]:
        """The lowest value up to each evaluation, NaN before the first.

        Where the function is noisy, that is the luckiest value; ``fun`` is a mean.
        """
        best: NDArray[np.float64] = np.fmin.accumulate(self["history"])
        return best

    def plot(self, ax: Any = None) -> Any:
        """Draws the values and the best so far over the evaluations; needs matplotlib."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            text = "res.plot() needs matplotlib: pip install 'racecars[plot]'"
            raise ImportError(text) from None
        ax = plt.subplots()[1] if ax is None else ax
        numbers = np.arange(1, len(self["history"]) + 1)
        ax.plot(numbers, self["history"], ".", markersize=2, alpha=0.4, label="value")
        ax.plot(numbers, self.best_so_far, label="best so far")
        ax.set_xlabel("evaluations")
        ax.set_ylabel("fun")
        ax.legend()
        return ax

    def _repr_html_(self) -> str:
        keys = ("message", "fun", "params", "x", "nfev", "n_failed", "n_infeasible")
        shown = {key: self[key] for key in keys if key in self and self[key] is not None}
        with np.printoptions(threshold=12, edgeitems=4, precision=6):
            cells = ((key, html.escape(str(value))) for key, value in shown.items())
            rows = "".join(f"<tr><th>{key}</th><td>{value}</td></tr>" for key, value in cells)
        return f"<table>{rows}</table>{self._curve()}"

    def _curve(self, width: int = 400, height: int = 120) -> str:
        """The best so far as a small picture."""
        best = self.best_so_far if "history" in self else np.empty(0)
        known = np.flatnonzero(np.isfinite(best))
        if len(known) < 2:
            return ""
        low, high = float(best[known].min()), float(best[known].max())
        places = known[np.linspace(0, len(known) - 1, min(len(known), width)).astype(int)]
        across = (places - places[0]) / max(places[-1] - places[0], 1) * width
        down = (high - best[places]) / ((high - low) or 1.0) * (height - 2) + 1
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down))
        return (
            f'<svg width="{width}" height="{height}" role="img">'
            f"<title>the best value over {len(best)} evaluations, from {high:.6g} to {low:.6g}"
            f'</title><polyline points="{points}" fill="none" stroke="currentColor"/></svg>'
        )
