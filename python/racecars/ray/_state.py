"""The searcher's file: a line that says what it is, one with the checksum of the rest, one of JSON,
and the optimizer's own bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racecars._axes import Axis
from racecars._files import sealed, unsealed, write_atomically

KIND = b"racecars tune "
MAGIC = KIND + b"2"


@dataclass(frozen=True)
class State:
    """All that a searcher needs to continue; ``axes`` are ``None`` if the file cannot hold them."""

    optimizer: bytes
    live: dict[str, tuple[int | None, NDArray[np.float64]]]
    first: list[dict[str, Any]]
    axes: dict[tuple[str, ...], Axis] | None
    metric: str | None
    mode: str | None


def write(path: Any, state: State) -> None:
    """Writes a state, in place of what was there."""
    head = {
        "live": {trial: [number, code.tolist()] for trial, (number, code) in state.live.items()},
        "first": state.first,
        "axes": _kept(state.axes or {}),
        "metric": state.metric,
        "mode": state.mode,
    }
    try:
        line = json.dumps(head).encode()
    except TypeError as error:
        text = "points_to_evaluate that are not tried yet must be numbers, strings, and the like"
        raise ValueError(f"{text}, to be saved: {error}") from None
    write_atomically(Path(path), sealed(MAGIC, line + b"\n" + state.optimizer))


def read(path: Any) -> State:
    """Reads a state."""
    magic, content = unsealed(Path(path).read_bytes())
    if magic != MAGIC:
        other = " of this version" if magic.startswith(KIND) else ""
        raise ValueError(f"{path} is not the state of a RaceCarsSearch{other}")
    if content is None:
        raise ValueError(f"{path} is damaged: it does not match its checksum")
    try:
        line, _, optimizer = content.partition(b"\n")
        head: dict[str, Any] = json.loads(line)
        pairs = head["live"].items()
        live = {trial: (number, np.array(code, dtype=float)) for trial, (number, code) in pairs}
        kept = head["axes"]
        axes = None if kept is None else {tuple(path): Axis(**axis) for path, axis in kept}
        return State(optimizer, live, head["first"], axes, head["metric"], head["mode"])
    except Exception as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from None


def _kept(axes: dict[tuple[str, ...], Axis]) -> list[Any] | None:
    """The axes as JSON has them, if it gives all choices back as they are."""
    plain = (str, bool, int, float, type(None))
    choices = [choice for axis in axes.values() for choice in axis.choices or ()]
    if any(type(choice) not in plain for choice in choices):
        return None
    return [[path, asdict(axis)] for path, axis in axes.items()]
