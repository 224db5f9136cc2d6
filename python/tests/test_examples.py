"""The examples in docs/ run, and the dashboard shows their study."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def run(name: str, folder: Path) -> str:
    command = [sys.executable, str(EXAMPLES / name)]
    for _ in range(3):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
        # Ray gives its processes 30 s to start, which a busy machine may not keep to.
        if "timed out during startup" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "name", sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "optuna_study.py")
)
def test_example(name: str, tmp_path: Path) -> None:
    assert run(name, tmp_path)


def test_optuna_and_its_dashboard(tmp_path: Path) -> None:
    best = float(run("optuna_study.py", tmp_path).split()[0])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program = str(Path(sys.executable).with_name("optuna-dashboard"))
    command = [program, "--host", "127.0.0.1", "--port", port, "study.log"]
    dashboard = subprocess.Popen(command, cwd=tmp_path)
    try:
        address = f"http://127.0.0.1:{port}"
        studies = json.loads(fetch(f"{address}/api/studies", dashboard))["study_summaries"]
        assert [study["study_name"] for study in studies] == ["example"]
        number = studies[0]["study_id"]
        trials = json.loads(fetch(f"{address}/api/studies/{number}", dashboard))["trials"]
        values = [
            trial["values"][0]
            for trial in trials
            if all(by <= 0 for by in trial.get("constraints", []))
        ]
        assert len(trials) == 100 and min(values) <= best + 0.0005
        assert "<html" in fetch(f"{address}/dashboard", dashboard).lower()
    finally:
        dashboard.terminate()
        dashboard.wait(timeout=60)


def fetch(address: str, dashboard: subprocess.Popen[Any]) -> str:
    """The page, once the dashboard is up."""
    while True:
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return str(answer.read().decode())
        except OSError:
            assert dashboard.poll() is None
            time.sleep(0.1)


def test_the_blocks_of_the_manual_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the sections that belong together, one after the other."""
    import matplotlib

    matplotlib.use("Agg")
    text = (EXAMPLES.parent / "python.md").read_text()
    first, _, rest = text.partition("\n## Four ways to run\n")
    part = rest.partition("\n## Spaces by name\n")[2].partition("\n## Processes, timeouts")[0]
    blocks = [block.partition("\n```")[0] for block in (first + part).split("```python\n")[1:]]
    assert len(blocks) == 9
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
    assert (tmp_path / "report.html").exists() and (tmp_path / "tuning").is_dir()


def test_the_python_blocks_of_the_page_about_spaces_run() -> None:
    text = (EXAMPLES.parent / "spaces.md").read_text()
    blocks = [block.partition("\n```")[0] for block in text.split("```python\n")[1:]]
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, "docs/spaces.md", "exec"), {})


def blocks(page: str, language: str) -> list[str]:
    text = (EXAMPLES.parent / f"{page}.md").read_text()
    return [block.partition("\n```")[0] for block in text.split(f"```{language}\n")[1:]]


@pytest.mark.parametrize("page", ["index", "install", "noise", "coming-from", "faq"])
def test_the_python_blocks_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, with the same names. (Other packages' code is marked `py`.)"""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    assert blocks(page, "python")
    for block in blocks(page, "python"):
        exec(compile(block, f"docs/{page}.md", "exec"), names)


def test_the_commands_of_the_guide_for_the_command_line_run(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent  # the wheel brings the command
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    assert len(blocks("cli", "sh")) == 9
    for block in blocks("cli", "sh"):
        command = ["bash", "-euo", "pipefail", "-c", block]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
