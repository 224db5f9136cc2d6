"""`racecars prompt` beside Optuna's TPE over the same choices with the same number of calls.

    python -m peers.lm.prompts RACECARS MODEL.gguf DATA [--task sst2] [--splits 13,21] [--seeds 3]

MODEL runs in llama.cpp's own server (PyPI's `xllamacpp`). Both search an instruction, label words
and up to two examples in any order, by the mean log-probability of the right word on the training
texts of a split of LM-BFF, choose among their best three by the development texts, and are tested
on texts that chose nothing. A call is a request with one text. TPE evaluates each
prompt on all training texts. Each number of calls is a search of its own for racecars, which plans
with it; for TPE it is the beginning of the same search.

Each split is searched with several seeds, which differ between splits, tasks and models. The last
table has the differences from TPE, search by search.

`--variant 'drop_level = 0'` is another search by racecars beside the default one, with these lines
in `[search]` of its file (several are separated by semicolons).

The model answers each request once: `--out` has the answers, which count as calls in every search
that asks for them. It has the results, too, so that the same command continues.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import shutil
import socket
import statistics
import subprocess
import threading
import urllib.request
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import exp, log
from pathlib import Path
from typing import Any

import optuna
import xllamacpp

POOL, MOST_EXAMPLES, FINALISTS = 8, 2, 3
TPE = "Optuna TPE"
# Added to the probability of each label word; as in crates/racecars-prompt/src/metric.rs.
LEAST_PROBABILITY = 0.01


@dataclass(frozen=True)
class Task:
    columns: list[str]
    template: str
    example: str
    instructions: list[str]
    words: list[dict[str, str]]
    test: str = "test.tsv"


TASKS = {
    "sst2": Task(
        ["sentence"],
        "{instruction}{examples}Review: {sentence}\nSentiment:",
        "Review: {sentence}\nSentiment: {label}\n\n",
        [
            "",
            "Is the review positive or negative?\n\n",
            "Classify the sentiment of the movie review.\n\n",
            "The critic's opinion of the movie:\n\n",
            "Read the review and say how the critic feels about the film.\n\n",
            "Decide whether the sentence praises or pans the film.\n\n",
            "Great films get good reviews, terrible films get bad reviews.\n\n",
            "You are a careful judge of movie reviews.\n\n",
        ],
        [
            {"0": "negative", "1": "positive"},
            {"0": "terrible", "1": "great"},
            {"0": "bad", "1": "good"},
            {"0": "awful", "1": "wonderful"},
        ],
    ),
    "agnews": Task(
        ["text"],
        "{instruction}{examples}Article: {text}\nTopic:",
        "Article: {text}\nTopic: {label}\n\n",
        [
            "",
            "What is the article about?\n\n",
            "Classify the news article.\n\n",
            "Is it world news, sports, business or technology?\n\n",
            "Name the section of the newspaper.\n\n",
            "Sort the article into World, Sports, Business or Technology.\n\n",
        ],
        [
            {"0": "World", "1": "Sports", "2": "Business", "3": "Technology"},
            {"0": "politics", "1": "sports", "2": "business", "3": "science"},
            {"0": "International", "1": "Sports", "2": "Economy", "3": "Technology"},
        ],
        "test.head2000.tsv",
    ),
    "rte": Task(
        ["sentence1", "sentence2"],
        "{instruction}{examples}{sentence1}\nQuestion: {sentence2} True or false?\nAnswer:",
        "{sentence1}\nQuestion: {sentence2} True or false?\nAnswer: {label}\n\n",
        [
            "",
            "Does the text imply the statement?\n\n",
            "Read the text and judge the statement.\n\n",
            "Answer true if the statement follows from the text.\n\n",
        ],
        [
            {"not_entailment": "false", "entailment": "true"},
            {"not_entailment": "False", "entailment": "True"},
            {"not_entailment": "No", "entailment": "Yes"},
        ],
    ),
}

Row = dict[str, str]


def read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


class Server:
    """llama.cpp's server."""

    def __init__(self, model: Path, threads: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_parallel, params.n_ctx = 4, 4 * 1024
        params.n_batch = params.n_ubatch = 512
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        # Without it the layers with a window forget what prompts begin with: 2.8 times the time.
        params.swa_full = True
        params.port = port
        self.server = xllamacpp.Server(params)
        self.url = f"http://127.0.0.1:{port}/v1"


class Answers(ThreadingHTTPServer):
    """A server in front of llama.cpp's, with the answers that it has given so far."""

    daemon_threads = True

    def __init__(self, url: str, file: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.model_url, self.file, self.lock = url, file, threading.Lock()
        lines = file.read_text().splitlines() if file.exists() else []
        self.known: dict[str, str] = dict(json.loads(line) for line in lines)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def answer(self, body: str) -> str:
        """The answer to a request for one token, with nothing but its log-probabilities."""
        request = json.loads(body)
        key = json.dumps(request, sort_keys=True)
        if key not in self.known:
            post = urllib.request.Request(
                f"{self.model_url}/completions", body.encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(post, timeout=300) as given:
                whole = json.load(given)
            choice = whole["choices"][0]
            kept = {
                "choices": [{"text": choice["text"], "logprobs": choice["logprobs"]}],
                "usage": whole["usage"],
            }
            with self.lock, self.file.open("a") as file:
                self.known[key] = json.dumps(kept)
                file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


class Handler(BaseHTTPRequestHandler):
    server: Answers
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answer = self.server.answer(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


class Client:
    """The same requests as racecars sends."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def tokens(self, prompt: str) -> dict[str, float]:
        body = {"model": "m", "prompt": prompt, "temperature": 0, "max_tokens": 1, "logprobs": 40}
        answer = json.loads(self.answers.answer(json.dumps(body)))
        found = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return {item["token"]: item["logprob"] for item in found}

    def scores(self, task: Task, choice: Choice, rows: list[Row]) -> list[tuple[float, float]]:
        """The log-probability of the right word among the words, and whether it is the first."""
        with ThreadPoolExecutor(4) as pool:
            tokens = list(pool.map(lambda row: self.tokens(choice.prompt(task, row)), rows))
        return [score(task, choice, row, found) for row, found in zip(rows, tokens)]


@dataclass(frozen=True)
class Choice:
    instruction: int
    words: int
    examples: tuple[int, ...]
    pool: tuple[tuple[tuple[str, str], ...], ...]

    def prompt(self, task: Task, row: Row) -> str:
        words, shown = task.words[self.words], ""
        for i in self.examples:
            example = dict(self.pool[i])
            if example != row:
                filled = {name: example[name] for name in task.columns}
                shown += fill(task.example, {**filled, "label": words[example["label"]]})
        instruction = task.instructions[self.instruction]
        return fill(task.template, {**row, "instruction": instruction, "examples": shown})


def fill(template: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        template = template.replace("{" + name + "}", value)
    return template


def score(task: Task, choice: Choice, row: Row, tokens: dict[str, float]) -> tuple[float, float]:
    words = task.words[choice.words]
    found = {label: LEAST_PROBABILITY for label in words}
    has_word = False
    for token, logprob in tokens.items():
        text = token.strip()
        of = [
            label
            for label, word in words.items()
            if word == text or (len(text) > 1 and word.startswith(text))
        ]
        if len(of) == 1:
            found[of[0]] += exp(logprob)
            has_word = True
    right = found[row["label"]]
    others = [p for label, p in found.items() if label != row["label"]]
    # An answer without a label word is as bad as one that is sure of a wrong one.
    value = right / sum(found.values()) if has_word else LEAST_PROBABILITY
    return log(value), float(right > max(others))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@dataclass(frozen=True)
class Found:
    """A chosen prompt: its mean score on training and test texts, its test accuracy, and how many
    prompts were tried."""

    train: float
    test: float
    accuracy: float
    tried: int


def run_tpe(
    client: Client, task: Task, tables: dict[str, list[Row]], calls: list[int], seed: int
) -> dict[str, list[Found]]:
    """What was chosen after each number of calls."""
    pool = tuple(tuple(sorted(row.items())) for row in tables["pool"])
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True)
    )
    study.enqueue_trial({"instruction": 0, "words": 0, "count": 0})
    trials: list[tuple[float, Choice]] = []

    def objective(trial: optuna.Trial) -> float:
        instruction = trial.suggest_categorical("instruction", range(len(task.instructions)))
        words = trial.suggest_categorical("words", range(len(task.words)))
        count = trial.suggest_int("count", 0, MOST_EXAMPLES)
        names = [f"example{i}" for i in range(count)]
        given = [trial.suggest_categorical(name, range(len(pool))) for name in names]
        choice = Choice(instruction, words, tuple(dict.fromkeys(given)), pool)
        value = mean([value for value, _ in client.scores(task, choice, tables["train"])])
        trials.append((value, choice))
        return value

    results = []
    for limit in calls:
        study.optimize(objective, n_trials=limit // len(tables["train"]) - len(trials))
        best = sorted(trials, key=lambda trial: -trial[0])
        finalists = list(dict.fromkeys(choice for _, choice in best))[:FINALISTS]
        both = tables["train"] + tables["dev"]
        pooled = {
            choice: mean([value for value, _ in client.scores(task, choice, both)])
            for choice in finalists
        }
        chosen = max(pooled, key=lambda choice: pooled[choice])
        train = mean([value for value, _ in client.scores(task, chosen, tables["train"])])
        test = client.scores(task, chosen, tables["test"])
        accuracy = mean([right for _, right in test])
        results.append(Found(train, mean([value for value, _ in test]), accuracy, len(trials)))
    return {TPE: results}


def run_racecars(
    racecars: str,
    url: str,
    task: Task,
    tables: dict[str, list[Row]],
    calls: list[int],
    seed: int,
    folder: Path,
    variant: str,
) -> dict[str, list[Found]]:
    """The first prompt, and what was chosen after each number of calls."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, rows in tables.items():
        columns = [*task.columns, "label"]
        lines = ["\t".join(columns)] + [
            "\t".join(row[column] for column in columns) for row in rows
        ]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    text = json.dumps  # TOML's basic strings are JSON's.
    tables_of_words = [
        "{ " + ", ".join(f'"{label}" = "{word}"' for label, word in words.items()) + " }"
        for words in task.words
    ]
    settings = f"""
[endpoint]
url = "{url}"
api = "completions"
model = "m"
timeout = "5m"
[prompt]
template = {text(task.template)}
example = {text(task.example)}
[choices]
instruction = {text(task.instructions)}
[labels]
words = [{", ".join(tables_of_words)}]
[examples]
file = "pool.tsv"
count = "0..{MOST_EXAMPLES}"
[data]
train = "train.tsv"
dev = "dev.tsv"
test = "test.tsv"
[metric]
kind = "label-words"
top = 40
[search]
finalists = {FINALISTS}
seed = {seed}
{variant.replace("; ", chr(10))}
[limits]
calls = 1
"""
    (folder / "task.toml").write_text(settings)
    final = FINALISTS * len(tables["dev"]) + 2 * len(tables["test"])
    results = []
    for limit in calls:
        command = [racecars, "prompt", str(folder / "task.toml"), "--json", "--jobs", "4"]
        command += ["--study", str(folder / f"{limit}"), "--calls", str(limit + final)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        result = json.loads(done.stdout)
        results.append(found(result, "best"))
    if variant:
        return {f"racecars prompt, {variant}": results}
    return {"first prompt": [found(result, "start")] * len(calls), "racecars prompt": results}


def found(result: dict[str, Any], which: str) -> Found:
    prompt = result[which]
    train, test = prompt["train"], prompt["test"]
    return Found(train["value"], test["value"], test["accuracy"]["value"], result["candidates"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("racecars")
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", default="sst2", choices=TASKS)
    parser.add_argument("--calls", default="160,480")
    parser.add_argument("--splits", default="13,21", help="of LM-BFF")
    parser.add_argument("--seeds", type=int, default=1, help="searches of each split")
    parser.add_argument("--variant", action="append", default=[], help="see above")
    parser.add_argument(
        "--texts", type=int, default=32, help="training texts, and development texts"
    )
    parser.add_argument("--test", type=int, default=100, help="test texts")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("prompts-out"))
    given = parser.parse_args()
    task, calls = TASKS[given.task], [int(part) for part in given.calls.split(",")]
    server = Server(given.model, given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    answers = Answers(server.url, given.out / f"{given.task}-{given.model.stem}.jsonl")
    client = Client(answers)
    rows: dict[str, list[list[Found]]] = {}
    for split in [int(part) for part in given.splits.split(",")]:
        tables = read_split(given.data, given.task, split, given.texts, given.test)
        for repeat in range(given.seeds):
            seed = zlib.crc32(f"{given.task} {given.model.stem} {split} {repeat}".encode())
            parts = [given.task, given.model.stem, given.calls, given.texts, given.test]
            name = "-".join(str(part) for part in [*parts, split, repeat])
            search = partial(run_racecars, given.racecars, answers.url, task, tables, calls, seed)
            ours = partial(search, given.out / name)
            searches: list[Callable[[], dict[str, list[Found]]]] = [
                partial(ours, variant) for variant in ["", *given.variant]
            ]
            searches.append(partial(run_tpe, client, task, tables, calls, seed))
            for label, run in zip(["", *given.variant, "TPE"], searches):
                # Searches that have been run are not run again.
                file = given.out / f"{name}-{zlib.crc32(label.encode()):08x}.json"
                if not file.exists():
                    as_json = {of: [vars(f) for f in all_found] for of, all_found in run().items()}
                    file.write_text(json.dumps(as_json))
                for of, all_found in json.loads(file.read_text()).items():
                    rows.setdefault(of, []).append([Found(**values) for values in all_found])
    of_each = f"splits {given.splits}, {given.seeds} searches each, {given.test} test texts"
    print(f"{given.task}, {given.model.stem}, {of_each}\n")
    show(rows, calls)


def show(rows: dict[str, list[list[Found]]], calls: list[int]) -> None:
    """Prints the means of each search, and the differences from TPE."""
    columns = "".join(f" prompts, {n} calls | train | test | accuracy |" for n in calls)
    print(f"| search |{columns}\n| --- |" + " ---: |" * 4 * len(calls))
    for label, runs in rows.items():
        cells = ""
        for column in zip(*runs):
            accuracy = [100 * run.accuracy for run in column]
            cells += f" {mean([run.tried for run in column]):.0f} |"
            cells += f" {mean([run.train for run in column]):.3f} |"
            cells += f" {mean([run.test for run in column]):.3f} |"
            cells += f" {mean(accuracy):.1f}{spread(accuracy, 1)} % |"
        print(f"| {label} |{cells}")
    columns = "".join(f" test, {n} calls | accuracy |" for n in calls)
    print("\nDifferences from TPE, with standard errors over searches:\n")
    print(f"| search |{columns}\n| --- |" + " ---: |" * 2 * len(calls))
    tpe = rows.pop(TPE)
    for label, runs in rows.items():
        cells = ""
        for ours, theirs in zip(zip(*runs), zip(*tpe)):
            tests = [a.test - b.test for a, b in zip(ours, theirs)]
            accuracies = [100 * (a.accuracy - b.accuracy) for a, b in zip(ours, theirs)]
            root = len(tests) ** 0.5
            cells += f" {mean(tests):+.3f}{spread(tests, root, 3)} |"
            cells += f" {mean(accuracies):+.1f}{spread(accuracies, root)} |"
        print(f"| {label} |{cells}")


def spread(values: list[float], divisor: float, digits: int = 1) -> str:
    return f" ± {statistics.stdev(values) / divisor:.{digits}f}" if len(values) > 1 else ""


def read_split(data: Path, task: str, split: int, texts: int, tests: int) -> dict[str, list[Row]]:
    """The training, development and test texts, and the pool of examples."""
    of = TASKS[task]
    folder = data / task / f"16-{split}"
    train, dev = read(folder / "train.tsv"), read(folder / "dev.tsv")
    named = data / task / of.test
    test = read(named if named.exists() else data / task / "test.tsv")
    random.Random(0).shuffle(test)
    for table in (train, dev):
        random.Random(split).shuffle(table)
    # Examples are training texts, too; a text is never shown its own answer.
    tables = {
        "train": train[:texts],
        "dev": dev[:texts],
        "test": test[:tests],
        "pool": train[:POOL],
    }
    keep = [*of.columns, "label"]
    # The only column of a test file may have another name.
    return {
        name: [{c: row.get(c) or row["sentence"] for c in keep} for row in rows]
        for name, rows in tables.items()
    }


if __name__ == "__main__":
    main()
