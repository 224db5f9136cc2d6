"""The native part: see crates/racecars-python."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

METHODS: list[str]
STOP_REASONS: list[str]
RETRYABLE: list[str]
LOOKAHEAD: int
MAX_COORDINATES: int
MAX_TRIALS: int
MAX_SHORT_COORDINATES: int
MAX_SHORT_TRIALS: int
__version__: str

def settings(method: str) -> dict[str, str]:
    """The settings of a method: a dict from the name of each to what it does."""

def algorithm_name(method: str | None, options: dict[str, Any]) -> str: ...
def budget(
    dimension: int, maxfev: int | None, maxtime: float | None, patience: int | None
) -> int | None: ...
def read_study(
    folder: str,
) -> tuple[
    Space,
    TrialData,
    NDArray[np.float64],
    bool,
    dict[str, Any],
    list[tuple[list[float], float | None, float | None]],
]: ...
def write_journal(
    folder: str,
    space: Space,
    method: str | None,
    options: dict[str, Any],
    seed: int,
    maxfev: int | None,
    maximize: bool,
    starts: list[Any],
    x: NDArray[np.float64],
    value: NDArray[np.float64],
    odd: list[tuple[int, str, float]],
    time: NDArray[np.float64],
    seconds: NDArray[np.float64],
    worker: NDArray[np.int32],
    reason: str,
) -> None: ...
def write_report(folder: str, out: str) -> None: ...
def report_data(folder: str) -> str: ...

class SpaceExhausted(RuntimeError):
    """Every point of a discrete space has been proposed or told."""

class Space:
    """A space that the core can search."""

    def __new__(
        cls,
        entries: Sequence[tuple[Any, ...]],
        is_by_name: bool,
        conditions: Sequence[tuple[str, str]] = ...,
        constraints: Sequence[str] = ...,
        functions: Sequence[tuple[str, Any]] = ...,
    ) -> Self: ...
    @property
    def is_by_name(self) -> bool: ...
    @property
    def dimension(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def narrow_note(self) -> str | None: ...
    @property
    def functions(self) -> list[str]: ...
    @property
    def cardinality(self) -> int | None: ...
    @property
    def coordinates(self) -> list[str]: ...
    @property
    def ranges(self) -> list[tuple[str, float, float, bool, list[str]]]: ...
    def taken_over(
        self, other: Space, x: NDArray[np.float64], given: dict[str, Any]
    ) -> tuple[NDArray[np.float64], list[int]]: ...
    def to_json(self) -> str: ...
    def params(self, x: NDArray[np.float64]) -> dict[str, Any]: ...
    def x(self, params: Mapping[str, Any]) -> NDArray[np.float64]: ...
    @staticmethod
    def from_parts(
        json: str, objects: list[list[Any]], is_by_name: bool, functions: list[tuple[str, Any]]
    ) -> Space: ...

class Candidate:
    """A point to evaluate, and to give back to `Optimizer.tell` with its outcome."""

    @property
    def id(self) -> int | None:
        """The candidate's number, in the order asked; `None` for a point that was not asked."""
    @property
    def x(self) -> NDArray[np.float64]:
        """The point as an array: numbers as they are, other values by their position."""
    @property
    def params(self) -> dict[str, Any]:
        """The point as a dict of parameters."""
    @property
    def code(self) -> NDArray[np.float64]:
        """The encoded point, from which `Optimizer.restore` restores the candidate."""

class TrialData:
    """The trials of a session that has ended. Arrays are made when they are asked for."""

    def __len__(self) -> int: ...
    @property
    def stride(self) -> int: ...
    def number(self) -> NDArray[np.int64]: ...
    def x(self) -> NDArray[np.float64]: ...
    def time(self) -> NDArray[np.float64]: ...
    def seconds(self) -> NDArray[np.float64]: ...
    def worker(self) -> NDArray[np.int32]: ...
    def odd(self) -> list[tuple[int, str, float, float]]: ...

class Embedding:
    """A random subspace of a continuous space."""

    def __new__(
        cls, space: Space, dim: int, seed: int, through: NDArray[np.float64] | None = None
    ) -> Self: ...
    @property
    def space(self) -> Space: ...
    @property
    def dimension(self) -> int: ...
    def lift(self, y: NDArray[np.float64]) -> NDArray[np.float64]: ...

class Session:
    """A search whose trials Python code evaluates. It has the optimizer until it is closed."""

    def __new__(
        cls,
        optimizer: Optimizer,
        space: Space,
        *,
        maxfev: int | None = None,
        maxtime: float | None = None,
        target: float | None = None,
        patience: int | None = None,
        lookahead: int | None = None,
        watch: bool = False,
        maximize: bool = False,
        patience_tolerance: float = 0.0,
        keep: bool = True,
    ) -> Self: ...
    def close(self) -> None: ...
    @property
    def space(self) -> Space: ...
    def start(self, point: NDArray[np.float64] | Mapping[str, Any]) -> None: ...
    def known(
        self,
        point: NDArray[np.float64] | Mapping[str, Any],
        value: float | None = None,
        violation: float | None = None,
        failure: str | None = None,
        text: str = "",
    ) -> None: ...
    def next(self, on_told: Callable[[], object] | None = None) -> tuple[int, Any] | None: ...
    def tell(
        self,
        number: int,
        value: float | None = None,
        violation: float | None = None,
        failure: str | None = None,
        text: str = "",
        evaluated: bool = True,
        seconds: float | None = None,
        worker: int = 0,
        traceback: str | None = None,
        constraints: list[float] | None = None,
    ) -> int: ...
    def drive(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        on_told: Callable[[], object] | None = None,
        seconds: float | None = None,
    ) -> tuple[int, Any, bool, float] | None: ...
    def point_of(self, number: int) -> Any: ...
    def x_of(self, number: int) -> NDArray[np.float64]: ...
    def stop(self, reason: str) -> None: ...
    @property
    def out(self) -> list[int]: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def told(self) -> int: ...
    def counts(self) -> tuple[int, int, int]: ...
    def best(self) -> tuple[NDArray[np.float64], float | None, float | None, int] | None: ...
    def history(self) -> NDArray[np.float64]: ...
    def take_trials(self) -> TrialData: ...
    def open_study(
        self,
        folder: str,
        method: str | None,
        options: dict[str, Any],
        seed: int,
        starts: list[Any],
        known: list[tuple[Any, float | None, float | None, str | None, str]],
        jobs: int,
        restart: bool,
    ) -> bool: ...
    def study_files(self) -> list[int]: ...
    def close_study(self) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def resume(self, state: dict[str, Any]) -> None: ...

class Optimizer:
    """The state machine of an algorithm on a space."""

    def __new__(
        cls,
        space: Space | None,
        method: str | None,
        budget: int | None,
        seed: int,
        options: dict[str, Any],
        saved: bytes | None = None,
    ) -> Self: ...
    def _best(self) -> tuple[NDArray[np.float64], float | None, float | None, int] | None: ...
    @overload
    def ask(self, n: None = None) -> Candidate: ...
    @overload
    def ask(self, n: int) -> NDArray[np.float64]: ...
    def tell(
        self,
        candidate: Candidate | NDArray[np.float64] | Mapping[str, Any] | list[Any],
        value: Any = None,
        *,
        violation: float | None = None,
        constraints: list[float] | None = None,
        error: object = None,
    ) -> None: ...
    def known(self, point: NDArray[np.float64] | Mapping[str, Any]) -> Candidate: ...
    def restore(self, id: int | None, code: NDArray[np.float64]) -> Candidate: ...
    def to_bytes(self) -> bytes: ...
    @property
    def space(self) -> Space: ...
    @property
    def method(self) -> str: ...
    @property
    def told(self) -> int: ...
    @property
    def pending(self) -> int: ...
    def _portfolio(self) -> str | None: ...
