"""The examples in docstrings do what they say."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import racecars

MODULES = [
    module.name
    for module in pkgutil.walk_packages(racecars.__path__, "racecars.")
    if module.name not in ("racecars._core",)
]


@pytest.mark.parametrize("name", ["racecars", *MODULES])
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    outcome = doctest.testmod(module, extraglobs={"np": np})
    assert outcome.failed == 0
