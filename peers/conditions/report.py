"""The tables of runs under conditions."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from dataclasses import asdict
from typing import Any

from peers.conditions.askers import PEERS
from peers.conditions.simulators import SIMULATORS
from peers.conditions.trials import NOISE_HANDLING, Trial
from peers.few.ranks import FLOOR, ranks_of
from peers.field.report import NONE, markdown, short, unique

Place = tuple[str, int, int, int]
TERMS = {
    "horizon": """\
The regret without a budget, stopped after T evaluations, divided by that of the same method which
knew T: the geometric mean over all problems, the median and the worst (medians of instances).""",
    "workers": """\
The regret with q candidates out divided by that of the same method with one: the median and the
geometric mean over all problems. In brackets, both relative to `auto` (or the first method) with
one. Below: the share of the workers' time that was not spent waiting for the optimizer to
propose.""",
    "noise": """\
The mean rank of the true value at the recommended point, 1 for the least, over the problems that
all methods have run; in brackets the geometric mean relative to the least. For simulators, the mean
of the true cost.""",
}


def place(trial: Trial) -> Place:
    return trial.problem, trial.function, trial.dim, trial.instance


def label(method: str) -> str:
    return method if method in PEERS or method == NOISE_HANDLING else f"**{method}**"


def budget_of(trial: Trial) -> str:
    return f"n = {trial.dim}, T = {trial.budget}"


def as_rows(trials: list[Trial]) -> list[dict[str, Any]]:
    return [asdict(trial) for trial in trials]


def geometric(ratios: list[float]) -> str:
    if not ratios:
        return NONE
    return short(math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))) + "x"


def middle_and_mean(ratios: list[float]) -> str:
    """The median and the geometric mean."""
    return f"{short(statistics.median(ratios))}x, {geometric(ratios)}" if ratios else NONE


def regrets(trials: list[Trial], method: str, condition: str) -> dict[Place, float]:
    """The regret by place, at least `FLOOR`."""
    return {
        place(trial): max(trial.value, FLOOR)
        for trial in trials
        if (trial.method, trial.condition) == (method, condition) and not trial.note
    }


def ratios(upper: dict[Place, float], lower: dict[Place, float]) -> list[float]:
    return [upper[where] / lower[where] for where in upper if where in lower]


def horizon(trials: list[Trial]) -> list[str]:
    """A row for each method and budget."""
    rows = []
    for method in unique(trial.method for trial in trials):
        for budget in unique(map(budget_of, trials)):
            of_budget = [trial for trial in trials if budget_of(trial) == budget]
            found = [regrets(of_budget, method, name) for name in ("unknown", "known")]
            by_function: dict[tuple[str, int], list[float]] = defaultdict(list)
            for where in found[0].keys() & found[1].keys():
                by_function[where[:2]].append(found[0][where] / found[1][where])
            medians = [statistics.median(values) for values in by_function.values()]
            if medians:
                middle, worst = statistics.median(medians), max(medians)
                cells = [geometric(ratios(*found)), f"{short(middle)}x", f"{short(worst)}x"]
                rows.append([label(method), budget, *cells])
    return [markdown(["method", "budget", "geometric mean", "median", "worst"], rows)]


def workers(trials: list[Trial]) -> list[str]:
    parts = []
    methods = unique(trial.method for trial in trials)
    conditions = unique(trial.condition for trial in trials)
    for budget in unique(map(budget_of, trials)):
        of_budget = [trial for trial in trials if budget_of(trial) == budget]
        first = regrets(of_budget, methods[0], conditions[0])
        rows, busy = [], []
        for method in methods:
            alone = regrets(of_budget, method, conditions[0])
            cells = []
            for condition in conditions:
                found = regrets(of_budget, method, condition)
                to_first = middle_and_mean(ratios(found, first))
                cells.append(f"{middle_and_mean(ratios(found, alone))} ({to_first})")
            rows.append([label(method), *cells])
            busy.append([label(method), *(share(of_budget, method, c) for c in conditions)])
        header = ["method", *(f"q = {condition}" for condition in conditions)]
        parts += [f"{budget}:", markdown(header, rows), markdown(header, busy)]
    return parts


def share(trials: list[Trial], method: str, condition: str) -> str:
    found = [t.busy for t in trials if (t.method, t.condition) == (method, condition)]
    return f"{statistics.fmean(found):.0%}" if found else NONE


def noise(trials: list[Trial]) -> list[str]:
    methods = unique(trial.method for trial in trials)
    functions = [trial for trial in trials if trial.problem not in SIMULATORS and not trial.note]
    columns = unique((budget_of(trial), trial.condition) for trial in functions)
    cells: dict[str, list[str]] = {method: [] for method in methods}
    for budget, condition in columns:
        column = [trial for trial in functions if budget_of(trial) == budget]
        found = {method: regrets(column, method, condition) for method in methods}
        common = set.intersection(*(set(values) for values in found.values()))
        ranks: dict[str, list[float]] = {method: [] for method in methods}
        factors: dict[str, list[float]] = {method: [] for method in methods}
        for where in sorted(common):
            values = [found[method][where] for method in methods]
            for method, value, rank in zip(methods, values, ranks_of(values), strict=True):
                ranks[method].append(rank)
                factors[method].append(value / min(values))
        for method in methods:
            mean = f"{statistics.fmean(ranks[method]):.2f}" if ranks[method] else NONE
            cells[method].append(f"{mean} ({geometric(factors[method])})")
    parts = []
    for budget in unique(budget for budget, _ in columns):
        chosen = [i for i, column in enumerate(columns) if column[0] == budget]
        header = ["method", *(f"sd = {columns[i][1]}" for i in chosen)]
        rows = [[label(method), *(cells[method][i] for i in chosen)] for method in methods]
        parts += [f"{budget}:", markdown(header, rows)]
    simulated = [trial for trial in trials if trial.problem in SIMULATORS and not trial.note]
    kinds = unique((trial.problem, trial.budget) for trial in simulated)
    rows = []
    for method in methods:
        means = []
        for kind in kinds:
            values = [
                trial.value
                for trial in simulated
                if (trial.problem, trial.budget) == kind and trial.method == method
            ]
            means.append(f"{statistics.fmean(values):.4g}" if values else NONE)
        rows.append([label(method), *means])
    header = ["method", *(f"{name}, T = {budget}" for name, budget in kinds)]
    return [*parts, "Simulators:", markdown(header, rows)] if kinds else parts


def notes(trials: list[Trial]) -> list[str]:
    lines = []
    most = max(
        len({trial.instance for trial in trials if trial.method == t.method}) for t in trials
    )
    for method in unique(trial.method for trial in trials):
        instances = len({trial.instance for trial in trials if trial.method == method})
        if instances < most:
            lines.append(f"- {method}: {instances} of {most} instances, as it is slow")
    counts = Counter((trial.method, trial.note) for trial in trials if trial.note)
    return lines + [f"- {m}, {count} runs: {note}" for (m, note), count in counts.items()]


def page(part: str, trials: list[Trial], about: str) -> str:
    tables = {"horizon": horizon, "workers": workers, "noise": noise}[part](trials)
    texts = [f"# Conditions: {part}", about, TERMS[part], *tables]
    lines = notes(trials)
    texts += ["\n".join(lines)] if lines else []
    return "\n\n".join(texts) + "\n"
