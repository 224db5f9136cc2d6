#!/usr/bin/env python3
"""Writes the tables of the example: made-up film reviews, of which a third has a "not"."""

from __future__ import annotations

import random
from pathlib import Path

from server import BAD, GOOD

PARTS = ["plot", "cast", "ending", "score", "script", "hero", "camera", "pace"]


def review(random_: random.Random, label: str) -> str:
    kind = random_.random()
    right, wrong = (GOOD, BAD) if label == "positive" else (BAD, GOOD)
    a, b = random_.sample(PARTS, 2)
    if kind < 0.35:
        return f"the {a} is not {random_.choice(wrong)}, and the {b} is {random_.choice(right)}"
    if kind < 0.6:
        return f"not {random_.choice(wrong)} at all, whatever one says about the {a}"
    if kind < 0.9:
        return f"a {random_.choice(right)} film with a {random_.choice(right)} {a}"
    return f"the {a} is {random_.choice(right)}, the {b} less so"


def main() -> None:
    random_, seen = random.Random(1), set[str]()
    for name, count in [("train", 32), ("dev", 32), ("pool", 16), ("test", 200)]:
        rows: list[str] = []
        while len(rows) < count:
            label = ["positive", "negative"][len(rows) % 2]
            text = review(random_, label)
            if text not in seen:
                rows.append(f"{text}\t{label}\n")
            seen.add(text)
        Path(__file__).with_name(f"{name}.tsv").write_text("review\tlabel\n" + "".join(rows))


if __name__ == "__main__":
    main()
