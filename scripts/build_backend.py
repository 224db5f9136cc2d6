"""Builds the Python package: the extension module by maturin, and the `racecars` command beside it.

pip calls the hooks; `./scripts/wheel` calls `place` from the shell:

    python scripts/build_backend.py [--profile dev] [--target TRIPLE] [--zig] [--binary FILE]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import maturin
from maturin import get_requires_for_build_sdist, get_requires_for_build_wheel

ROOT = Path(__file__).resolve().parent.parent
# `tool.maturin.data` in pyproject.toml: what is in `scripts` becomes a command.
DATA = ROOT / "target" / "wheel" / "racecars.data"
# `racecars prompt`, with TLS. Who can link a Rust program has the C compiler that it takes.
FEATURES = "net"

__all__ = [
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_wheel",
]


def place(profile: str = "release", target: str | None = None, zig: bool = False) -> Path:
    """Builds the command line and puts it where maturin takes it from."""
    command = ["cargo", "zigbuild" if zig else "build", "--package", "racecars-cli"]
    command += ["--features", FEATURES]
    command += ["--profile", profile, "--message-format", "json-render-diagnostics"]
    if target:
        command += ["--target", target]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    made = [m["executable"] for m in messages if m.get("executable")]
    if len(made) != 1:
        raise RuntimeError(f"cargo made {made} where one program was expected")
    return take(made[0])


def take(program: str) -> Path:
    """Puts a command line that is built where maturin takes it from."""
    shutil.rmtree(DATA, ignore_errors=True)
    (DATA / "scripts").mkdir(parents=True)
    return Path(shutil.copy(program, DATA / "scripts"))


def prepare_metadata_for_build_wheel(folder: str, config_settings: Any = None) -> str:
    (DATA / "scripts").mkdir(parents=True, exist_ok=True)
    return str(maturin.prepare_metadata_for_build_wheel(folder, config_settings))


def build_wheel(
    folder: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    place()
    return str(maturin.build_wheel(folder, config_settings, metadata_directory))


def build_sdist(folder: str, config_settings: Any = None) -> str:
    (DATA / "scripts").mkdir(parents=True, exist_ok=True)
    return str(maturin.build_sdist(folder, config_settings))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--profile", default="release")
    parser.add_argument("--target", metavar="TRIPLE")
    parser.add_argument("--zig", action="store_true", help="link by zig, for an old glibc")
    parser.add_argument("--binary", metavar="FILE", help="take this command line; build none")
    options = parser.parse_args()
    if options.binary:
        print(take(options.binary))
    else:
        print(place(options.profile, options.target, options.zig))
