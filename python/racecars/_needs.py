"""The error for an optional package that is not installed."""

from __future__ import annotations

import importlib.util


def need(package: str, extra: str, who: str) -> None:
    """Raises an error that says what to install, if ``package`` is not installed.

    >>> need("json", "json", "this example")
    >>> need("not_there", "optuna", "racecars.optuna")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: racecars.optuna needs not_there: pip install 'racecars[optuna]'
    """
    try:
        found = importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a submodule
        found = False
    if not found:
        text = f"{who} needs {package}: pip install 'racecars[{extra}]'"
        raise ModuleNotFoundError(text, name=package)
