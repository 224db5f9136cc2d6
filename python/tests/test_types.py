"""What a type checker sees: results have types, and keywords that do not exist are errors."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import racecars

SNIPPET = """
import racecars
from racecars import Trials

def fun(x: object) -> float:
    return 0.0

res = racecars.minimize(fun, [(0, 1)], maxfev=3, method="cma-es", population=4)
value: float = res.fun
words: str = res.stop_reason
first: float = res.trials[0].value
some: Trials = res.trials[1:]
best = racecars.maximize(fun, space={"x": (0.0, 1.0)}, maxfev=3, noise="no").params
"""


def checked(folder: Path, more: str) -> str:
    path = folder / "snippet.py"
    path.write_text(SNIPPET + more)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache")]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, cwd=folder)
    return done.stdout + done.stderr


def test_mypy_knows_results_and_keywords(tmp_path: Path) -> None:
    assert "Success" in checked(tmp_path, "")
    told = checked(
        tmp_path,
        "racecars.minimize(fun, [(0, 1)], maxfevv=3)\n"
        "racecars.maximize(fun, [(0, 1)], maxfevv=3)\n"
        "text: str = res.fun\n"
        "res.nonsense\n"
        "racecars.minimize(fun, [(0, 1)], population='many')\n",
    )
    for text in (
        'Unexpected keyword argument "maxfevv" for "minimize"',
        'Unexpected keyword argument "maxfevv" for "maximize"',
        'expression has type "float", variable has type "str"',
        '"OptimizeResult" has no attribute "nonsense"',
        'Argument "population" to "minimize" has incompatible type "str"; expected "int"',
    ):
        assert text in told, told
    assert "Found 5 errors" in told


def test_the_typed_settings_are_those_of_the_methods() -> None:
    source = inspect.getsource(sys.modules["racecars._options"])
    block = source.partition("class Options")[2].partition("\n\n\n")[0]
    typed = {line.split(":")[0].strip() for line in block.splitlines()[4:] if ": " in line}
    real = {name for method in racecars.METHODS for name in racecars.settings(method)}
    assert typed == real


def test_maximize_takes_what_minimize_takes() -> None:
    assert inspect.signature(racecars.maximize) == inspect.signature(racecars.minimize)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        racecars.maximize()  # type: ignore[call-arg]
