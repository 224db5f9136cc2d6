"""The throw of the best trebuchet of each seed's study, and how the studies got there."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from trebuchet import AXLE, throw

import racecars

studies = {path.name: racecars.read_study(path) for path in sorted(Path("studies").iterdir())}
best = max(
    (trial for trials in studies.values() for trial in trials if trial.outcome == "value"),
    key=lambda trial: trial.value,
)
seen = []
throw(**best.params, watch=lambda places, velocity: seen.append((places, velocity)))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for (tip, stone, end, weight), _ in seen[:: max(1, len(seen) // 7)] + seen[-1:]:
    line = np.array([stone, tip, end, weight])
    left.plot(line.real, line.imag, color="0.6", linewidth=1)
    left.plot(weight.real, weight.imag, "s", color="0.3", markersize=7)
    left.plot(stone.real, stone.imag, "o", color="tab:red", markersize=4)
path = np.array([places[1] for places, _ in seen])
stone, velocity = path[-1], seen[-1][1]
t = np.linspace(0, 0.6, 20)
flight = stone + velocity * t - 0.5j * 9.81 * t**2
left.plot(path.real, path.imag, ":", color="tab:red", linewidth=1)
left.plot(flight.real, flight.imag, "--", color="tab:red", linewidth=1)
left.plot(0, AXLE, "o", color="black")
left.axhline(0, color="0.4", linewidth=1)
left.set(
    aspect="equal", xlim=(-9, 7), ylim=(-0.5, 12), xlabel="metres", title=f"{best.value:.0f} m"
)
names = {"auto": "auto", "random": "random search"}
for algorithm, colour in (("auto", "tab:blue"), ("random", "tab:orange")):
    for name, trials in studies.items():
        if name.startswith(algorithm):
            values = np.where(trials.outcome == "value", trials.value, -np.inf)
            label = f"{names[algorithm]}, by seed" if name.endswith("-1") else None
            reached = np.maximum.accumulate(values)
            right.step(
                np.arange(1, len(reached) + 1), reached, color=colour, where="post", label=label
            )
right.set(xlabel="evaluations", ylabel="range of the best so far, metres")
right.legend()
figure.savefig("picture.svg")
