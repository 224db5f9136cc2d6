"""The share of targets hit, by method, column, group of functions and function."""

from __future__ import annotations

import bisect
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from peers.coco.suites import TARGETS
from peers.coco.trials import Trial
from peers.field.optimizers import PEERS

GROUPS = {
    "separable": range(1, 6),
    "moderate": range(6, 10),
    "ill-conditioned": range(10, 15),
    "multimodal": range(15, 20),
    "weak structure": range(20, 25),
}


@dataclass(frozen=True)
class Column:
    """Runs in one dimension with a number of evaluations per coordinate."""

    dim: int
    budget: int

    def __str__(self) -> str:
        return f"n={self.dim} {self.budget}n"

    def share(self, trial: Trial) -> float:
        """The share of targets that a trial has hit within the budget."""
        return bisect.bisect_right(trial.hit_at, self.budget * self.dim) / len(TARGETS)


class Results:
    """The trials of each method in each column."""

    def __init__(self, trials: list[Trial], columns: list[Column], methods: list[str]) -> None:
        known = {trial.method for trial in trials}
        self.columns, self.trials = columns, trials
        self.methods = [method for method in methods if method in known]
        # The shares by function of each cell.
        self._shares: dict[tuple[str, Column], dict[int, list[float]]] = {}
        for method in self.methods:
            for column in columns:
                self._shares[method, column] = self._by_function(method, column)

    def _by_function(self, method: str, column: Column) -> dict[int, list[float]]:
        is_anytime = method in PEERS and PEERS[method].is_anytime
        budget = column.budget * column.dim
        found: dict[int, list[float]] = {}
        for trial in self.trials:
            if (trial.method, trial.dim) != (method, column.dim) or not trial.evaluations:
                continue
            if trial.budget == budget or (is_anytime and trial.budget > budget):
                found.setdefault(trial.function, []).append(column.share(trial))
        return found

    def share(
        self, method: str, column: Column, functions: Iterable[int] | None = None
    ) -> float | None:
        """The mean over functions of the mean over instances; `None` if a function has no run."""
        found = self._shares[method, column]
        wanted = found if functions is None else [f for f in functions if f in self.functions]
        if not found or any(function not in found for function in wanted) or not wanted:
            return None
        return statistics.fmean(statistics.fmean(found[function]) for function in wanted)

    @property
    def functions(self) -> list[int]:
        return sorted({trial.function for trial in self.trials})

    def instances(self, method: str) -> int:
        """The number of instances of the function that has the fewest."""
        counts = Counter(
            (trial.dim, trial.budget, trial.function)
            for trial in self.trials
            if trial.method == method
        )
        return min(counts.values(), default=0)

    def cut(self, method: str) -> list[str]:
        """Notes about runs that failed or were cut, with their number by dimension."""
        counts = Counter(
            (trial.dim, trial.note)
            for trial in self.trials
            if trial.method == method and trial.note
        )
        return [f"{count} runs at n = {dim}: {note}" for (dim, note), count in counts.items()]

    def best(self, column: Column, functions: Iterable[int] | None = None) -> float:
        wanted = None if functions is None else list(functions)
        shares = [self.share(method, column, wanted) for method in self.methods]
        return max((share for share in shares if share is not None), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """Everything as numbers, for programs."""
        return {
            method: {
                str(column): {
                    "share": self.share(method, column),
                    "groups": {
                        group: self.share(method, column, functions)
                        for group, functions in GROUPS.items()
                    },
                    "functions": {
                        function: statistics.fmean(shares)
                        for function, shares in sorted(self._shares[method, column].items())
                    },
                }
                for column in self.columns
            }
            for method in self.methods
        }
