"""What the recommended staffs cost on days that no study has seen, and the best one's queue."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from clinic import ARRIVALS, CONSULTATION, SHIFT, day

DAYS = range(10**6, 10**6 + 500)

found = {}
print("cost per day       said  really  staff")
for path in sorted(Path("studies").glob("*.json")):
    study = json.loads(path.read_text())
    # On a noisy study `best` is the luckiest trial; `recommended` was evaluated several times.
    best = study.get("recommended") or study["best"]
    staff = best["params"]["staff"]
    found[path.stem] = best["value"], np.mean([day(seed, staff)[0] for seed in DAYS]), staff
    said, really, _ = found[path.stem]
    print(f"{path.stem:16} {said:6.0f}  {really:6.0f}  {' '.join(map(str, staff))}")
for algorithm in ("auto", "random"):
    rows = np.array([row[:2] for name, row in found.items() if name.startswith(algorithm)])
    said, really = rows.mean(axis=0)
    print(f"{algorithm:7} mean     {said:6.0f}  {really:6.0f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for algorithm, colour in (("auto", "tab:blue"), ("random", "tab:orange")):
    rows = np.array([row[:2] for name, row in found.items() if name.startswith(algorithm)])
    left.plot(
        *rows.T, "o", color=colour, label={"auto": "auto", "random": "random search"}[algorithm]
    )
ends = [min(left.get_xlim()[0], left.get_ylim()[0]), max(left.get_xlim()[1], left.get_ylim()[1])]
left.plot(ends, ends, color="0.7", linewidth=1, zorder=0)
left.set(xlabel="cost per day that the study says", ylabel="cost on 500 other days")
left.legend()

staff = min(found.values(), key=lambda row: row[1])[2]
hours = 8 + np.arange(0, len(ARRIVALS) * SHIFT, 5) / 60
shift = (hours - 8) // (SHIFT / 60)
queue = np.mean([day(seed, staff)[1] for seed in DAYS[:200]], axis=0)
doctors = np.array(staff)[shift.astype(int)]
right.fill_between(hours, doctors, color="0.85", step="post", label="doctors")
needed = np.array(ARRIVALS)[shift.astype(int)] * CONSULTATION
right.step(
    hours,
    needed,
    "--",
    where="post",
    color="tab:green",
    label="doctors that are busy if nobody waits",
)
right.plot(hours, queue[::5], color="tab:red", label="patients waiting, mean")
right.set(xlabel="hour", ylim=(0, max(max(staff), queue.max()) * 1.6))
right.legend(fontsize=8, loc="upper left")
figure.savefig("picture.svg")
