"""Optuna's own tests of samplers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from optuna.samplers import BaseSampler
from optuna.testing import pytest_samplers as cases

from racecars.optuna import RaceCarsSampler


class TestConformance(
    cases.BasicSamplerTestCase,
    cases.RelativeSamplerTestCase,
    cases.SingleOnlySamplerTestCase,
):
    @pytest.fixture(params=[None, "race-cars", "de", "random"])
    def sampler(self, request: Any) -> Callable[[], BaseSampler]:
        return partial(RaceCarsSampler, method=request.param)
