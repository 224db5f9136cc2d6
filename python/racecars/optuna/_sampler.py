"""The sampler: Optuna's interface to a learner."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import StudyDirection

from racecars._core import Space
from racecars.optimizer import Optimizer
from racecars.optuna._distributions import axis, center
from racecars.optuna._learner import Learner

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial


class RaceCarsSampler(BaseSampler):
    """Proposes the parameters of Optuna's trials.

    Parameters may exist in some trials only, and their bounds may change. Constraints are those of
    ``trial.set_constraint``: a trial that violates one is worse than all that violate none. Failed
    trials are the worst of all.

    Parameters
    ----------
    search_space
        The distributions by name, if known, so that the very first trials are proposed too. What it
        does not name is learned from the trials, as without it.
    seed
        The same seed gives the same study, while one process and one thread works on it. Processes
        of one study may have the same seed and still propose different points.
    budget
        The number of trials planned for the study, if known. Trials that ended before count.
    method, options
        One of ``racecars.METHODS``, with its settings (see :func:`racecars.settings`). The default
        is that of :func:`racecars.minimize`. Its first trial is in the center of the parameters.

    Any number of processes can work on one study, and any number of threads with one sampler
    (``n_jobs``). Nothing is written to the storage: every process learns from the trials as they
    end, visiting each once. Trials that never end, because their process died, are not waited for.
    """

    def __init__(
        self,
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
        budget: int | None = None,
        method: str | None = None,
        **options: Any,
    ) -> None:
        self._search_space = dict(search_space or {})
        self._seed = secrets.randbits(63) if seed is None else seed
        self._budget = budget
        self._method = method
        self._options = options
        # A wrong method or option is refused here rather than at the first trial.
        Optimizer([(0, 1)], method, budget=budget, rng=0, **options)
        self._forget()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All parameters known so far."""
        self._raise_error_if_multi_objective(study)
        self._check_process()
        with self._lock:
            learner = self._learner_of(study)
            # Not study.get_trials, which under Hyperband has only the trials of one bracket.
            learner.visit(study._storage.get_all_trials(study._study_id, deepcopy=False))
            return learner.known

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A value for each parameter of the search space."""
        self._raise_error_if_multi_objective(study)
        self._check_process()
        if not search_space:
            return {}
        with self._lock:
            learner = self._learner_of(study)
            learner.meet(search_space)
            values = learner.propose(trial.number)
        if values is None:  # every point has been tried: again at random
            pairs = search_space.items()
            return {name: self.sample_independent(study, trial, name, one) for name, one in pairs}
        return {name: values[name] for name in search_space if name in values}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A value for a parameter that was not known when the trial began; or, where its bounds
        have changed, what was proposed or the nearest value inside."""
        self._raise_error_if_multi_objective(study)
        self._check_process()
        with self._lock:
            proposed = self._learner_of(study).proposed(trial.number, param_name)
        if proposed is not None and not isinstance(param_distribution, CategoricalDistribution):
            here = axis(param_distribution)
            number = here.number(min(max(proposed, here.low), here.high))
            if number is not None:
                return here.value(number)
        if trial.number == 0 and self._method in (None, "auto"):
            middle = center(param_distribution)
            if middle is not None:
                return middle
        # Drawn from a generator of the parameter's own, which threads and processes need not share.
        random = RandomSampler(seed=self._derived(f"{trial.number}/{param_name}") % 2**32)
        return random.sample_independent(study, trial, param_name, param_distribution)

    def __getstate__(self) -> dict[str, Any]:
        own = ("_lock", "_learner", "_study", "_process")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _forget(self) -> None:
        """Starts from nothing, with a new lock."""
        self._lock = threading.Lock()
        self._learner: Learner | None = None
        self._study: tuple[Any, int] | None = None
        self._process = os.getpid()

    def _check_process(self) -> None:
        # A forked process would otherwise propose what its parent does.
        if self._process != os.getpid():
            self._forget()

    def _learner_of(self, study: Study) -> Learner:
        here = (study._storage, study._study_id)
        learner = self._learner
        if learner is None or self._study is None or not _is_same(self._study, here):
            sign = -1.0 if study.directions[0] == StudyDirection.MAXIMIZE else 1.0
            learner = Learner(self._begin, self._search_space, sign)
            self._learner, self._study = learner, here
        return learner

    def _begin(self, space: Space, number: int) -> Optimizer:
        # Processes with the same seed begin at different trials, and so with different points.
        rng = self._derived(str(number))
        budget = None if self._budget is None else max(self._budget - number, 1)
        return Optimizer(space, self._method, budget=budget, rng=rng, **self._options)

    def _derived(self, what: str) -> int:
        digest = hashlib.blake2b(f"{self._seed}/{what}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little")


def _is_same(one: tuple[Any, int], other: tuple[Any, int]) -> bool:
    return one[0] is other[0] and one[1] == other[1]
