"""The examples of the gallery run in their short form; pages and notebooks belong to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
NOTEBOOKS = sorted(path.stem for path in EXAMPLES.glob("*/*.ipynb"))
# What an example calls that may not be installed.
PROGRAMS = {"compiler-flags": "gcc", "tune-zstd": "zstd", "tour": "cargo"}


def short(name: str, folder: Path) -> list[list[str]]:
    """The commands of the short form."""
    if name == "tune-zstd":
        return [["./prepare"], ["racecars", "run", "--budget", "3", "--jobs", "1"]]
    if (folder / "run").exists():
        return [["./run", "--short"]]
    if (folder / f"{name}.py").exists():
        return [[sys.executable, f"{name}.py", "--short"]]
    # `cargo test` has built it; for itself, the library would be compiled once more.
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "examples" / name
    if built.exists():
        return [[str(built), "--short"]]
    cargo = ["cargo", "run", "--quiet", "--manifest-path", str(ROOT / "Cargo.toml")]
    return [[*cargo, "-p", "racecars", "--example", name, "--", "--short"]]


def test_there_are_a_dozen() -> None:
    assert len(NAMES) >= 12 and len(NOTEBOOKS) >= 7


@pytest.mark.parametrize("name", NAMES)
def test_the_short_form_runs(name: str, tmp_path: Path) -> None:
    program = PROGRAMS.get(name)
    if program is not None and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    # The commands are bash scripts.
    if os.name == "nt" and not (EXAMPLES / name / f"{name}.py").exists():
        pytest.skip("its commands are shell scripts")
    folder = tmp_path / name
    made = shutil.ignore_patterns("picture.svg", "studies", "*.ipynb")
    shutil.copytree(EXAMPLES / name, folder, ignore=made)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    for command in short(name, folder):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout, done.stderr
    if name == "tune-zstd":
        assert (folder / "racecars-study" / "report.html").exists()
    else:
        assert "<svg" in (folder / "picture.svg").read_text()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_has_the_cells_of_its_script_and_their_output(name: str) -> None:
    folder = EXAMPLES / name
    script = (folder / f"{name}.py").read_text()
    book = json.loads((folder / f"{name}.ipynb").read_text())
    assert len(book["cells"]) == script.count("\n# %%") + script.startswith("# %%")
    printed = ""
    for cell in book["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert text in script, f"run ./scripts/gallery {name}"
            assert all(output["output_type"] != "error" for output in cell["outputs"])
            printed += "".join(
                "".join(output.get("text", ""))
                for output in cell["outputs"]
                if output.get("name") == "stdout"
            )
        else:
            for line in text.splitlines():
                assert f"# {line}".rstrip() in script, f"run ./scripts/gallery {name}"
    assert printed.strip() in (folder / "README.md").read_text(), f"run ./scripts/gallery {name}"


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_a_page_a_picture_and_a_place_in_the_gallery(name: str) -> None:
    page = (EXAMPLES / name / "README.md").read_text()
    assert page.startswith("# ") and "![" in page
    gallery = (ROOT / "docs" / "gallery.md").read_text()
    assert f"(../examples/{name}/README.md)" in gallery
    for picture in (EXAMPLES / name).glob("picture.*"):
        assert picture.stat().st_size < 60_000
