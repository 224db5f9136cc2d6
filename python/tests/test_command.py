"""The `racecars` command that comes with the package."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import racecars


def test_the_command_is_installed_beside_the_package() -> None:
    command = shutil.which("racecars", path=sysconfig.get_path("scripts"))
    assert command is not None
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.split()[-1] == racecars.__version__
    solved = subprocess.run(
        [command, "solve", "sphere", "--dim", "2", "--budget", "50", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"evaluations":50' in solved.stdout.replace(" ", "")


def test_the_command_searches_prompts() -> None:
    command = shutil.which("racecars", path=sysconfig.get_path("scripts"))
    assert command is not None
    task = Path(__file__).parents[2] / "examples" / "prompt-search" / "sentiment.toml"
    done = subprocess.run(
        [command, "prompt", str(task), "--dry-run"], capture_output=True, text=True
    )
    assert done.returncode == 0 and '"model":"stand-in"' in done.stdout, done.stderr
