"""Figures and outputs in README and docs, made again and compared.

A claim is a comment with the command that makes the text after it:

    <!-- claim: racecars solve sphere --dim 2 -->

followed by a fenced block, or by text up to `<!-- end -->`; in LaTeX a comment, `% claim: ...`,
followed by a `verbatim` environment. Within it `...` on a line of its own stands for any lines.
Times are not compared. Slow claims begin with `claim (slow):` and are run with --all; figures that
depend on the machine begin with `measured:` and are run with --measured, to be
compared by eye.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(r"(?:<!--|^%) (claim|claim \(slow\)|measured): (.+?)(?: -->)?\n", re.MULTILINE)
LATEX = "\\begin{verbatim}\n"
TIME = re.compile(r"\b\d+(\.\d+)?(e-?\d+)? ?(ns|µs|us|ms|s|min|h|per second)\b")


@dataclass
class Claim:
    path: Path
    line: int
    kind: str
    command: str
    # Where its text is in the file.
    begin: int
    end: int

    def text(self) -> str:
        return self.path.read_text()[self.begin : self.end]


def claims() -> list[Claim]:
    found = []
    pages = sorted((ROOT / "docs").glob("*.md"))
    for path in [ROOT / "README.md", *pages, ROOT / "docs" / "theory.tex"]:
        text = path.read_text()
        for mark in MARK.finditer(text):
            begin = mark.end()
            fence = re.match(r"```\w*\n", text[begin:])
            if fence:
                begin += fence.end()
                end = text.find("```", begin)
            elif text.startswith(LATEX, begin):
                begin += len(LATEX)
                end = text.find("\\end{verbatim}", begin)
            else:
                end = text.find("<!-- end -->", begin)
            line = text.count("\n", 0, mark.start()) + 1
            if end < 0:
                sys.exit(f"{path.relative_to(ROOT)}:{line}: the claim has no end")
            found.append(Claim(path, line, mark[1], mark[2], begin, end))
    return found


def output(command: str, binary: str) -> str:
    words = shlex.split(command)
    words = [binary if word == "racecars" else word for word in words]
    if words[0] == "python3":
        words[0] = sys.executable
        words += [binary] if words[1] == "-m" else []
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"(exit code {done.returncode})\n{done.stderr}"
    return done.stdout


def comparable(text: str) -> list[str]:
    lines = [TIME.sub("TIME", line.rstrip()) for line in text.splitlines()]
    # A first line with the command is for people.
    return lines[1:] if lines and lines[0].startswith("$ ") else lines


def agrees(said: str, found: str) -> bool:
    pattern = ""
    for line in comparable(said):
        pattern += r"(?:.*\n)*" if line == "..." else re.escape(line) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in comparable(found))) is not None


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/claims", description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="list all claims")
    parser.add_argument("--all", action="store_true", help="run the slow ones, too")
    parser.add_argument("--measured", action="store_true", help="show what depends on the machine")
    parser.add_argument("--write", action="store_true", help="write what the commands print now")
    parser.add_argument("files", nargs="*", type=Path, help="only these files")
    parser.add_argument("--binary", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    wrong = 0
    # From the end of a file, so that writing does not move the others.
    only = {path.resolve() for path in arguments.files}
    for claim in reversed(claims()):
        if only and claim.path not in only:
            continue
        where = f"{claim.path.relative_to(ROOT)}:{claim.line}"
        if arguments.list:
            print(f"{where:24} {claim.kind:13} {claim.command}")
            continue
        if claim.kind == "measured":
            if arguments.measured:
                print(f"{where}: {claim.command}\n{output(claim.command, arguments.binary)}")
            continue
        if claim.kind != "claim" and not arguments.all:
            continue
        start = time.monotonic()
        found = output(claim.command, arguments.binary)
        seconds = time.monotonic() - start
        if agrees(claim.text(), found):
            print(f"{where}: holds ({seconds:.1f} s): {claim.command}")
        elif arguments.write and not found.startswith("(exit code"):
            text = claim.path.read_text()
            prompt = re.match(r"\$ .*\n", claim.text())
            found = (prompt[0] if prompt else "") + found
            claim.path.write_text(text[: claim.begin] + found + text[claim.end :])
            print(f"{where}: written: {claim.command}")
        else:
            wrong += 1
            print(f"{where}: does not hold: {claim.command}")
            said, now = comparable(claim.text()), comparable(found)
            print("\n".join(difflib.unified_diff(said, now, "said", "found", lineterm="", n=1)))
    if wrong:
        sys.exit(f"{wrong} claims do not hold; if what is found is right: ./scripts/claims --write")


if __name__ == "__main__":
    main()
