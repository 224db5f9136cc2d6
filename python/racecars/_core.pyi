"""The native part: see crates/racecars-python."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

METHODS: list[str]
__version__: str

class SpaceExhausted(RuntimeError):
    """Every point of a discrete space has been proposed or told."""

class Space:
    """A space that the core can search."""

    def __new__(cls, entries: Sequence[tuple[Any, ...]], is_by_name: bool) -> Self: ...
    @property
    def is_by_name(self) -> bool: ...
    @property
    def dimension(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def cardinality(self) -> int | None: ...
    def to_json(self) -> str: ...
    def params(self, x: NDArray[np.float64]) -> dict[str, Any]: ...
    def x(self, params: Mapping[str, Any]) -> NDArray[np.float64]: ...

class Candidate:
    """A point to evaluate, and to give back to `Optimizer.tell` with what came of it."""

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
        """The encoded point, of which `Optimizer.restore` makes the candidate anew."""

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

class Record:
    """The counts of a run and the value of each evaluation, in the order told."""

    def __new__(
        cls,
        values: NDArray[np.float64] | None = None,
        evaluations: int = 0,
        failed: int = 0,
        infeasible: int = 0,
    ) -> Record: ...
    @property
    def told(self) -> int: ...
    @property
    def evaluations(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def infeasible(self) -> int: ...
    def values(self) -> NDArray[np.float64]: ...
    def add_value(self, value: float) -> None: ...
    def add_failed(self) -> None: ...
    def add_infeasible(self, evaluated: bool) -> None: ...

class Optimizer:
    """The state machine of an algorithm on a space."""

    def __new__(
        cls,
        space: Space | None,
        method: str,
        budget: int | None,
        seed: int,
        options: dict[str, Any],
        saved: bytes | None = None,
    ) -> Self: ...
    def _best(
        self,
    ) -> tuple[NDArray[np.float64], float | None, float | None] | None: ...
    def _drive(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        record: Record,
        limit: int,
        seconds: float | None = None,
        target: float | None = None,
        as_dict: bool = False,
    ) -> tuple[str, Candidate | None, Any]: ...
    @overload
    def ask(self, n: None = None) -> Candidate: ...
    @overload
    def ask(self, n: int) -> NDArray[np.float64]: ...
    def tell(
        self,
        candidate: Candidate | NDArray[np.float64] | Mapping[str, Any],
        value: Any = None,
        *,
        violation: float | None = None,
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
