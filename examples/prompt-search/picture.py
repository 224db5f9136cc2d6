"""The prompts of the first search by calls, and how good the chosen prompts of all searches are."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import tomllib

instructions = tomllib.loads(Path("sentiment.toml").read_text())["choices"]["instruction"]
results = {
    path.parent.name: json.loads(path.read_text())
    for path in sorted(Path("studies").glob("*/result.json"))
}
asked, calls, prompts = {}, 0, []
for line in Path("studies/default-1/journal.jsonl").read_text().splitlines():
    entry = json.loads(line)
    if "ask" in entry:
        asked[entry["ask"]["trial"]] = entry["ask"]["params"]
    elif "tell" in entry:
        scores = entry["tell"]["values"]
        calls += len(scores)
        choice = asked[entry["tell"]["trial"]]["instruction"] - 1
        prompts.append((calls, 100 * sum(scores) / len(scores), choice, len(scores)))

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[2, 1]
)
most = max(count for *_, count in prompts)
for choice, instruction in enumerate(instructions):
    mine = [prompt for prompt in prompts if prompt[2] == choice]
    if mine:
        left.scatter(
            [prompt[0] for prompt in mine],
            [prompt[1] for prompt in mine],
            s=[60 if prompt[3] == most else 14 for prompt in mine],
            color=f"C{choice}",
            label=instruction,
            alpha=0.8,
        )
left.set(xlabel="calls", ylabel="right answers, %", title="prompts of one search", ylim=(-5, 105))
left.legend(
    title="large: all texts; small: dropped early",
    fontsize=7,
    title_fontsize=7,
    loc="lower right",
    bbox_to_anchor=(1, 0.08),  # above the prompts without a right answer
)
for place, algorithm in enumerate(("default", "random")):
    found = [result for name, result in results.items() if name.startswith(algorithm)]
    values = [100 * result["best"]["test"]["value"] for result in found]
    right.plot([place] * len(values), values, "o", color=f"C{place}", alpha=0.6)
first = 100 * results["default-1"]["start"]["test"]["value"]
right.axhline(first, color="0.5", linestyle="--", linewidth=1)
right.text(-0.45, first + 2, "the first prompt", fontsize=8, color="0.4")
right.set(xlim=(-0.5, 1.5), ylim=(-5, 105), title="200 test texts", ylabel="right answers, %")
right.set_xticks([0, 1], ["racecars", "random"])
figure.savefig("picture.svg")
