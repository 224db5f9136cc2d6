"""Attacks on a study's journal: kills, truncations, changed bytes."""

from __future__ import annotations

import collections
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from peers.attack.harness import Lab

SPACE = ["-p", "n=1..9999", "-p", "m=1..9999"]
# It keeps a record of its runs, one line for each.
SCRIPT = "echo {trial} >> runs.txt; echo $(( ({n} - 12) * ({n} - 12) + {m} ))"


def _value(params: dict[str, Any]) -> float:
    return float((params["n"] - 12) ** 2 + params["m"])


def kills(lab: Lab, tries: int) -> None:
    """A study is killed at random moments; no value is wrong, no finished evaluation runs again."""
    command = [lab.binary, "run", *SPACE, "--jobs", "2", "--budget", str(40 * tries)]
    command += ["--", "sh", "-c", SCRIPT]
    for _ in range(tries):
        lab.tally.tries += 1
        process = subprocess.Popen(
            command, cwd=lab.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(lab.random.uniform(0.01, 0.25))
        process.kill()
        process.wait()
    done = lab.run(*command[1:])
    trials = lab.trials() or []
    if not done.is_success() or len(trials) != 40 * tries:
        lab.tally.note_wrong(f"{len(trials)} trials of {40 * tries} after kills: {done.err}")
    for trial in trials:
        if trial["state"] != "value" or trial["value"] != _value(trial["params"]):
            lab.tally.note_wrong(f"after kills: {trial}")
    runs = collections.Counter((lab.folder / "runs.txt").read_text().split())
    again = sum(count - 1 for count in runs.values())
    # Two were running at each kill.
    if again > 2 * tries:
        lab.tally.note_wrong(f"{again} evaluations ran again after {tries} kills on 2 jobs")


def _finished(lab: Lab) -> tuple[Path, list[dict[str, Any]]]:
    """A finished study, and its trials."""
    folder = lab.folder / "finished"
    folder.mkdir(exist_ok=True)
    arguments = [*SPACE, "--deterministic", "--budget", "30", "--jobs", "2"]
    arguments += ["--constraint", "regex:c=(.*)"]
    script = "echo c=$(( {m} - 9000 )); " + SCRIPT
    done = lab.run("run", *arguments, "--", "sh", "-c", script, at=folder)
    trials = lab.trials(folder)
    assert done.is_success() and trials, done.err
    return folder, trials


def _best(summary: dict[str, Any]) -> Any:
    best = summary["best"]
    return best["trial"], best["value"], best["params"]


def _damaged(lab: Lab, finished: Path, journal: bytes) -> Path:
    """A copy of a finished study with this journal."""
    copy = lab.folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(finished, copy)
    (copy / "racecars-study" / "journal.jsonl").write_bytes(journal)
    return copy


def truncations(lab: Lab, tries: int) -> None:
    """A journal is cut anywhere; the study ends as if it had not been, or is refused."""
    finished, trials = _finished(lab)
    whole = (finished / "racecars-study" / "journal.jsonl").read_bytes()
    for _ in range(tries):
        lab.tally.tries += 1
        cut = lab.random.randrange(len(whole))
        copy = _damaged(lab, finished, whole[:cut])
        done = lab.run("run", "--study", "racecars-study", at=copy)
        if done.is_success() and lab.trials(copy) != trials:
            lab.tally.note_wrong(f"cut at byte {cut} of {len(whole)}: other trials")


def flips(lab: Lab, tries: int) -> None:
    """A byte of a journal changes, in values and keys; that is refused or said, or harmless."""
    finished, trials = _finished(lab)
    whole = (finished / "racecars-study" / "journal.jsonl").read_bytes()
    digits = [i for i, byte in enumerate(whole) if chr(byte).isdigit()]
    before = json.loads(lab.run("run", "--study", "racecars-study", "--json", at=finished).out)
    for number in range(tries):
        lab.tally.tries += 1
        journal = bytearray(whole)
        if number % 2:
            at = lab.random.choice(digits)
            journal[at] = ord(lab.random.choice("0123456789".replace(chr(journal[at]), "")))
        else:
            at = lab.random.randrange(len(journal))
            journal[at] ^= 1 << lab.random.randrange(8)
        copy = _damaged(lab, finished, bytes(journal))
        read = lab.trials(copy)
        if read is not None and read != trials:
            lab.tally.note_wrong(f"byte {at} changed to {journal[at]:#x}: other trials in export")
        report = lab.run("report", "racecars-study", "--out", "page.html", at=copy)
        if report.is_success() and read is None and "damaged" not in _page(copy):
            lab.tally.note_wrong(f"byte {at} changed to {journal[at]:#x}: not in the report")
        done = lab.run("run", "--study", "racecars-study", "--json", at=copy)
        if done.is_success() and _best(json.loads(done.out)) != _best(before):
            lab.tally.note_wrong(f"byte {at} changed to {journal[at]:#x}: another best")


def _page(folder: Path) -> str:
    return (folder / "page.html").read_text()


def infeasible(lab: Lab, tries: int) -> None:
    """Violations near the largest number; an infeasible point is never the best."""
    for number in range(tries):
        lab.tally.tries += 1
        folder = lab.folder / str(number)
        folder.mkdir()
        large = f"{lab.random.uniform(1.0, 1.79):.3f}e308"
        # Feasible only from 50 on, where the value is worse.
        script = f"echo a=$([ {{n}} -ge 50 ] && echo 0 || echo {large}) b={large}; echo {{n}}"
        script = script.replace("b=" + large, f"b=$([ {{n}} -ge 50 ] && echo 0 || echo {large})")
        arguments = ["-p", "n=1..99", "--constraint", r"regex:a=(\S+)", "--constraint"]
        arguments += [r"regex:b=(\S+)", "--budget", "20", "--repeat", str(1 + number % 2)]
        lab.run("run", *arguments, "--", "sh", "-c", script, at=folder)
        done = lab.run("run", "--study", "racecars-study", "--budget", "25", "--json", at=folder)
        best = json.loads(done.out)["best"] if done.is_success() else None
        trials = lab.trials(folder) or []
        feasible = [trial["value"] for trial in trials if trial["state"] == "value"]
        if any(trial["state"] == "value" and trial["params"]["n"] < 50 for trial in trials):
            lab.tally.note_wrong("an infeasible point has a plain value")
        if not trials or best is None or (feasible and best["value"] != min(feasible)):
            lab.tally.note_wrong(f"best {best} with feasible values {feasible}: {done.err}")
