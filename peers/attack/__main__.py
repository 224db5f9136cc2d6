"""Attacks racecars, and prints a table of wrong values, panics and hangs, which are all to be 0."""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from peers.attack import checkpoints, journals, network, programs
from peers.attack.harness import Lab, Tally

Attack = Callable[[Lab, int], None]

# Name, attack, tries in the short form and in full.
ATTACKS: list[tuple[str, Attack, int, int]] = [
    ("kill -9", journals.kills, 15, 500),
    ("truncated journals", journals.truncations, 12, 300),
    ("changed bytes of journals", journals.flips, 30, 900),
    ("violations near infinity", journals.infeasible, 2, 20),
    ("spellings of numbers", programs.spellings, 10, 300),
    ("too few descriptors", programs.shortages, 6, 48),
    ("files that are none", programs.files, 6, 24),
    ("values for a shell", programs.shell, 12, 150),
    ("slow clients", network.clients, 1, 4),
    ("damaged checkpoints", checkpoints.damage, 60, 2000),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/attack", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the short form, as in scripts/test")
    parser.add_argument("--only", metavar="NAME", help="only attacks with this in their names")
    parser.add_argument("--seed", type=int, default=0, help="of the random moments and places")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.add_argument("--binary", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    tallies = []
    for name, attack, few, many in ATTACKS:
        if arguments.only and arguments.only not in name:
            continue
        if attack is checkpoints.damage and importlib.util.find_spec("racecars") is None:
            print(f"{name}: left out, since there is no Python package racecars", file=sys.stderr)
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="racecars-attack-") as folder:
            tally = Tally(name)
            generator = random.Random(f"{arguments.seed} {name}")
            lab = Lab(Path(folder), arguments.binary, generator, tally)
            attack(lab, few if arguments.quick else many)
        tallies.append(tally)
        print(f"{name}: {tally.tries} tries, {time.monotonic() - start:.0f} s", file=sys.stderr)
        for note in tally.notes[:5]:
            print(f"  {note}", file=sys.stderr)
    if arguments.json:
        print(json.dumps([asdict(tally) for tally in tallies], indent=1))
    else:
        print("| attack | tries | wrong values | panics | hangs |\n|---|--:|--:|--:|--:|")
        for t in tallies:
            print(f"| {t.name} | {t.tries} | {t.wrong} | {t.panics} | {t.hangs} |")
    if any(t.wrong + t.panics + t.hangs for t in tallies):
        sys.exit(1)


if __name__ == "__main__":
    main()
