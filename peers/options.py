"""What the commands that put ours beside the others have in common on the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import racecars
from peers.field.optimizers import PEERS, is_ours
from peers.kept import INTERRUPTED

# Instances for choosing settings, and others for reporting.
HALVES = {"choose": "1-5", "report": "11-15"}


def numbers(text: str, what: str) -> list[int]:
    """Integers and ranges of them: 1-5,8."""

    def each() -> Iterator[int]:
        for part in text.split(","):
            first, _, last = part.removesuffix("n").partition("-")
            yield from range(int(first), int(last or first) + 1)

    try:
        return list(each())
    except ValueError:
        raise ValueError(f"{what} {text} are not integers or ranges, as in 1-5,8") from None


def methods(text: str, theirs: Iterable[str], known: Iterable[str] = PEERS) -> list[str]:
    """The methods by name, ours or known; `peers` are all of theirs. `;` separates methods that
    have settings."""
    given = text.split(";") if ";" in text else [text] if ":" in text else text.split(",")
    names = [name for part in given for name in (theirs if part == "peers" else [part])]
    for name in names:
        if name not in known and not is_ours(name):
            allowed = [*racecars.METHODS, *known]
            raise ValueError(f"method {name} is not one of {', '.join(allowed)}")
    return list(dict.fromkeys(names))


def publish(page: str, out: Path | None) -> None:
    """Prints a page, and writes it to a file if one is given."""
    print(page)
    if out:
        out.write_text(page)


def guarded(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> int:
    """Runs a command; wrong options and Ctrl-C end it with a message."""
    try:
        run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: run the same command again to resume", file=sys.stderr)
        return INTERRUPTED
    return 0
