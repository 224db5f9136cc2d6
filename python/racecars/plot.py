"""Plots of a run: of a result, its trials, or the folder of a study. They need matplotlib.

Each takes the axes to draw on, or makes a figure, and returns the axes. Parameters are chosen by
``names``, or are those that matter most. Importance and region are computed by the code of the
report's page (``racecars report``, :meth:`racecars.OptimizeResult.report`).
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from racecars import _core
from racecars._needs import need
from racecars.trials import Trials, trials_of

if TYPE_CHECKING:
    from racecars.result import OptimizeResult

__all__ = ["importance", "parallel", "progress", "region", "slices"]

# The most parameters that are drawn unless they are named.
MAX_BARS, MAX_SLICES, MAX_LINES = 20, 9, 12
# The most trials of a plot; of more, some are drawn evenly.
MAX_DRAWN = 3000
# Values that span this factor are drawn on a logarithmic axis.
LOG_FROM = 100.0
POINTS: dict[str, Any] = {"s": 8, "linewidths": 0, "cmap": "viridis"}


def progress(res: OptimizeResult, ax: Any = None, *, log: bool | None = None) -> Any:
    """The values and the best so far over the evaluations, see
    :meth:`racecars.OptimizeResult.plot`."""
    plt = _pyplot()
    ax = plt.subplots()[1] if ax is None else ax
    values, best = np.asarray(res["history"]), res.best_so_far
    numbers, sign = np.arange(1, len(values) + 1), -1.0 if res["trials"].maximize else 1.0
    label = "fun"
    known = best[np.isfinite(best)]
    if log is None:
        away = sign * (values - known[-1]) if len(known) else known
        away = away[np.isfinite(away) & (away > 0)]
        log = len(away) > 2 and away.max() > LOG_FROM * np.quantile(away, 0.25)
    if log and len(known):
        values, best = sign * (values - known[-1]), sign * (best - known[-1])
        values, best = np.where(values > 0, values, np.nan), np.where(best > 0, best, np.nan)
        ax.set_yscale("log")
        label = f"fun, above the best of {known[-1]:.6g}"
        if sign < 0:
            label = f"fun, below the best of {known[-1]:.6g}"
    drawn = _evenly(len(values))
    ax.plot(numbers[drawn], values[drawn], ".", markersize=2, alpha=0.4, label="value")
    ax.step(numbers, best, where="post", label="best so far")
    ax.set_xlabel("evaluations")
    ax.set_ylabel(label)
    ax.legend()
    return ax


def importance(source: Any, ax: Any = None, *, most: int = MAX_BARS) -> Any:
    """How much each parameter matters: the share of the variation of the values that comes from it,
    alone or together with others.

    It takes 40 evaluations. The shares add up to what the parameters explain; the rest is noise, or
    what a model of so many trials cannot see.
    """
    plt = _pyplot()
    data = _data(trials_of(source, "source"))
    if not data["importance"]["possible"]:
        used = data["importance"]["used"]
        raise ValueError(f"importance takes 40 evaluations that differ; there are {used}")
    rows = [(row["name"], row["importance"] or 0.0) for row in data["parameters"]][:most]
    if ax is None:
        ax = plt.subplots(figsize=(6.0, 1.2 + 0.28 * len(rows)), layout="constrained")[1]
    names, shares = [name for name, _ in rows], [share for _, share in rows]
    ax.barh(range(len(rows)), shares)
    ax.set_yticks(range(len(rows)), names)
    ax.invert_yaxis()
    explained = data["importance"]["explained"]
    ax.set_xlabel(f"share of the variation (all together explain {explained:.0%})")
    total = data["importance"]["parameters"]
    if total > len(rows):
        ax.set_title(f"{len(rows)} of {total} parameters", fontsize="medium")
    return ax


def slices(source: Any, names: Iterable[str] | None = None, *, log: bool | None = None) -> Any:
    """The value of each evaluation over each of the parameters, later ones lighter; the best has a
    ring. Returns an array of axes.

    ``log`` draws values on a logarithmic axis; by default it does where all are above 0 and span a
    factor of 100. Parameters on a log scale have a logarithmic axis.
    """
    plt = _pyplot()
    trials = trials_of(source, "source")
    chosen = _chosen(trials, names, MAX_SLICES)
    across = min(3, len(chosen))
    down = math.ceil(len(chosen) / across)
    size = (3.4 * across + 0.8, 2.6 * down + 0.2)
    figure, axes = plt.subplots(
        down, across, figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    finite = np.flatnonzero(trials.outcome == "value")
    if len(finite) == 0:
        raise ValueError("no trial has a value to draw")
    drawn = finite[_evenly(len(finite))]
    value, number = trials.value, trials.number
    best = finite[(value[finite].argmax if trials.maximize else value[finite].argmin)()]
    if log is None:
        low, high = value[drawn].min(), value[drawn].max()
        log = bool(low > 0 and high > LOG_FROM * low)
    points = None
    for ax, i in zip(axes.flat, chosen):
        ranges = _Range(trials, i)
        points = ax.scatter(ranges.places(drawn), value[drawn], c=number[drawn], **POINTS)
        ring = {"s": 60, "facecolors": "none", "edgecolors": "tab:red", "linewidths": 1.5}
        ax.scatter(ranges.at[best], value[best], **ring)
        ranges.label(ax.xaxis, ax.set_xscale)
        ax.set_xlabel(trials.space.coordinates[i])
        if log:
            ax.set_yscale("log")
    for ax in axes.flat[len(chosen) :]:
        ax.set_visible(False)
    for row in axes:
        row[0].set_ylabel("value")
    figure.colorbar(points, ax=axes, label="evaluation")
    return axes


def parallel(source: Any, names: Iterable[str] | None = None, ax: Any = None) -> Any:
    """Every evaluation as a line over the parameters, each scaled to its range, coloured by the
    rank of its value: the best tenth in colour, the others grey."""
    plt = _pyplot()
    trials = trials_of(source, "source")
    chosen = _chosen(trials, names, MAX_LINES)
    if ax is None:
        size = (1.6 + 1.1 * len(chosen), 4.2)
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    finite = np.flatnonzero(trials.outcome == "value")
    if len(finite) == 0:
        raise ValueError("no trial has a value to draw")
    signed = -trials.value if trials.maximize else trials.value
    order = finite[np.argsort(signed[finite], kind="stable")]
    tenth = order[: max(1, len(order) // 10)]
    others = order[len(tenth) :]
    ranges = [_Range(trials, i) for i in chosen]
    places = np.stack([one.share() for one in ranges], axis=1)
    xs = np.arange(len(chosen))
    lines = places[others[_evenly(len(others), 400)]]
    ax.plot(xs, lines.T, color="0.8", linewidth=0.6, zorder=1)
    shown = tenth[_evenly(len(tenth), 250)][::-1]
    colours = plt.get_cmap("viridis")(np.linspace(0.95, 0.1, len(shown)))
    for row, colour in zip(shown, colours):
        ax.plot(xs, places[row], color=colour, linewidth=0.9, zorder=2)
    ax.plot(xs, places[order[0]], color="tab:red", linewidth=2, zorder=3, label="best")
    for at, one in enumerate(ranges):
        ax.axvline(at, color="0.3", linewidth=0.8, zorder=0)
        for place, text in one.ends():
            anchor = "bottom" if place > 0.5 else "top"
            offset = 0.02 if place > 0.5 else -0.02
            if 0.0 < place < 1.0:
                anchor, offset = "center", 0.0
            ax.text(at + 0.03, place + offset, text, fontsize="x-small", va=anchor)
    ax.set_xticks(xs, [trials.space.coordinates[i] for i in chosen])
    ax.tick_params(axis="x", pad=12, length=0)
    ax.set_yticks([])
    ax.set_ylim(-0.04, 1.04)
    ax.set_xlim(-0.15, max(len(chosen) - 1, 0) + 0.35)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_title(f"{len(order)} evaluations; the best tenth in colour", fontsize="medium", pad=14)
    ax.legend(loc="upper right", fontsize="small")
    return ax


def region(source: Any, names: Iterable[str] | None = None) -> Any:
    """Where the search looked over time, by parameter: the shrinking region of RACE-CARS, or, of
    other methods, the range of nine tenths of what was proposed. Returns an array of axes."""
    plt = _pyplot()
    trials = trials_of(source, "source")
    data = _data(trials)
    found = data["region"]
    if found is None:
        raise ValueError("there are too few evaluations for a region: it takes two dozen")
    shown = [row["name"] for row in data["parameters"]]
    steps = np.array(found["told"])
    low, high = (_unpacked(found[side]).reshape(len(shown), -1) for side in ("low", "high"))
    chosen = _chosen(trials, names, MAX_SLICES)
    across = min(3, len(chosen))
    down = math.ceil(len(chosen) / across)
    size = (3.4 * across, 2.4 * down + 0.4)
    figure, axes = plt.subplots(
        down, across, figsize=size, sharex=True, squeeze=False, layout="constrained"
    )
    ends = np.append(steps, max(len(trials) * trials.stride, steps[-1] + 1))
    for ax, i in zip(axes.flat, chosen):
        name, one = trials.space.coordinates[i], _Range(trials, i)
        row = shown.index(name)
        sides = [
            np.append(one.at_share(side[row]), one.at_share(side[row][-1:])) for side in (low, high)
        ]
        ax.fill_between(ends, *sides, step="post", alpha=0.35)
        drawn = _evenly(len(trials))
        ax.plot(
            trials.number[drawn], one.places(drawn), ".", markersize=1.5, color="0.35", alpha=0.5
        )
        one.label(ax.yaxis, ax.set_yscale)
        ax.set_title(name, fontsize="medium")
    for ax in axes.flat[len(chosen) :]:
        ax.set_visible(False)
    what = "the region" if found["source"] == "region" else "nine tenths of the proposals"
    figure.supxlabel(f"evaluations (shaded: {what})", fontsize="medium")
    return axes


class _Range:
    """The range of a coordinate, and where the trials are in it."""

    def __init__(self, trials: Trials, i: int) -> None:
        self.kind, self.low, self.high, self.is_log, self.labels = trials.space.ranges[i]
        self.at: NDArray[np.float64] = trials.x[:, i]
        numbers = _numbers(self.labels)
        if self.kind == "choice" and numbers is not None:
            # Numbers that are choices are numbers in arrays, too.
            self.kind, self.low, self.high = "real", min(numbers), max(numbers)

    def places(self, rows: Any) -> Any:
        """Where to draw trials: choices are spread a little, so that they can be counted."""
        at = self.at[rows]
        if self.kind != "choice":
            return at
        return at + np.random.default_rng(0).uniform(-0.25, 0.25, len(at))

    def share(self) -> Any:
        """Where the trials are, from 0 to 1."""
        low, high, at = self.low, self.high, self.at
        if self.is_log:
            low, high, at = math.log(low), math.log(high), np.log(at)
        return (at - low) / ((high - low) or 1.0)

    def at_share(self, share: Any) -> Any:
        """The value at a place of the report's axes, on which discrete values own cells."""
        low, high = self.low, self.high
        if self.kind != "real":
            low, high = low - 0.5, high + 0.5
        if self.is_log:
            return np.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        return low + share * (high - low)

    def label(self, axis: Any, set_scale: Any) -> None:
        """Labels an axis."""
        if self.is_log:
            set_scale("log")
        if self.kind == "choice" and len(self.labels) <= 30:
            shown = [text if len(text) <= 14 else text[:13] + "…" for text in self.labels]
            axis.set_ticks(range(len(shown)), shown)
            longest = sum(map(len, shown))
            if axis.axis_name == "x" and longest > 24:
                axis.set_tick_params(rotation=40)
        elif self.kind == "integer" and not self.is_log:
            from matplotlib.ticker import MaxNLocator

            axis.set_major_locator(MaxNLocator(nbins=6, integer=True))

    def ends(self) -> list[tuple[float, str]]:
        """Places and texts for an axis from 0 to 1."""
        if self.kind == "choice" and 1 < len(self.labels) <= 12:
            last = len(self.labels) - 1
            return [(i / last, text[:14]) for i, text in enumerate(self.labels)]
        if self.kind == "choice":
            return [(0.0, self.labels[0][:14]), (1.0, self.labels[-1][:14])]
        return [(0.0, f"{self.low:.4g}"), (1.0, f"{self.high:.4g}")]


def _numbers(labels: list[str]) -> list[float] | None:
    try:
        return [float(label) for label in labels] or None
    except ValueError:
        return None


def _chosen(trials: Trials, names: Iterable[str] | None, most: int) -> list[int]:
    """The coordinates to draw: those named, or those that matter most."""
    all_names = trials.space.coordinates
    if names is None:
        if len(all_names) <= most:
            return list(range(len(all_names)))
        places = {name: i for i, name in enumerate(all_names)}
        return [places[row["name"]] for row in _data(trials)["parameters"][:most]]
    chosen = []
    for name in [names] if isinstance(names, str) else names:
        of_array = [i for i, other in enumerate(all_names) if other.startswith(f"{name}[")]
        if name in all_names:
            of_array = [all_names.index(name)]
        if not of_array:
            some = ", ".join(all_names[:20])
            raise ValueError(f"there is no parameter `{name}`; there are {some}")
        chosen += of_array
    return chosen


def _data(trials: Trials) -> Any:
    """The numbers of the report's page."""
    folder, _keeper = trials._folder()
    return json.loads(_core.report_data(folder))


def _unpacked(text: str) -> Any:
    """Places that the report has packed."""
    return np.frombuffer(base64.b64decode(text), dtype="<u2") / 65535.0


def _evenly(count: int, most: int = MAX_DRAWN) -> Any:
    """At most so many indices, evenly."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).astype(int)


def _pyplot() -> Any:
    need("matplotlib", "plot", "racecars.plot")
    import matplotlib.pyplot as plt

    return plt
