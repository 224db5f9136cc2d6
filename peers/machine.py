"""The versions and the machine behind results, and restricting trials to one core each."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

# NumPy's linear algebra would use all cores.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def use_one_thread() -> None:
    """Restricts every process to one core. Call it before processes are started."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ")[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def written_by(command: str, packages: Iterable[str]) -> str:
    """The command with its arguments, the date, the versions and the machine."""
    command += "".join(f" {argument}" for argument in sys.argv[1:])
    installed = {package: version(package) for package in ["racecars", *packages]}
    versions = [f"{package} {number}" for package, number in installed.items() if number]
    return (
        f"Written by `{command}` on {datetime.date.today().isoformat()}: {', '.join(versions)}, "
        f"Python {platform.python_version()}, on {os.cpu_count()} cores of {processor()}."
    )
