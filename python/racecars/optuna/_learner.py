"""A sampler's knowledge of a study: the parameters seen, and an optimizer told of ended trials.

All parameters of a study are coordinates of one space. Those that are in some trials only have the
conditions that trials show (`_conditions`), and are inactive where these do not hold. Where trials
show none, a proposal has a value for them; what a trial did not use of it stays as it was proposed,
or, if another process proposed it, as in the best point, so that a good value survives while it is
out of use.

Methods that begin with the same points in every process, such as the center, would evaluate them in
each of them, and again when a study is resumed. So a point that a trial of another optimizer has is
not evaluated again: its outcome is told instead.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from racecars._axes import space_of_axes
from racecars._core import Candidate, Space, SpaceExhausted
from racecars.optimizer import Optimizer
from racecars.optuna._conditions import Condition, condition_of, is_active
from racecars.optuna._distributions import axis, center, merged

# Unfinished trials checked per visit, in turn: more than run at a time, and a bound on the cost of
# trials that never end because their process died.
MAX_CHECKED = 1000
# Unfinished trials that a proposal is compared with: the latest.
MAX_COMPARED = 64


class Learner:
    """Visits the trials of a study, each once it has ended, and proposes.

    ``begin(space, number)`` makes an optimizer at the trial of that number; ``sign`` is -1 where
    the study maximizes.
    """

    def __init__(
        self,
        begin: Callable[[Space, int], Optimizer],
        known: Mapping[str, BaseDistribution],
        sign: float,
    ) -> None:
        self._begin = begin
        self._sign = sign
        self._known: dict[str, BaseDistribution] = {}
        self._conditions: dict[str, Condition] = {}
        self._optimizer: Optimizer | None = None
        self._visited = 0
        self._open: deque[FrozenTrial] = deque()
        self._ended: list[FrozenTrial] = []
        self._told = 0
        self._worst = -math.inf
        self._proposed: dict[int, Candidate] = {}
        # By point: ended trials that this optimizer did not propose.
        self._foreign: dict[bytes, FrozenTrial] = {}
        self.meet(known)

    @property
    def known(self) -> dict[str, BaseDistribution]:
        """The parameters known so far that have more than one value."""
        return dict(self._known)

    def meet(self, distributions: Mapping[str, BaseDistribution]) -> None:
        """Takes in new parameters, and new bounds of old ones."""
        for name, distribution in distributions.items():
            old = self._known.get(name)
            if distribution.single() or old == distribution:
                continue
            new = distribution if old is None else merged(old, distribution)
            if new != old:
                self._known[name] = new
                if old is None:
                    self._learn_condition(name)
                # The next proposal makes an optimizer on the larger space, told of ended trials.
                self._optimizer = None

    def visit(self, trials: list[FrozenTrial]) -> None:
        """Takes in what has ended since the last visit; ``trials`` are all, in order."""
        for _ in range(min(len(self._open), MAX_CHECKED)):
            self._look(trials[self._open.popleft().number])
        while self._visited < len(trials):
            self._visited += 1
            self._look(trials[self._visited - 1])

    def propose(self, number: int) -> dict[str, Any] | None:
        """Values of all known parameters, or ``None`` when every point has been tried."""
        if not self._known:
            return None
        optimizer = self._learned(number)
        try:
            candidate = optimizer.ask()
            while (trial := self._same(candidate, number)) is not None:
                self._proposed[trial.number] = candidate
                if trial.state.is_finished():
                    self._tell(optimizer, trial)
                candidate = optimizer.ask()
        except SpaceExhausted:
            return None
        self._proposed[number] = candidate
        pairs = zip(self._axes.items(), candidate.x.tolist())
        return {name: axis.value(x) for (name, axis), x in pairs if not math.isnan(x)}

    def proposed(self, number: int, name: str) -> Any:
        """What was proposed to a trial for a parameter, ``None`` if nothing was."""
        candidate = self._proposed.get(number)
        place = self._places.get(name) if candidate is not None else None
        if candidate is None or place is None or math.isnan(candidate.x[place]):
            return None
        return self._axes[name].value(float(candidate.x[place]))

    def _same(self, candidate: Candidate, number: int) -> FrozenTrial | None:
        """A trial that has the point of a candidate and was proposed by another optimizer. It is
        found once, so that a point that is asked again, because of noise, is evaluated."""
        ended = self._foreign.pop(candidate.x.tobytes(), None)
        if ended is not None:
            return ended
        for trial in islice(reversed(self._open), MAX_COMPARED):
            is_foreign = trial.number not in self._proposed and trial.number != number
            point = self._complete_point(trial) if is_foreign else None
            if point is not None and np.array_equal(point, candidate.x, equal_nan=True):
                return trial
        return None

    def _look(self, trial: FrozenTrial) -> None:
        if not trial.state.is_finished():
            self._open.append(trial)
            return
        if trial.params:
            self.meet(trial.distributions)
            self._ended.append(trial)
            for name in self._known:
                is_there = name in trial.params
                # One that failed or was pruned may have ended before it was suggested.
                is_seen = is_there or trial.state == TrialState.COMPLETE
                if is_seen and is_there != is_active(name, self._conditions, trial.params):
                    self._learn_condition(name)
        else:
            self._proposed.pop(trial.number, None)

    def _learn_condition(self, name: str) -> None:
        """Takes the condition of a parameter from all trials that have ended."""
        with_it = [trial.params for trial in self._ended if name in trial.params]
        without_it = [
            trial.params
            for trial in self._ended
            if name not in trial.params and trial.state == TrialState.COMPLETE
        ]
        old = self._conditions.pop(name, None)
        if with_it and without_it:
            new = condition_of(name, self._known, with_it, without_it)
            if new is not None:
                self._conditions[name] = new
        if self._conditions.get(name) != old:
            self._optimizer = None

    def _space(self) -> Space:
        """The space of all parameters, with their conditions. Coordinates have names of their own,
        since any text may be the name of a parameter."""
        names = {name: f"p{place}" for place, name in enumerate(self._axes)}
        conditions = {
            names[name]: condition.text(names[condition.parent], self._axes[condition.parent])
            for name, condition in self._conditions.items()
        }
        axes = ((names[name], axis) for name, axis in self._axes.items())
        return space_of_axes(axes, conditions)

    def _learned(self, number: int) -> Optimizer:
        """The optimizer, told all that has ended."""
        if self._optimizer is None:
            self._axes = {name: axis(known) for name, known in self._known.items()}
            self._places = {name: place for place, name in enumerate(self._axes)}
            self._optimizer = self._begin(self._space(), number)
            self._proposed.clear()
            self._foreign.clear()
            self._told = 0
        while self._told < len(self._ended):
            self._tell(self._optimizer, self._ended[self._told])
            self._told += 1
        return self._optimizer

    def _tell(self, optimizer: Optimizer, trial: FrozenTrial) -> None:
        candidate = self._proposed.pop(trial.number, None)
        point: Any = self._point(optimizer, trial, candidate)
        if point is None:
            return
        if candidate is not None and np.array_equal(point, candidate.x, equal_nan=True):
            point = candidate
        elif self._complete_point(trial) is not None:
            self._foreign[point.tobytes()] = trial
        violation = sum(max(0.0, by) for by in trial.constraints.values())
        value = self._value(trial)
        if value is None:
            optimizer.tell(point, error=trial.state.name)
        elif violation > 0:
            optimizer.tell(point, violation=violation)
        else:
            optimizer.tell(point, value)

    def _point(
        self, optimizer: Optimizer, trial: FrozenTrial, candidate: Candidate | None
    ) -> NDArray[np.float64] | None:
        """The point of a trial, ``None`` if a value is out of bounds, as enqueued ones may be."""
        point = self._complete_point(trial)
        if point is not None:
            return point
        if candidate is None:
            best = optimizer.best or Optimizer(optimizer.space, "random", rng=trial.number).ask()
            usual = best.x
        else:
            usual = candidate.x
        return self._filled(trial, usual)

    def _complete_point(self, trial: FrozenTrial) -> NDArray[np.float64] | None:
        """The point of a trial that has all parameters that are active, within bounds."""
        return self._filled(trial, None)

    def _filled(
        self, trial: FrozenTrial, usual: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """The point with the parameters of a trial; those that it lacks are as usual. ``None`` if
        one is out of bounds, or is lacking and there is no usual point."""
        params = dict(trial.params)
        point = np.full(len(self._axes), np.nan)
        # Parents are before the parameters that depend on them.
        for (name, here), place in zip(self._axes.items(), self._places.values()):
            if not is_active(name, self._conditions, params):
                if name in params:
                    return None
                continue
            if name not in params:
                if usual is None:
                    return None
                middle = center(self._known[name])
                number = 0.0 if middle is None else here.number(middle)
                point[place] = number if math.isnan(usual[place]) else usual[place]
                params[name] = here.value(float(point[place]))
                continue
            number = here.number(params[name])
            if number is None:
                return None
            point[place] = number
        return point

    def _value(self, trial: FrozenTrial) -> float | None:
        """The value to minimize, ``None`` for a failure.

        A pruned trial counts with its last report, but at best as the worst complete one so far: it
        was pruned because it would not be good.
        """
        if trial.state == TrialState.COMPLETE:
            assert trial.value is not None
            value = self._sign * trial.value
            self._worst = max(self._worst, value)
            return value
        if trial.state == TrialState.PRUNED and trial.last_step is not None:
            value = self._sign * trial.intermediate_values[trial.last_step]
            return None if math.isnan(value) else max(value, self._worst)
        return None
