#!/usr/bin/env python3
"""`racecars prompt` beside Optuna's TPE on the stand-in model, same choices and number of calls.

    python compare.py [RACECARS] [--seeds 5] [--calls 1500]

Needs `optuna`, and `python server.py` running. Prints the accuracy on the 200 test texts.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import optuna
import tomllib
from server import judge

HERE = Path(__file__).parent
ALGORITHMS = ["default", "race-cars", "random"]
FINALISTS = 5


def read(name: str) -> list[dict[str, str]]:
    with (HERE / f"{name}.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def ours(racecars: str, algorithm: str, calls: int, seed: int) -> tuple[float, int]:
    text = (HERE / "sentiment.toml").read_text()
    for table in ("train", "dev", "test", "pool"):
        text = text.replace(f'"{table}.tsv"', json.dumps(str(HERE / f"{table}.tsv")))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "task.toml"
        named = "" if algorithm == "default" else f'algorithm = "{algorithm}"\n'
        file.write_text(f"{text}\n[search]\n{named}seed = {seed}\n")
        command = [racecars, "prompt", str(file), "--json", "--study", f"{folder}/study"]
        command += ["--calls", str(calls)]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    result = json.loads(done.stdout)
    return result["best"]["test"]["accuracy"]["value"], result["candidates"]


def tpe(calls: int, seed: int) -> tuple[float, int]:
    settings = tomllib.loads((HERE / "sentiment.toml").read_text())
    instructions, pool = settings["choices"]["instruction"], read("pool")
    tables = {name: read(name) for name in ("train", "dev", "test")}

    def prompt(choice: tuple[int, tuple[int, ...], float], row: dict[str, str]) -> str:
        example = settings["prompt"]["example"]
        shown = "".join(example.format(**pool[i]) for i in choice[1])
        template = settings["prompt"]["template"]
        return str(template.format(instruction=instructions[choice[0]], examples=shown, **row))

    def right(choice: tuple[int, tuple[int, ...], float], name: str) -> list[bool]:
        return [judge(prompt(choice, row), choice[2]) == row["label"] for row in tables[name]]

    tried: list[tuple[float, tuple[int, tuple[int, ...], float]]] = []

    def objective(trial: optuna.Trial) -> float:
        instruction = trial.suggest_categorical("instruction", range(len(instructions)))
        count = trial.suggest_int("count", 0, 3)
        names = [f"example{i}" for i in range(count)]
        picked = [trial.suggest_categorical(name, range(len(pool))) for name in names]
        temperature = trial.suggest_float("temperature", 0, 1)
        choice = (instruction, tuple(dict.fromkeys(picked)), temperature)
        tried.append((statistics.mean(right(choice, "train")), choice))
        return tried[-1][0]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial({"instruction": 0, "count": 0, "temperature": 0.5})
    final = FINALISTS * len(tables["dev"]) + 2 * len(tables["test"])
    study.optimize(objective, (calls - final) // len(tables["train"]))
    best = sorted(tried, key=lambda pair: -pair[0])
    finalists = list(dict.fromkeys(choice for _, choice in best))[:FINALISTS]
    chosen = max(finalists, key=lambda c: statistics.mean(right(c, "train") + right(c, "dev")))
    return statistics.mean(right(chosen, "test")), len(tried)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("racecars", nargs="?", default="racecars")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1500)
    given = parser.parse_args()
    seeds = range(1, given.seeds + 1)
    rows = {
        f"racecars, {name}": [ours(given.racecars, name, given.calls, seed) for seed in seeds]
        for name in ALGORITHMS
    }
    rows["Optuna TPE"] = [tpe(given.calls, seed) for seed in seeds]
    print("| search | prompts | test accuracy |\n| --- | ---: | ---: |")
    for name, found in rows.items():
        values = [100 * accuracy for accuracy, _ in found]
        prompts = statistics.mean(count for _, count in found)
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        print(f"| {name} | {prompts:.0f} | {statistics.mean(values):.1f} ± {spread:.1f} % |")


if __name__ == "__main__":
    main()
