"""The trials of a run as data."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from racecars import _core
from racecars._needs import need
from racecars.space import Space

if TYPE_CHECKING:
    import pandas

__all__ = ["Plan", "Trial", "Trials", "read_study"]

# The columns besides the point.
COLUMNS = ("number", "value", "outcome", "violation", "time", "seconds", "worker")


class Trial(NamedTuple):
    """An evaluation. See :class:`Trials` for what the fields are."""

    number: int
    x: NDArray[np.float64]
    params: dict[str, Any]
    value: float
    outcome: str
    violation: float
    time: float
    seconds: float
    worker: int


class Plan(NamedTuple):
    """What was asked of a run, as far as its report needs it."""

    method: str | None
    options: dict[str, Any]
    seed: int
    maxfev: int | None
    starts: list[Any]
    stop_reason: str
    folder: str | None
    """The study's folder, where there is one."""


class Trials(Sequence[Trial]):
    """The evaluations of a run, in the order told: a sequence, and arrays by column.

    >>> import racecars
    >>> res = racecars.minimize(lambda p: p["x"] ** 2, space={"x": (-5.0, 5.0)}, maxfev=50, rng=1)
    >>> len(res.trials), res.trials[0].params == {"x": res.trials[0].x[0]}
    (50, True)
    >>> best = res.trials[res.trials.value.argmin()]
    >>> best.value == res.fun, best.outcome
    (True, 'value')
    >>> len(res.trials[10:20]), len(res.trials[res.trials.value < 1]) < 50
    (10, True)

    - ``number``: the index of each trial in ``res.history``
    - ``x``: the points, one per row; ``params`` has them by name. That of a
      single trial is empty unless the space is a dict
    - ``value``: the value, also of infeasible points, NaN where there is none
    - ``outcome``: ``"value"``, ``"infeasible"``, or the kind of failure: ``"error"``, ``"nan"``,
      ``"timeout"``, ``"lost"``
    - ``violation``: by how much the point violates the constraints, 0 if it does not
    - ``time``: when the evaluation ended, in seconds since the run began (since the study began,
      with ``study=``)
    - ``seconds``: how long it took. Steps of less than 20 µs, evaluation and search together, are
      timed 16 at a time, so they share their times.
    - ``worker``: the number of the worker from 0, or -1 where the pool does not say

    **Thinning.** At most 4,194,304 coordinates (32 MB) and 1,048,576 trials are kept; where a step
    takes less than 20 µs, so that filling memory would slow it, 131,072 coordinates (1 MB) and
    32,768 trials. When there are more, every second trial is dropped, as often as
    needed: ``stride`` is 1 if all trials are here, else every ``stride``-th of the ``total`` is.
    ``res.history`` has the values of all.
    """

    def __init__(
        self,
        space: Space,
        data: Any,
        total: int,
        stride: int = 1,
        maximize: bool = False,
        history: NDArray[np.float64] | None = None,
        plan: Plan | None = None,
    ) -> None:
        self.space, self.total, self.stride, self.maximize = space, total, stride, maximize
        self._data, self._history, self._plan = data, history, plan
        self.fixed: dict[str, Any] = {}
        """Of a study, the parameters that were fixed."""
        self.known: list[tuple[NDArray[np.float64], float | None, float | None]] = []
        """Of a study, the points that were known without a trial: value or violation."""
        self._columns: dict[str, NDArray[Any]] = data if isinstance(data, dict) else {}

    def _column(self, name: str) -> NDArray[Any]:
        if name not in self._columns:
            if name in ("value", "outcome", "violation"):
                self._read_odd()
                column: NDArray[Any] = self._columns[name]
            else:
                column = getattr(self._data, name)()
            self._columns[name] = column
        return self._columns[name]

    def _read_odd(self) -> None:
        number = self.number
        outcome = np.full(len(number), "value", dtype=object)
        violation = np.zeros(len(number))
        assert self._history is not None
        # A copy: the history has no values of infeasible points.
        value = self._history[number]
        odd = self._data.odd()
        places = np.searchsorted(number, [place for place, *_ in odd])
        for at, (place, kind, by, objective) in zip(places, odd):
            if at < len(number) and number[at] == place:
                outcome[at], violation[at], value[at] = kind, by, objective
        columns = {"value": value, "outcome": outcome, "violation": violation}
        self._columns.update(columns)

    @property
    def number(self) -> NDArray[np.int64]:
        """The index of each trial in ``res.history``."""
        return self._column("number")

    @property
    def x(self) -> NDArray[np.float64]:
        """The points, one per row."""
        return self._column("x")

    @property
    def value(self) -> NDArray[np.float64]:
        """The values, NaN where there is none."""
        return self._column("value")

    @property
    def outcome(self) -> NDArray[np.object_]:
        """``"value"``, ``"infeasible"``, or the kind of failure."""
        return self._column("outcome")

    @property
    def violation(self) -> NDArray[np.float64]:
        """By how much each point violates the constraints."""
        return self._column("violation")

    @property
    def time(self) -> NDArray[np.float64]:
        """When each evaluation ended, in seconds since the run began."""
        return self._column("time")

    @property
    def seconds(self) -> NDArray[np.float64]:
        """How long each evaluation took."""
        return self._column("seconds")

    @property
    def worker(self) -> NDArray[np.int32]:
        """Which worker made each evaluation."""
        return self._column("worker")

    @property
    def params(self) -> list[dict[str, Any]]:
        """The points by name."""
        return [self.space.params(row) for row in self.x]

    def __len__(self) -> int:
        return len(self._columns["number"]) if "number" in self._columns else len(self._data)

    @overload
    def __getitem__(self, at: int) -> Trial: ...
    @overload
    def __getitem__(self, at: slice | NDArray[Any] | list[int]) -> Trials: ...
    def __getitem__(self, at: Any) -> Trial | Trials:
        if isinstance(at, (int, np.integer)):
            n = len(self)
            if not -n <= at < n:
                raise IndexError(f"trial {at} is not there; {n} trials are")
            x = self.x[at]
            params = self.space.params(x) if self.space.is_by_name else {}
            number, value, outcome, violation, *more = (self._column(name)[at] for name in COLUMNS)
            return Trial(
                int(number),
                x,
                params,
                float(value),
                str(outcome),
                float(violation),
                float(more[0]),
                float(more[1]),
                int(more[2]),
            )
        picked = {name: self._column(name)[at] for name in (*COLUMNS, "x")}
        return self._with(picked)

    def __iter__(self) -> Iterator[Trial]:
        return (self[i] for i in range(len(self)))

    def _with(self, columns: dict[str, Any]) -> Trials:
        plan = None if self._plan is None else self._plan._replace(folder=None)
        return Trials(self.space, columns, self.total, self.stride, self.maximize, None, plan)

    def __reduce__(self) -> tuple[Any, ...]:
        columns = {name: self._column(name) for name in (*COLUMNS, "x")}
        given = (self.space, columns, self.total, self.stride, self.maximize, None, self._plan)
        return Trials, given

    def __repr__(self) -> str:
        if self.stride == 1:
            return f"<Trials: {len(self)}>"
        return f"<Trials: {len(self)} of {self.total}, every {self.stride}th>"

    def to_dataframe(self) -> pandas.DataFrame:
        """The trials as a pandas data frame, one row per trial, with a column per coordinate; a
        selection is one column, of lists.

        >>> import racecars
        >>> space = {"n": range(5), "w": racecars.Real(0, 1, count=2), "mode": ["a", "b"]}
        >>> res = racecars.minimize(lambda p: p["n"] + p["w"].sum(), space=space, maxfev=20, rng=1)
        >>> table = res.to_dataframe()
        >>> list(table)[:5], len(table)
        (['n', 'w[0]', 'w[1]', 'mode', 'value'], 20)
        """
        need("pandas", "dataframe", "to_dataframe()")
        import pandas

        x, names = self.x, self.space.coordinates
        columns: dict[str, Any] = {}
        if self.space.is_by_name:
            points = self.params
            coordinates = json.loads(self.space.to_json())["coordinates"]
            selections = {one["name"] for one in coordinates if one["type"] == "subset"}
            for name in self.space.names:
                column = [point.get(name) for point in points]
                if name in names or name in selections:
                    columns[name] = column
                else:
                    width = sum(other.startswith(f"{name}[") for other in names)
                    for i in range(width):
                        columns[f"{name}[{i}]"] = [
                            None if values is None else values[i] for values in column
                        ]
        else:
            columns = {name: x[:, i] for i, name in enumerate(names)}
        for name in COLUMNS[1:]:
            # A parameter may have the name.
            columns[f"trial_{name}" if name in columns else name] = self._column(name)
        return pandas.DataFrame(columns, index=pandas.Index(self.number, name="number"))

    def _folder(self) -> tuple[str, Any]:
        """A folder with the journal of these trials, and what removes it when it is dropped."""
        if self._plan is not None and self._plan.folder is not None:
            return self._plan.folder, None
        plan = self._plan or Plan(None, {}, 0, None, [], "evaluations", None)
        keeper = tempfile.TemporaryDirectory(prefix="racecars-")
        folder = str(Path(keeper.name) / "run")
        odd = [
            (int(place), str(self.outcome[place]), float(self.violation[place]))
            for place in np.flatnonzero(self.outcome != "value")
        ]
        _core.write_journal(
            folder,
            self.space,
            plan.method,
            plan.options,
            plan.seed,
            plan.maxfev,
            self.maximize,
            plan.starts,
            np.ascontiguousarray(self.x),
            np.ascontiguousarray(self.value),
            odd,
            np.ascontiguousarray(self.time),
            np.ascontiguousarray(self.seconds),
            np.ascontiguousarray(self.worker),
            plan.stop_reason,
        )
        return folder, keeper


def read_study(folder: str | os.PathLike[str]) -> Trials:
    """The trials of a study: of ``racecars run``, or of ``minimize(..., study=folder)``.

    The choices of a study stand for themselves: where they were Python objects, they are texts.
    """
    space, data, history, maximize, fixed, known = _core.read_study(os.fspath(folder))
    plan = Plan(None, {}, 0, None, [], "evaluations", os.fspath(folder))
    trials = Trials(space, data, len(history), data.stride, maximize, history, plan)
    trials.fixed = fixed
    trials.known = [(np.array(x), value, violation) for x, value, violation in known]
    return trials


def trials_of(source: Any, name: str) -> Trials:
    """The trials of a result, a study's folder, or trials themselves."""
    if isinstance(source, Trials):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_study(source)
    trials = source.get("trials") if isinstance(source, Mapping) else None
    if not isinstance(trials, Trials):
        text = "a result of minimize, its trials, or the folder of a study"
        raise ValueError(f"{name} is {type(source).__name__}, not {text}")
    return trials
