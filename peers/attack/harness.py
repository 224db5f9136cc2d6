"""Running racecars and counting what it did wrong."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# A command that takes longer hangs.
PATIENCE = 150.0
# Not a crash: the interpreter and the shell use them.
ENDED = {-signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL}


@dataclass
class Tally:
    """What came of an attack."""

    name: str
    tries: int = 0
    wrong: int = 0
    panics: int = 0
    hangs: int = 0
    # What was wrong, for the first few.
    notes: list[str] = field(default_factory=list)

    def note_wrong(self, what: str) -> None:
        self.wrong += 1
        self.notes.append(f"wrong: {what}")


@dataclass
class Done:
    """A command that has ended, or did not in time."""

    code: int | None
    out: str
    err: str

    def is_success(self) -> bool:
        return self.code == 0


@dataclass
class Lab:
    """A folder, the program under attack, and a generator."""

    folder: Path
    binary: str
    random: random.Random
    tally: Tally

    def run(
        self, *words: str, at: Path | None = None, before: Callable[[], None] | None = None
    ) -> Done:
        """Runs racecars. Panics, crashes and hangs are counted here."""
        try:
            done = subprocess.run(
                [self.binary, *words],
                cwd=at or self.folder,
                capture_output=True,
                timeout=PATIENCE,
                preexec_fn=before,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            self.tally.hangs += 1
            self.tally.notes.append(f"hang: {words}")
            return Done(None, _text(late.stdout), _text(late.stderr))
        result = Done(done.returncode, _text(done.stdout), _text(done.stderr))
        is_crash = done.returncode < 0 and done.returncode not in ENDED
        if is_crash or done.returncode == 101 or "panicked at" in result.err:
            self.tally.panics += 1
            self.tally.notes.append(f"panic: {words}: {result.err[-500:]}")
        elif done.returncode != 0 and not result.err.strip():
            self.tally.note_wrong(f"{words}: exit code {done.returncode} without a word")
        return result

    def trials(self, at: Path | None = None) -> list[dict[str, Any]] | None:
        """The study's trials without times; `None` if export refuses or leaves some out."""
        done = self.run("export", "--to", "json", at=at)
        if not done.is_success() or "warning" in done.err:
            return None
        keys = ("trial", "state", "value", "violation", "params")
        trials = json.loads(done.out)["trials"]
        trials.sort(key=lambda trial: trial["trial"])
        return [{key: trial.get(key) for key in keys} for trial in trials]


def _text(given: bytes | None) -> str:
    return (given or b"").decode(errors="replace")
