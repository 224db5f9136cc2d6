"""The searcher: Tune's interface to an optimizer."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ray.tune.result import DEFAULT_METRIC
from ray.tune.search import Searcher
from ray.tune.search.sample import Domain

from racecars._axes import Axis, space_of_axes
from racecars._core import Candidate, SpaceExhausted
from racecars.optimizer import Optimizer
from racecars.ray import _state
from racecars.ray._domains import Path, axes_of, find, name, nested


class RaceCarsSearch(Searcher):
    """Proposes the configurations of Ray Tune's trials.

    All of Tune's domains that have bounds can be searched: ``choice``, ``uniform``, ``randint``,
    their log and quantized forms, in dicts of any depth. A trial that fails, or whose metric is NaN
    or missing, has failed, which is worse than any value. No number of trials need be given.

    Parameters
    ----------
    space
        The search space, if not given to ``tune.Tuner`` as ``param_space``.
    metric, mode
        What is optimized, and ``"min"`` or ``"max"``, if not given to ``tune.TuneConfig``.
    points_to_evaluate
        Configurations to try first. What one leaves out is proposed.
    budget
        The number of trials planned, if known.
    seed
        The same seed gives the same trials, while one runs at a time.
    method, options
        One of ``racecars.METHODS``, with its settings (see :func:`racecars.settings`). The default
        is that of :func:`racecars.minimize`.

    :meth:`save` and :meth:`restore`, which Tune calls too, write and read JSON and the optimizer's
    own bytes, never a pickle.
    """

    def __init__(
        self,
        space: Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        budget: int | None = None,
        seed: int | None = None,
        method: str | None = None,
        **options: Any,
    ) -> None:
        for what, given in (("metric", metric), ("mode", mode)):
            if isinstance(given, (list, tuple)):
                raise ValueError(f"{what} is {given}; RaceCarsSearch optimizes a single metric")
        if mode not in (None, "min", "max"):
            raise ValueError(f"mode is {mode!r}; it must be 'min' or 'max'")
        super().__init__(metric=metric, mode=mode)
        # A wrong method or option is refused here rather than at the first trial.
        Optimizer([(0, 1)], method, budget=budget, rng=0, **options)
        self._settings: dict[str, Any] = {
            "method": method,
            "budget": budget,
            "rng": seed,
            **options,
        }
        self._first = [copy.deepcopy(dict(point)) for point in points_to_evaluate or ()]
        self._axes: dict[Path, Axis] = {}
        self._is_given = False
        self._optimizer: Optimizer | None = None
        self._live: dict[str, Candidate] = {}
        self._restored: _state.State | None = None
        if space:
            self._set_up(space)

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Takes in what was given to the ``Tuner``; ``False`` if the space was set already."""
        self._metric = metric or self._metric
        self._mode = mode or self._mode
        if self._is_given:
            return False
        # A space that was restored is set again, with the choices as the objects that they are.
        self._restored = self._restored or self._state()
        self._set_up(config)
        return True

    def suggest(self, trial_id: str) -> Any:
        """The configuration of a new trial, or ``FINISHED`` when all have been tried."""
        optimizer = self._ready()
        point = self._first.pop(0) if self._first else {}
        try:
            candidate = self._fitted(optimizer, point)
        except SpaceExhausted:
            return Searcher.FINISHED
        self._live[trial_id] = candidate
        values = {}
        for (path, axis), number in zip(self._axes.items(), candidate.x.tolist()):
            is_given, given = find(point, path)
            values[path] = given if is_given else axis.value(number)
        return nested(values)

    def on_trial_complete(
        self, trial_id: str, result: dict[Any, Any] | None = None, error: bool = False
    ) -> None:
        """Learns the outcome of a trial."""
        candidate = self._live.pop(trial_id, None)
        if candidate is not None:
            self._tell(candidate, None if error else (result or {}).get(self._metric))

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float | None,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Learns of a configuration that was evaluated elsewhere."""
        optimizer = self._ready()
        numbers = self._numbers(parameters)
        missing = [name(path) for path, number in zip(self._axes, numbers) if number is None]
        if missing:
            raise ValueError(f"the evaluated point has no value for `{'`, `'.join(missing)}`")
        self._tell(optimizer.known(np.array(numbers, dtype=float)), None if error else value)

    def save(self, checkpoint_path: str) -> None:
        """Writes the whole state to a file."""
        saved = self._restored or self._state()
        if saved is not None:
            _state.write(checkpoint_path, saved)

    def restore(self, checkpoint_path: str) -> None:
        """Goes on from the state in a file. Its space is in the file too, unless it has choices
        other than numbers, strings, truth values and ``None``: then it must be given."""
        self._restored = _state.read(checkpoint_path)
        self._metric = self._metric or self._restored.metric
        self._mode = self._mode or self._restored.mode
        if not self._is_given:
            self._axes = self._restored.axes or {}
        if self._axes:
            self._take_up()

    def _set_up(self, config: Mapping[str, Any]) -> None:
        axes = axes_of(config)
        if not axes:
            raise ValueError(f"the search space {dict(config)} has no domain to search")
        self._axes, self._is_given = axes, True
        if self._restored is not None:
            self._take_up()
            return
        space = space_of_axes((name(path), axis) for path, axis in axes.items())
        self._optimizer = Optimizer(space, **self._settings)
        for point in self._first:
            self._numbers(point)

    def _take_up(self) -> None:
        """Goes on with what was restored."""
        saved, self._restored = self._restored, None
        assert saved is not None
        space = space_of_axes((name(path), axis) for path, axis in self._axes.items())
        self._optimizer = Optimizer.from_bytes(saved.optimizer, space)
        codes = saved.live.items()
        self._live = {trial: self._optimizer.restore(*kept) for trial, kept in codes}
        self._first = saved.first

    def _state(self) -> _state.State | None:
        if self._optimizer is None:
            return None
        live = {trial: (one.id, one.code) for trial, one in self._live.items()}
        state = self._optimizer.to_bytes()
        return _state.State(state, live, self._first, self._axes, self._metric, self._mode)

    def _ready(self) -> Optimizer:
        if self._optimizer is None:
            text = "give one to RaceCarsSearch as `space`, or to tune.Tuner as `param_space`"
            raise RuntimeError(f"there is no search space; {text}")
        if self._mode is None:
            text = "give them to RaceCarsSearch, or, with the space, to tune.Tuner"
            raise RuntimeError(f"there is no metric and mode to optimize; {text}")
        self._metric = self._metric or DEFAULT_METRIC
        return self._optimizer

    def _fitted(self, optimizer: Optimizer, point: Mapping[str, Any]) -> Candidate:
        """A candidate that has these values where they are given."""
        if not point:
            return optimizer.ask()
        numbers = self._numbers(point)
        if any(number is None for number in numbers):
            numbers = [a if b is None else b for a, b in zip(optimizer.ask().x, numbers)]
        return optimizer.known(np.array(numbers, dtype=float))

    def _numbers(self, config: Mapping[str, Any]) -> list[float | None]:
        """The coordinates of a configuration, ``None`` where it says nothing."""
        numbers: list[float | None] = []
        for path, axis in self._axes.items():
            is_there, value = find(config, path)
            is_there = is_there and not isinstance(value, Domain)
            number = axis.number(value) if is_there else None
            if is_there and number is None:
                raise ValueError(f"`{name(path)}` is {value!r}, which is not in the search space")
            numbers.append(number)
        return numbers

    def _tell(self, candidate: Candidate, value: Any) -> None:
        assert self._optimizer is not None
        try:
            number = math.nan if value is None else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            self._optimizer.tell(candidate, error=f"the metric is {value}")
        else:
            self._optimizer.tell(candidate, -number if self._mode == "max" else number)

    def __getstate__(self) -> dict[str, Any]:
        """For Ray, which pickles searchers in memory: candidates go by their codes."""
        own = ("_optimizer", "_live")
        kept = {key: value for key, value in self.__dict__.items() if key not in own}
        kept["_restored"] = self._restored or self._state()
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _optimizer=None, _live={})
        if self._restored is not None and self._axes:
            self._take_up()
