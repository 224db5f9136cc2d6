"""The result of a run: SciPy's ``OptimizeResult`` with a little more."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

    from racecars.optimizer import Optimizer
    from racecars.trials import Trials

    class _Base(dict[str, Any]):
        x: NDArray[np.float64]
        fun: float
        params: dict[str, Any]
        nfev: int
        nit: int
        success: bool
        status: int
        message: str
        best_evaluations: int
        stop_reason: str
        history: NDArray[np.float64]
        trials: Trials
        n_failed: int
        n_infeasible: int
        errors: list[Failure]
        maxcv: float
        portfolio: dict[str, Any]
        optimizer: Optimizer
        time: float

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


class Plots:
    """The plots of a result, which need matplotlib: see :mod:`racecars.plot`."""

    def __init__(self, res: OptimizeResult) -> None:
        self._res = res

    def __call__(self, ax: Any = None, *, log: bool | None = None) -> Any:
        """Draws the values and the best so far over the evaluations, and returns the axes.

        ``log`` draws the distance from the best value on a logarithmic axis, which shows how the
        run converged; by default it does where a quarter of the values is a hundred times closer
        to the best than the farthest. The best value itself has no place on that axis. ``ax`` are
        the axes to draw on.
        """
        from racecars import plot

        return plot.progress(self._res, ax, log=log)

    def importance(self, ax: Any = None, **keywords: Any) -> Any:
        """How much each parameter matters: :func:`racecars.plot.importance`."""
        from racecars import plot

        return plot.importance(self._res, ax, **keywords)

    def slices(self, names: Iterable[str] | None = None, **keywords: Any) -> Any:
        """The value over each parameter: :func:`racecars.plot.slices`."""
        from racecars import plot

        return plot.slices(self._res, names, **keywords)

    def parallel(self, names: Iterable[str] | None = None, ax: Any = None) -> Any:
        """The best tenth as lines over the parameters: :func:`racecars.plot.parallel`."""
        from racecars import plot

        return plot.parallel(self._res, names, ax)

    def region(self, names: Iterable[str] | None = None) -> Any:
        """Where the search looked over time: :func:`racecars.plot.region`."""
        from racecars import plot

        return plot.region(self._res, names)


class OptimizeResult(_Base):
    """The result of :func:`racecars.minimize`: a dict whose keys are attributes.

    ``x``, ``fun``, ``nfev``, ``nit``, ``success``, ``status`` and ``message`` are as in SciPy;
    ``params`` is the best point by name, where the space is a dict. Further:

    - ``best_evaluations``: the number of evaluations that ``fun`` is the mean of; 1, unless the
      function is noisy and the best point was re-evaluated
    - ``stop_reason``: the name of the reason why the run stopped, as in studies and in Rust
    - ``history``: the value of each point in the order told, NaN where it failed or violates a
      constraint
    - ``trials``: all evaluations with their points, see :class:`racecars.trials.Trials`; those of a
      run resumed from a checkpoint since then
    - ``n_failed``, ``n_infeasible``: the numbers of these; ``errors`` has the first failures
    - ``maxcv``: the violation of the constraints at ``x``
    - ``portfolio``, where the method is a portfolio such as ``"auto"``: what was decided, and what
      each member did
    - ``optimizer``: continues where this run ended, by ``minimize(..., method=res.optimizer)``;
      after :func:`racecars.maximize`, it minimizes the negated function
    - ``time``: the seconds that the run took
    """

    @property
    def best_so_far(self) -> NDArray[np.float64]:
        """The best value up to each evaluation, NaN before the first.

        Where the function is noisy, that is the luckiest value; ``fun`` is a mean.
        """
        trials = self.get("trials")
        better = np.fmax if trials is not None and trials.maximize else np.fmin
        best: NDArray[np.float64] = better.accumulate(self["history"])
        return best

    def to_dataframe(self) -> pandas.DataFrame:
        """The trials as a pandas data frame, see :meth:`racecars.trials.Trials.to_dataframe`."""
        return self["trials"].to_dataframe()

    def report(
        self, path: str | os.PathLike[str] | None = None, *, show: bool | None = None
    ) -> Path:
        """Writes the page about the run, as ``racecars report`` does for a study, and returns its
        path: ``path``, or ``report.html`` in the study's folder, or a temporary file.

        ``show`` opens it in the browser; by default it does where no ``path`` is given and Python
        runs interactively. It needs no network.
        """
        import sys
        import tempfile
        import webbrowser

        from racecars import _core

        folder, _keeper = self["trials"]._folder()
        if show is None:
            show = path is None and hasattr(sys, "ps1")
        if path is not None:
            page = Path(path)
        elif _keeper is None:
            page = Path(folder) / "report.html"
        else:
            page = Path(tempfile.mkdtemp(prefix="racecars-")) / "report.html"
        _core.write_report(folder, os.fspath(page))
        if show:
            webbrowser.open(page.absolute().as_uri())
        return page

    @property
    def plot(self) -> Plots:
        """``res.plot()`` draws the progress; ``res.plot.importance()`` and so on draw more."""
        return Plots(self)

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
