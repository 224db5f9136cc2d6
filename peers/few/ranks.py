"""Mean ranks of regrets, and their geometric means relative to the best."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass
from typing import Any

from peers.coco.report import label, peer_list
from peers.coco.suites import Problem
from peers.coco.trials import Trial
from peers.field.optimizers import PEERS
from peers.field.report import NONE, markdown, short

# Smaller regrets are the optimum.
FLOOR = 1e-8
TERMS = """\
The mean rank of the regret, 1 for the least (ties have the mean of their ranks), over the problems
that all methods of the table have run; in brackets the geometric mean of the regret relative to the
least regret on the same problem. Bold names are ours, the best rank of each column is in
italics. All methods that take a start have the centre first."""


@dataclass(frozen=True)
class Cell:
    """Runs in one dimension with a number of evaluations."""

    dim: int
    budget: int


def ranks_of(values: list[float]) -> list[float]:
    """The rank of each, 1 for the least; ties have the mean of their ranks."""
    return [sum(v < value for v in values) + (values.count(value) + 1) / 2 for value in values]


class Ranks:
    """The regrets of each method by cell and problem."""

    def __init__(self, trials: list[Trial], cells: list[Cell], methods: list[str]) -> None:
        self.cells, self.trials = cells, trials
        self.methods = [m for m in methods if any(t.method == m and t.evaluations for t in trials)]
        self._regrets = {
            (method, cell): self._of(method, cell) for method in self.methods for cell in cells
        }

    def _of(self, method: str, cell: Cell) -> dict[Problem, float]:
        is_anytime = method in PEERS and PEERS[method].is_anytime
        return {
            trial.problem: max(trial.best_at(cell.budget), FLOOR)
            for trial in self.trials
            if (trial.method, trial.dim) == (method, cell.dim)
            and trial.evaluations
            and (trial.budget == cell.budget or (is_anytime and trial.budget > cell.budget))
        }

    def common(self, cell: Cell) -> list[Problem]:
        """The problems that all methods have run."""
        found = [set(self._regrets[method, cell]) for method in self.methods]
        return sorted(set.intersection(*found), key=str) if found else []

    def mean(self, cell: Cell) -> dict[str, tuple[float, float]]:
        """The mean rank and the geometric mean of the ratio of each method."""
        ranks: dict[str, list[float]] = {method: [] for method in self.methods}
        logs: dict[str, list[float]] = {method: [] for method in self.methods}
        for problem in self.common(cell):
            regrets = [self._regrets[method, cell][problem] for method in self.methods]
            least = min(regrets)
            for method, regret, rank in zip(self.methods, regrets, ranks_of(regrets), strict=True):
                ranks[method].append(rank)
                logs[method].append(math.log(regret / least))
        return {
            method: (statistics.fmean(ranks[method]), math.exp(statistics.fmean(logs[method])))
            for method in self.methods
            if ranks[method]
        }

    def as_dict(self) -> dict[str, Any]:
        return {
            f"n={cell.dim} T={cell.budget}": {
                method: {"rank": rank, "ratio": ratio}
                for method, (rank, ratio) in self.mean(cell).items()
            }
            for cell in self.cells
        }

    def table(self, cells: list[Cell]) -> str:
        means = [self.mean(cell) for cell in cells]
        rows = []
        for method in self.methods:
            cells_of = []
            for mean in means:
                if method not in mean:
                    cells_of.append(NONE)
                    continue
                rank, ratio = mean[method]
                is_best = rank == min(rank for rank, _ in mean.values())
                text = f"*{rank:.2f}*" if is_best else f"{rank:.2f}"
                cells_of.append(f"{text} ({short(ratio)}x)")
            rows.append([label(method), *cells_of])
        return markdown(["method", *(f"T = {cell.budget}" for cell in cells)], rows)

    def notes(self) -> list[str]:
        counts = Counter((trial.method, trial.note) for trial in self.trials if trial.note)
        return [f"- {method}, {count} runs: {note}" for (method, note), count in counts.items()]


def page(ranks: Ranks, about: str) -> str:
    parts = ["# Few evaluations", about, TERMS]
    for dim in dict.fromkeys(cell.dim for cell in ranks.cells):
        cells = [cell for cell in ranks.cells if cell.dim == dim]
        count = min(len(ranks.common(cell)) for cell in cells)
        parts += [f"## n = {dim}: {count} problems", ranks.table(cells)]
    notes = ranks.notes()
    parts += ["## Notes", "\n".join(notes)] if notes else []
    others = peer_list(ranks.methods)
    parts += ["## The others", others] if others else []
    return "\n\n".join(parts) + "\n"
