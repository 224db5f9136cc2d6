"""The results as CSV and Markdown: quality and overhead of ours and the others."""

from __future__ import annotations

import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import TypeVar

from peers.field.optimizers import PEERS
from peers.field.sections import Section
from peers.field.trials import Trial

# The peers in the summary, each with the corresponding one of ours.
PAIRS = (
    ("zoopt", "race-cars"),
    ("pycma", "cma-es"),
    ("scipy-de", "de"),
    ("scipy-da", "race-cars"),
)
NONE = "-"
Name = TypeVar("Name")


def write_csv(path: Path, trials: list[Trial]) -> None:
    with path.open("w", newline="") as file:
        columns = [field.name for field in fields(Trial)]
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(trial) for trial in trials)


def short(x: float) -> str:
    """A number with three digits."""
    if x == 0 or 0.01 <= abs(x) < 10_000:
        return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}"
    return f"{x:.1e}".replace("e-0", "e-").replace("e+0", "e")


def markdown(header: list[str], rows: Iterable[list[str]]) -> str:
    """A table with the first column left-aligned and the others right-aligned."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


class Results:
    """The trials of one section, by method and problem."""

    def __init__(self, section: Section, trials: list[Trial]) -> None:
        self.section = section
        self.trials = [trial for trial in trials if belongs(trial, section)]
        self.ours = unique(trial.method for trial in self.trials if trial.is_ours)
        self.methods = unique(trial.method for trial in self.trials)

    def of(self, method: str, problem: str | None = None) -> list[Trial]:
        return [
            trial
            for trial in self.trials
            if trial.method == method
            and problem in (None, trial.problem)
            and not math.isnan(trial.best)
        ]

    def mean(self, method: str, problem: str) -> float:
        """The mean of the final values; infinite if there are none."""
        finals = [trial.best for trial in self.of(method, problem)]
        return statistics.fmean(finals) if finals else math.inf

    def std(self, method: str, problem: str) -> float:
        finals = [trial.best for trial in self.of(method, problem)]
        return statistics.stdev(finals) if len(finals) > 1 else 0.0

    def rank(self, method: str, problem: str) -> float:
        """The rank of its mean, 1 for the least; ties have the mean of their ranks."""
        mean = self.mean(method, problem)
        others = [self.mean(other, problem) for other in self.methods]
        return sum(other < mean for other in others) + (others.count(mean) + 1) / 2

    def mean_rank(self, method: str) -> float:
        """The mean rank over all problems; infinite if there is no result."""
        if not self.of(method):
            return math.inf
        return statistics.fmean(self.rank(method, problem) for problem in self.section.problems)

    def overhead(self, method: str) -> float:
        """The median over all trials; NaN if there are none."""
        overheads = [trial.overhead_us for trial in self.of(method)]
        return statistics.median(overheads) if overheads else math.nan

    def label(self, method: str) -> str:
        return f"**{method}**" if method in self.ours else method

    def quality_table(self) -> str:
        header = ["method", "mean rank", *self.section.problems]
        rows = [
            [self.label(method), f"{self.mean_rank(method):.1f}" if self.of(method) else NONE]
            + [self.quality_cell(method, problem) for problem in self.section.problems]
            for method in sorted(self.methods, key=self.mean_rank)
        ]
        return markdown(header, rows)

    def quality_cell(self, method: str, problem: str) -> str:
        trials = self.of(method, problem)
        if not trials:
            return NONE
        mark = "\\*" if any(trial.note for trial in trials) else ""
        spread = f" ± {short(self.std(method, problem))}" if len(trials) > 1 else ""
        mean = short(self.mean(method, problem))
        return f"{mean}{spread} ({self.rank(method, problem):g}){mark}"

    def overhead_table(self) -> str:
        header = ["method", "µs per evaluation", "÷ race-cars", "÷ ours of its kind"]
        known = [method for method in self.methods if not math.isnan(self.overhead(method))]
        rows = [
            [
                self.label(method),
                short(self.overhead(method)),
                self.ratio(method, "race-cars"),
                self.ratio_to_kin(method),
            ]
            for method in sorted(known, key=self.overhead)
        ]
        return markdown(header, rows)

    def ratio(self, method: str, other: str) -> str:
        overhead = self.overhead(other)
        return f"{short(self.overhead(method) / overhead)}x" if overhead > 0 else NONE

    def ratio_to_kin(self, method: str) -> str:
        if method in self.ours or PEERS[method].counterpart not in self.ours:
            return NONE
        kin = PEERS[method].counterpart
        return f"{self.ratio(method, kin)} {kin}"

    def notes(self) -> list[str]:
        """Notes about cells that are empty or exceptional."""
        lines = []
        by_note: dict[tuple[str, str], list[Trial]] = defaultdict(list)
        for trial in self.trials:
            if trial.note:
                by_note[trial.method, trial.note].append(trial)
        for (method, note), trials in by_note.items():
            if not self.of(method):
                lines.append(f"{method}: {note}")
                continue
            made = statistics.median(trial.evaluations for trial in trials)
            lines.append(
                f"\\* {method}: {note}; trials: {len(trials)}, evaluations made (median): {made:g}"
            )
        for method in self.methods:
            seeds = len({trial.seed for trial in self.trials if trial.method == method})
            if seeds < self.section.seeds and self.of(method):
                lines.append(f"{method}: {seeds} instead of {self.section.seeds} seeds: it is slow")
        return lines

    def text(self) -> str:
        section = self.section
        at_once = "one trial at a time" if section.jobs == 1 else f"{section.jobs} trials at once"
        parts = [
            f"## {section.title}: n = {section.dim}, {section.evaluations} evaluations",
            f"Seeds: {section.seeds}; {at_once}. Final values, mean ± std (rank):",
            self.quality_table(),
            "The optimizers' own time, without the objective's (median):",
            self.overhead_table(),
        ]
        notes = self.notes()
        if notes:
            parts.append("\n".join(f"- {note}" for note in notes))
        return "\n\n".join(parts)

    def in_short(self, bare: dict[str, float]) -> list[str]:
        """The overhead of well-known peers relative to ours: from Python, and without Python."""
        lines = []
        for peer, ours in PAIRS:
            if self.of(peer) and self.of(ours):
                without = short(self.overhead(peer) / bare[ours])
                lines.append(
                    f"{peer} takes {self.ratio(peer, ours)} the time of **{ours}** per evaluation "
                    f"at n = {self.section.dim}, and {without}x that without Python in between "
                    f"(`racecars bench`); {self.quality_in_short(peer, ours)}"
                )
        return lines

    def quality_in_short(self, peer: str, ours: str) -> str:
        problems = self.section.problems
        better = sum(self.mean(ours, name) < self.mean(peer, name) for name in problems)
        return f"ours has the better mean on {better} of {len(problems)} problems there"


def belongs(trial: Trial, section: Section) -> bool:
    return (trial.section, trial.dim) == (section.title, section.dim)


def unique(names: Iterable[Name]) -> list[Name]:
    return list(dict.fromkeys(names))


def page(
    sections: list[Section],
    trials: list[Trial],
    bare: dict[str, float],
    about: list[str],
    unknown: list[str],
) -> str:
    """The whole report; `bare` is our overhead without Python, in microseconds."""
    results = [Results(section, trials) for section in sections]
    timed = [result for result in results if result.section.jobs == 1]
    short_lines = [line for result in timed for line in result.in_short(bare)]
    parts = ["# racecars and the field", *about]
    if short_lines:
        parts.append("\n".join(f"- {line}" for line in short_lines))
    parts += [result.text() for result in results]
    parts += ["## The others", peer_list(unique(trial.method for trial in trials))]
    parts += [f"Not in this version of racecars: {', '.join(unknown)}."] if unknown else []
    return "\n\n".join(parts) + "\n"


def peer_list(methods: list[str]) -> str:
    return "\n".join(f"- {name}: {PEERS[name].about}" for name in methods if name in PEERS)
