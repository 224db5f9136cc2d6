"""What the tests share."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Ray asks PyPI-like services and starts a dashboard unless told not to.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Its workers would wait for everything else on a busy machine.
os.environ.setdefault("RAY_worker_niceness", "0")

# In the background interrupts are ignored, and tests that send one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def local_ray() -> Iterator[Any]:
    """Ray on this machine, started once for all tests."""
    import psutil
    import ray

    here = psutil.Process()
    others = set(here.children(recursive=True))
    for tries_left in (2, 1, 0):
        try:
            # By default it takes a third of the memory for objects.
            store = 100 * 2**20
            ray.init(
                num_cpus=2,
                include_dashboard=False,
                log_to_driver=False,
                object_store_memory=store,
            )
            break
        except Exception as error:
            # Ray gives its processes 30 s to start, which a busy machine may not keep to, and
            # leaves them running.
            if "timed out during startup" not in str(error) or tries_left == 0:
                raise
            for process in set(here.children(recursive=True)) - others:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
    yield ray
    ray.shutdown()


@pytest.fixture
def script(tmp_path: Path) -> Any:
    """Starts a program of a few lines in a Python of its own."""

    def start(text: str, *command: str) -> subprocess.Popen[str]:
        path = tmp_path / "script.py"
        lines = textwrap.dedent(text)
        if not path.exists() or path.read_text() != lines:  # one that is starting may be reading it
            path.write_text(lines)
        arguments = [*(command or (sys.executable,)), str(path)]
        pipe = subprocess.PIPE
        return subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path)

    return start
