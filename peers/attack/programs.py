"""Attacks by programs: odd numbers, shortages, endless files, values that a shell would run."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

from peers.attack.harness import Lab

# What a program prints, and the number that it is; `None` where that is not certain.
NUMBERS: list[tuple[str, float | None]] = [
    ("0.25", 0.25),
    ("-3", -3.0),
    ("+7", 7.0),
    ("loss: 0.25", 0.25),
    ("loss=0.25", 0.25),
    ("epoch 3 loss 0.25", 0.25),
    ("1e-3", 1e-3),
    ("1E+03", 1e3),
    ("5.", 5.0),
    (".5", 0.5),
    ("\x1b[32m0.25\x1b[0m", 0.25),
    ("\x1b[1;31mloss\x1b[0m = \x1b[32m-1.5e3\x1b[0m", -1500.0),
    ("0.15D+04", 1500.0),
    ("1d-3", 1e-3),
    ("\u22123.5", -3.5),
    ("1,234.5", None),
    ("1,5", None),
    ("1 000", None),
    ("1_000", None),
    ("0x1F", None),
    ("1.#QNAN", None),
    ("1.2.3", None),
    ("nan", None),
    ("inf", None),
    ("-Infinity", None),
    ("1e999", None),
    ("", None),
    ("no number", None),
    ("v2", None),
    ("--", None),
]

# The same for `json:loss`.
DOCUMENTS: list[tuple[str, float | None]] = [
    ('{"loss": 0.5}', 0.5),
    ('{"loss": 0.5, "other": NaN}', 0.5),
    ('{"other": -Infinity, "loss": 0.5}', 0.5),
    ('starting\nepoch 1\n{"loss": 0.5}', 0.5),
    ('{\n  "loss": 0.5,\n  "a": [1, 2]\n}', 0.5),
    ('{"loss": 0.5}\ndone in 3 s', 0.5),
    ('log {not json}\n{"loss": 0.5}\nbye {', 0.5),
    ('{"loss": NaN}', None),
    ('{"loss": Infinity}', None),
    ('{"loss": null}', None),
    ('{"loss": "0,5"}', None),
    ('{"lost": 0.5}', None),
    ('{"loss": 0.5', None),
    ("{" * 5000, None),
    ("[" * 200000, None),
]


def _printed(lab: Lab, text: str, source: str, expected: float | None) -> None:
    lab.tally.tries += 1
    folder = lab.folder / str(lab.tally.tries)
    folder.mkdir()
    (folder / "out.txt").write_text(text)
    arguments = ["-p", "x=0:1", "--env", "*", "--budget", "1", "--minimize", source]
    lab.run("run", *arguments, "--", "cat", str(folder / "out.txt"), at=folder)
    trials = lab.trials(folder)
    found = trials[0]["value"] if trials else None
    if found != expected:
        lab.tally.note_wrong(f"{source}: {text[:60]!r} is read as {found}, not {expected}")


def spellings(lab: Lab, tries: int) -> None:
    """Numbers and JSON as programs print them; each is read as what it is, or is a failure."""
    for text, expected in NUMBERS:
        _printed(lab, text, "last", expected)
    for text, expected in DOCUMENTS:
        _printed(lab, text, "json:loss", expected)
    for _ in range(tries):
        number = lab.random.uniform(-1, 1) * 10.0 ** lab.random.randint(-300, 300)
        text = lab.random.choice(["{!r}", "{:.17g}", "{:.17e}", "x={!r}", "[0.1, {!r}]"])
        _printed(lab, text.format(number), "last", number)


def shortages(lab: Lab, tries: int) -> None:
    """Too few file descriptors: no evaluation fails for it, and the study goes on later."""
    for number in range(tries):
        lab.tally.tries += 1
        folder = lab.folder / str(number)
        folder.mkdir()
        # 9 are too few for a single program: after a minute the run ends with an error.
        limit = 9 if number == 24 else 12 + number % 24
        arguments = ["run", "-p", "n=1..99", "--budget", "12", "--jobs", "4"]
        arguments += ["--", "sh", "-c", "echo {n}"]

        def starve(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        lab.run(*arguments, at=folder, before=starve)
        lab.run(*arguments, at=folder)
        trials = lab.trials(folder) or []
        wrong = [trial for trial in trials if trial["value"] != trial["params"]["n"]]
        if wrong or len(trials) != 12:
            lab.tally.note_wrong(f"{limit} descriptors: {len(trials)} trials, {wrong[:1]}")


def files(lab: Lab, tries: int) -> None:
    """Result files that are no files: each is a failed evaluation within its timeout."""
    os.mkfifo(lab.folder / "fifo")
    odd = ["fifo", "/dev/zero", "/dev/tty", ".", "missing", "/proc/self/mem"]
    for number in range(max(tries, len(odd))):
        lab.tally.tries += 1
        folder = lab.folder / str(number)
        folder.mkdir()
        name = odd[number % len(odd)]
        path = str(lab.folder / name) if name == "fifo" else name
        arguments = ["-p", "x=0:1", "--env", "*", "--budget", "1", "--timeout", "2s"]
        lab.run("run", *arguments, "--minimize", f"file:{path}", "--", "true", at=folder)
        trials = lab.trials(folder)
        if not trials or trials[0]["value"] is not None:
            lab.tally.note_wrong(f"file:{name}: {trials}")


# Values that do harm where a shell reads them.
VALUES = ["$(touch pwned)", "`touch pwned`", "; touch pwned;", "' ; touch pwned ; '"]
VALUES += ['" & touch pwned "', "a b", "*", "~", "\\", "$HOME", "-n", "ünï"]
# Where a placeholder may stand.
PLACES = ["{v}", '"{v}"', "'{v}'", "pre{v}post", '"a {v} b"', "'a {v} b'"]


def shell(lab: Lab, tries: int) -> None:
    """`--shell` with values that are commands: they arrive unchanged, or the command is refused."""
    for number in range(tries):
        lab.tally.tries += 1
        folder = lab.folder / str(number)
        folder.mkdir()
        value, place = lab.random.choice(VALUES), PLACES[number % len(PLACES)]
        study = folder / "study.toml"
        study.write_text(
            f"command = {json.dumps(f'printf %s {place} > seen.txt; echo 1')}\nshell = true\n"
            f"budget = 1\n[parameters]\nv = {json.dumps(f'{value},{value}2')}\n"
        )
        lab.run("run", "study.toml", at=folder)
        if any(folder.rglob("pwned")):
            lab.tally.note_wrong(f"{place} ran {value!r}")
        seen = folder / "seen.txt"
        expected = [place.strip("'\"").replace("{v}", given) for given in (value, value + "2")]
        if seen.exists() and seen.read_text() not in expected:
            lab.tally.note_wrong(f"{place}: {value!r} arrived as {seen.read_text()!r}")
        elif not seen.exists() and not _refused(folder):
            lab.tally.note_wrong(f"{place} with {value!r}: nothing arrived")


def _refused(folder: Path) -> bool:
    return not (folder / "racecars-study" / "journal.jsonl").exists()
