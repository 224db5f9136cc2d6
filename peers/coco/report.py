"""The share of targets hit over the budget, as tables and curves."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from peers.coco.suites import SUITES, TARGETS
from peers.coco.trials import Trial
from peers.field.optimizers import PEERS
from peers.field.report import markdown, unique

# Ours have warm colours and thick lines, the others cool colours and thin lines.
COLORS = {
    "auto": "#c1272d",
    "race-cars": "#f08a24",
    "cma-es": "#b5179e",
    "pycma": "#0b6fa4",
    "ngopt": "#2a9d8f",
    "zoopt": "#6c757d",
    "scipy-de": "#8ab17d",
}


def share_hit(trials: list[Trial], per_dimension: float) -> float:
    """The share of pairs of a problem and a target that were hit within this many evaluations per
    dimension."""
    hit = sum(bisect.bisect_right(trial.hit_at, per_dimension * trial.dim) for trial in trials)
    return hit / (len(trials) * len(TARGETS)) if trials else 0.0


class Results:
    """The trials, by suite, budget and method."""

    def __init__(self, trials: list[Trial]) -> None:
        self.trials = trials
        self.methods = unique(trial.method for trial in trials)
        self.suites = [name for name in SUITES if any(trial.suite == name for trial in trials)]
        self.budgets = sorted({trial.budget // trial.dim for trial in trials})

    def of(self, suite: str, budget: int, method: str, dim: int | None = None) -> list[Trial]:
        return [
            trial
            for trial in self.trials
            if (trial.suite, trial.budget, trial.method) == (suite, budget * trial.dim, method)
            and dim in (None, trial.dim)
        ]

    def dims(self, suite: str) -> list[int]:
        return sorted({trial.dim for trial in self.trials if trial.suite == suite})

    def final(self, suite: str, budget: int, method: str, dim: int | None = None) -> float:
        """The share of targets hit at the end of runs that had this budget."""
        return share_hit(self.of(suite, budget, method, dim), budget)

    def order(self, suites: Iterable[str]) -> list[str]:
        """The methods, sorted by their share at the largest budget, the best first."""
        places = list(suites)
        return sorted(
            self.methods, key=lambda m: -sum(self.final(s, self.budgets[-1], m) for s in places)
        )

    def overview(self) -> str:
        columns = [(suite, budget) for suite in self.suites for budget in self.budgets]
        header = ["method", *(f"{suite} {budget}n" for suite, budget in columns)]
        shares = {
            method: [self.final(suite, budget, method) for suite, budget in columns]
            for method in self.methods
        }
        return table(header, shares, self.order(self.suites))

    def by_dimension(self, suite: str) -> str:
        columns = [(dim, budget) for dim in self.dims(suite) for budget in self.budgets]
        header = ["method", *(f"n = {dim}, {budget}n" for dim, budget in columns)]
        shares = {
            method: [self.final(suite, budget, method, dim) for dim, budget in columns]
            for method in self.methods
        }
        return table(header, shares, self.order([suite]))

    def notes(self) -> list[str]:
        counts = Counter((trial.method, trial.note) for trial in self.trials if trial.note)
        return [f"{method}, {count} runs: {note}" for (method, note), count in counts.items()]

    def early(self) -> list[str]:
        """The methods that ended runs before the budget was used up."""
        counts = Counter(
            trial.method
            for trial in self.trials
            if not trial.note and trial.evaluations < trial.budget
        )
        return [f"{method}, {count} runs: ended early" for method, count in counts.items()]


def label(method: str) -> str:
    return method if method in PEERS else f"**{method}**"


def table(header: list[str], shares: dict[str, list[float]], order: list[str]) -> str:
    """Percentages, with the best of each column in italics."""
    best = [max(column) for column in zip(*shares.values(), strict=True)]
    rows = []
    for method in order:
        cells = []
        for share, top in zip(shares[method], best, strict=True):
            text = f"{100 * share:.1f}"
            cells.append(f"*{text}*" if share == top else text)
        rows.append([label(method), *cells])
    return markdown(header, rows)


def page(results: Results, about: list[str], figure: str) -> str:
    """The whole report."""
    parts = ["# racecars on COCO", *about, results.overview(), f"![Share of targets hit]({figure})"]
    for suite in results.suites:
        parts += [f"## {suite}: {SUITES[suite].about}", results.by_dimension(suite)]
    notes = results.notes() + results.early()
    if notes:
        parts += ["## Notes", "\n".join(f"- {note}" for note in notes)]
    parts += ["## The others", peer_list(results.methods)]
    return "\n\n".join(parts) + "\n"


def peer_list(methods: list[str]) -> str:
    return "\n".join(f"- {name}: {PEERS[name].about}" for name in methods if name in PEERS)


def draw(results: Results, path: Path) -> None:
    """The curves of the largest budget, a panel for each suite. Dots are the final shares of runs
    with smaller budgets."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "racecars"  # reproducible files
    import matplotlib.pyplot as plt

    most = results.budgets[-1]
    size = (3.6 * len(results.suites) + 1.3, 3.6)
    figure, panels = plt.subplots(
        1, len(results.suites), figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    for panel, suite in zip(panels[0], results.suites, strict=True):
        draw_panel(panel, results, suite, most)
    panels[0][0].set_ylabel("share of targets hit")
    panels[0][0].set_ylim(bottom=0)  # shared by all panels, so set last
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def draw_panel(panel: Any, results: Results, suite: str, most: int) -> None:
    for method in results.order(results.suites):
        style = {"color": COLORS.get(method, "#444444")}
        width = 1.2 if method in PEERS else 2.2
        hit = curve(results.of(suite, most, method))
        panel.step(*hit, where="post", linewidth=width, label=method, **style)
        for budget in results.budgets[:-1]:
            panel.plot(budget, results.final(suite, budget, method), "o", markersize=4, **style)
    panel.set_xscale("log")
    panel.set_xlim(1, most)
    ticks = [tick for tick in (1, 3, 10, 30, 100, 300, 1000) if tick <= most]
    panel.set_xticks(ticks, [str(tick) for tick in ticks])
    panel.minorticks_off()
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlabel("evaluations / n")
    dims = ", ".join(str(dim) for dim in results.dims(suite))
    panel.set_title(f"{suite}, n = {dims}", fontsize=10)


def curve(trials: list[Trial]) -> tuple[list[float], list[float]]:
    """The share of targets hit, over evaluations per dimension."""
    hits = sorted(hit / trial.dim for trial in trials for hit in trial.hit_at)
    total = max(1, len(trials) * len(TARGETS))
    shares = [(count + 1) / total for count in range(len(hits))]
    end = float(max((trial.budget // trial.dim for trial in trials), default=1))
    return [0.01, *hits, end], [0.0, *shares, len(hits) / total]
