"""Problems that several tests minimize."""

from __future__ import annotations

from typing import Any

import numpy as np

import racecars

BOUNDS = [(-5, 5)] * 3
SPACE = {
    "lr": (1e-5, 1e-1, "log"),
    "depth": range(1, 9),
    "act": ["relu", "tanh"],
    "w": racecars.Real(-1, 1, count=2),
}


def sphere(x: Any) -> float:
    return float((x**2).sum())


def loss(p: Any) -> float:
    far = abs(np.log10(p["lr"]) + 3) + (p["depth"] - 4) ** 2
    return float(far + (p["act"] == "relu") + (p["w"] ** 2).sum())
