"""Tune's search spaces as coordinates: nested dicts of domains, by the path to each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ray.tune.impl.placeholder import _FunctionResolver
from ray.tune.search.sample import (
    Categorical,
    Domain,
    Float,
    Function,
    Integer,
    LogUniform,
    Quantized,
    Uniform,
)
from ray.tune.search.variant_generator import parse_spec_vars

from racecars._axes import Axis

Path = tuple[str, ...]


def axes_of(config: Mapping[str, Any]) -> dict[Path, Axis]:
    """The coordinates of a search space; what is constant in it is left to Tune."""
    for path in sampled(config):
        text = "draws a value that the search does not see; use choice, uniform or randint"
        raise ValueError(f"`{name(path)}` is a sample_from, which {text}")
    _, domains, grids = parse_spec_vars(dict(config))
    if grids:
        where = name(grids[0][0])
        raise ValueError(f"`{where}` is a grid_search, which leaves nothing to search; use choice")
    for path, _ in domains:
        if not all(isinstance(part, str) for part in path):
            raise ValueError(f"`{name(path)}` is in a list; a search space may nest dicts only")
    return {tuple(path): axis(name(path), domain) for path, domain in domains}


def sampled(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each ``sample_from``; a Tuner has put a placeholder in its place."""
    is_placeholder = isinstance(value, tuple) and value[:1] == (_FunctionResolver.TOKEN,)
    if is_placeholder or isinstance(value, Function):
        yield path
        return
    if isinstance(value, Categorical):
        value = value.categories
    if isinstance(value, (list, tuple)):
        value = dict(enumerate(value))
    for key, one in value.items() if isinstance(value, Mapping) else ():
        yield from sampled(one, (*path, key))


def axis(where: str, domain: Domain) -> Axis:
    """The coordinate of a domain."""
    sampler: Any = domain.get_sampler()  # type: ignore[no-untyped-call]
    quantum = None
    if isinstance(sampler, Quantized):
        quantum, sampler = sampler.q, sampler.sampler
    is_log = isinstance(sampler, LogUniform)
    if isinstance(domain, Categorical):
        return Axis(choices=domain.categories)
    if not isinstance(domain, (Float, Integer)) or not (is_log or isinstance(sampler, Uniform)):
        text = "choice, uniform, randint, and their log and quantized forms, can be searched"
        kind = type(sampler).__name__.strip("_")
        raise ValueError(f"`{where}` is a {type(domain).__name__} drawn by {kind}; only {text}")
    whole = isinstance(domain, Integer)
    high = domain.upper - 1 if whole and quantum in (None, 1) else domain.upper
    return Axis(
        low=domain.lower,
        high=high,
        log=is_log,
        whole=whole,
        step=None if whole and quantum == 1 else quantum,
    )


def nested(values: Mapping[Path, Any]) -> dict[str, Any]:
    """The values as the nested dict that a trial gets."""
    config: dict[str, Any] = {}
    for path, value in values.items():
        place = config
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = value
    return config


def find(config: Mapping[str, Any], path: Path) -> tuple[bool, Any]:
    """Whether a config, nested or flat (``a/b``), has a value at a path, and which."""
    if name(path) in config:
        return True, config[name(path)]
    value: Any = config
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return False, None
        value = value[part]
    return True, value


def name(path: Any) -> str:
    """A path as Tune writes it."""
    return "/".join(map(str, path))
