"""Runs examples of the gallery in full, called by scripts/gallery:

    gallery.py [NAME...]

An example is a folder of examples/ whose README.md is its page. Its program is one of three: `run`,
a shell script; `NAME.py`, cells of Python, which are also written as a notebook with their output;
or `crates/racecars/examples/NAME.rs`. It writes picture.svg, and what it prints goes into the page,
after `<!-- output -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
MARK = "<!-- output -->"
MAX_PICTURE, MAX_NOTEBOOK = 60_000, 200_000  # bytes


def main() -> None:
    pages = sorted(EXAMPLES.glob("*/README.md"))
    every = [path.parent.name for path in pages if MARK in path.read_text()]
    names = sys.argv[1:] or every
    for name in names:
        if name not in every:
            sys.exit(f"'{name}' is not an example; there are {', '.join(every)}")
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MATPLOTLIBRC": str(EXAMPLES / "matplotlibrc"),
        "SOURCE_DATE_EPOCH": "0",  # no date in pictures
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    os.environ.update(environment)
    for name in names:
        print(f"== {name}", flush=True)
        text = run(name)
        print(text, flush=True)
        page = EXAMPLES / name / "README.md"
        page.write_text(with_output(page.read_text(), text))
        for path in (EXAMPLES / name).glob("picture.*"):
            if path.stat().st_size > MAX_PICTURE:
                sys.exit(f"{path} has {path.stat().st_size} bytes, more than {MAX_PICTURE}")


def run(name: str) -> str:
    """What the example prints."""
    folder = EXAMPLES / name
    if (folder / "run").exists():
        command = [str(folder / "run")]
    elif (folder / f"{name}.py").exists():
        return notebook(folder / f"{name}.py")
    else:
        command = ["cargo", "run", "--quiet", "--release", "-p", "racecars", "--example", name]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def with_output(page: str, text: str) -> str:
    """The page with this output in the block after its mark."""
    block = f"{MARK}\n```text\n{text.strip()}\n```\n"
    return re.sub(rf"{MARK}\n```text\n.*?```\n", lambda _: block, page, flags=re.S)


# Notebooks ----------------------------------------------------------------------------------------


def cells(source: str) -> list[tuple[str, str]]:
    """The cells of a script as their kind and text: after `# %%`, or `# %% [markdown]`."""
    found = []
    for part in re.split(r"^# %%", source, flags=re.M)[1:]:
        head, _, text = part.partition("\n")
        if head.strip() == "[markdown]":
            lines = [line[2:] for line in text.strip().splitlines()]
            found.append(("markdown", "\n".join(lines)))
        else:
            found.append(("code", text.strip()))
    return found


def notebook(script: Path) -> str:
    """Executes the script as a notebook beside it, and returns what it prints."""
    made = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    book = nbformat.v4.new_notebook()
    book.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    book.cells = [
        made[kind](text, id=str(i)) for i, (kind, text) in enumerate(cells(script.read_text()))
    ]
    resources = {"metadata": {"path": str(script.parent)}}
    NotebookClient(book, timeout=3600, resources=resources, record_timing=False).execute()
    printed = ""
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream" and output["name"] == "stdout":
                printed += output["text"]
    book.metadata["language_info"] = {"name": "python"}
    text = nbformat.writes(book, version=4) + "\n"
    if len(text) > MAX_NOTEBOOK:
        sys.exit(f"the notebook of {script} has {len(text)} bytes, more than {MAX_NOTEBOOK}")
    script.with_suffix(".ipynb").write_text(text)
    return printed


if __name__ == "__main__":
    main()
