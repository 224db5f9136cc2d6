"""The shares of targets hit as tables."""

from __future__ import annotations

from collections.abc import Iterable

from peers.bbob.columns import GROUPS, Column, Results
from peers.coco.report import label, peer_list
from peers.field.optimizers import PEERS
from peers.field.report import NONE, markdown

TERMS = """\
The percentage of pairs of a problem and a target that were hit, f - f_opt from 100 down to 1e-8 in
51 steps. Bold names are ours, and the best of each column is in italics. Methods marked with ° plan
with the budget: each of their columns is a run of its own."""


def table(results: Results, columns: list[Column], functions: Iterable[int] | None = None) -> str:
    """A row for each method."""
    wanted = None if functions is None else list(functions)
    best = {column: results.best(column, wanted) for column in columns}
    rows = []
    for method in results.methods:
        cells = []
        for column in columns:
            share = results.share(method, column, wanted)
            text = NONE if share is None else f"{100 * share:.1f}"
            cells.append(f"*{text}*" if share == best[column] and share is not None else text)
        rows.append([name(method), *cells])
    return markdown(["method", *(f"{column.budget}n" for column in columns)], rows)


def name(method: str) -> str:
    plans = method not in PEERS or not PEERS[method].is_anytime
    return label(method) + ("°" if plans else "")


def by_function(results: Results, column: Column) -> str:
    """A row for each method, a column for each function; percentages without decimals."""
    rows = []
    for method in results.methods:
        shares = [results.share(method, column, [function]) for function in results.functions]
        cells = [NONE if share is None else f"{100 * share:.0f}" for share in shares]
        rows.append([name(method), *cells])
    return markdown(["method", *(f"f{function}" for function in results.functions)], rows)


def notes(results: Results) -> list[str]:
    most = max((results.instances(method) for method in results.methods), default=0)
    lines = []
    for method in results.methods:
        texts = results.cut(method)
        if results.instances(method) < most:
            texts.insert(0, f"{results.instances(method)} of {most} instances")
        lines += [f"- {method}: {'; '.join(texts)}"] if texts else []
    return lines


def page(results: Results, about: str, by: str | None) -> str:
    """The whole report; `by` adds tables by group or function."""
    parts = ["# BBOB by budget", about, TERMS]
    for dim in dict.fromkeys(column.dim for column in results.columns):
        columns = [column for column in results.columns if column.dim == dim]
        parts += [f"## n = {dim}", table(results, columns)]
        for group, functions in GROUPS.items() if by else ():
            if any(function in results.functions for function in functions):
                title = f"### n = {dim}, f{functions[0]} to f{functions[-1]}: {group}"
                parts += [title, table(results, columns, functions)]
        for column in columns if by == "function" else ():
            parts += [f"### n = {dim}, {column.budget}n, by function", by_function(results, column)]
    lines = notes(results)
    parts += ["## Notes", "\n".join(lines)] if lines else []
    others = peer_list(results.methods)
    parts += ["## The others", others] if others else []
    return "\n\n".join(parts) + "\n"
