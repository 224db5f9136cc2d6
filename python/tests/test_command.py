"""The `racecars` command that comes with the package."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig

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
