"""A PostgreSQL server of the tests' own, on a socket in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

SCRIPT = Path(__file__).parents[2] / "scripts" / "postgres"


@contextmanager
def server() -> Iterator[str]:
    """Starts a server and gives its SQLAlchemy URL."""
    found = subprocess.run([SCRIPT], check=True, capture_output=True, text=True)
    programs = Path(found.stdout.strip())
    folder = Path(tempfile.mkdtemp(prefix="racecars-pg-"))
    # It refuses to run as root.
    user: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(folder, **user)
    data = folder / "data"
    make = [str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "-N"]
    try:
        subprocess.run(make, check=True, capture_output=True, cwd=folder, **user)
        settings = [f"-cunix_socket_directories={folder}", "-clisten_addresses=", "-cfsync=off"]
        with (folder / "log").open("w") as log:
            start = [str(programs / "postgres"), "-D", str(data), *settings]
            process = subprocess.Popen(start, stdout=log, stderr=log, cwd=folder, **user)
        try:
            _wait_for(folder, process)
            yield f"postgresql+psycopg://postgres@/postgres?host={folder}"
        finally:
            process.send_signal(signal.SIGINT)  # ends the sessions that are left
            process.wait(timeout=60)
    finally:
        shutil.rmtree(folder)


def _wait_for(folder: Path, process: subprocess.Popen[Any]) -> None:
    for _ in range(600):
        try:
            psycopg.connect(host=str(folder), user="postgres", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start:\n{(folder / 'log').read_text()}")
