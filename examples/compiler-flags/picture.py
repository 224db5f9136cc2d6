"""How the studies went, and which flags matter."""

import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import racecars

studies = {path.name: racecars.read_study(path) for path in sorted(Path("studies").iterdir())}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for algorithm, colour in (("auto", "tab:blue"), ("random", "tab:orange")):
    for name, trials in studies.items():
        if name.startswith(algorithm):
            label = {"auto": "auto, by seed", "random": "random search, by seed"}[algorithm]
            reached = np.fmin.accumulate(trials.value)
            numbers = np.arange(1, len(reached) + 1)
            first = name.endswith("-1")
            left.step(numbers, reached, color=colour, where="post", label=label if first else None)
for level in ("-Os", "-Oz"):
    size = float(subprocess.run(["./compile", level], capture_output=True, check=True).stdout)
    left.axhline(size, color="0.5", linestyle=":")
    left.text(len(numbers), size, f"gcc {level}", ha="right", va="bottom", fontsize=8)
left.set(xlabel="evaluations", ylabel="bytes of code and data")
left.set_ylim(top=min(2900, left.get_ylim()[1]))
left.legend(fontsize=8)
if len(studies["auto-1"]) >= 40:
    racecars.plot.importance(studies["auto-1"], right, most=10)
figure.savefig("picture.svg")
