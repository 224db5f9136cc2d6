"""``minimize``: SciPy's manners."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from racecars import _loops
from racecars._checkpoint import Checkpoint
from racecars._constraints import Constraints
from racecars._objective import Objective
from racecars._run import Run
from racecars.optimizer import Optimizer
from racecars.space import Space, space_of

if TYPE_CHECKING:
    from racecars.result import OptimizeResult

# How many points are out at a time where that is not the number of workers: with `deterministic`,
# whose runs must not depend on that number (8, as in the core), and with `vectorized`.
LOOKAHEAD = 8
COLUMNS = 32


def minimize(
    fun: Callable[..., Any],
    bounds: Any = None,
    *,
    args: tuple[Any, ...] = (),
    space: Any = None,
    x0: Any = None,
    integrality: Any = None,
    constraints: Any = (),
    maxfev: int | None = None,
    maxtime: float | None = None,
    target: float | None = None,
    callback: Callable[..., Any] | None = None,
    rng: Any = None,
    workers: Any = 1,
    vectorized: bool = False,
    timeout: float | None = None,
    retries: int = 0,
    on_error: str = "penalize",
    checkpoint: Any = None,
    resume: str = "auto",
    disp: bool = False,
    method: str | Optimizer = "auto",
    deterministic: bool = False,
    lookahead: int | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimizes a function that has no gradient.

    >>> import racecars
    >>> res = racecars.minimize(lambda x: ((x - 1) ** 2).sum(), [(-5, 5)] * 10, maxfev=2000, rng=1)
    >>> bool(res.fun < 0.1), res.nfev, res.success
    (True, 2000, True)

    With a dict for a space, ``fun`` gets a dict, and ``res.params`` is one:

    >>> space = {"lr": (1e-5, 1e-1, "log"), "depth": range(1, 9), "act": ["relu", "tanh"]}
    >>> def loss(p):
    ...     return abs(np.log10(p["lr"]) + 3) + (p["depth"] - 4) ** 2 + (p["act"] == "relu")
    >>> res = racecars.minimize(loss, space=space, maxfev=500, rng=1)
    >>> res.params["depth"], res.params["act"]
    (4, 'tanh')

    Parameters
    ----------
    fun
        Called as ``fun(x, *args)``. It returns a number, or ``racecars.Infeasible(by)``. An
        exception, NaN or infinity is a failed evaluation, worse than all others; see
        ``on_error``.
    bounds, space
        One of the two. Pairs ``(low, high)`` or a ``scipy.optimize.Bounds``; or a dict whose
        values are ``(low, high)``, ``(low, high, "log")``, a ``range``, a list of choices,
        ``bool``, or ``racecars.Real``, ``Integer`` or ``Choice``.
    x0
        A point, or several, to be evaluated first: arrays, or dicts where the space is one.
    integrality
        Which coordinates of ``bounds`` are integers, as in ``differential_evolution``.
    constraints
        SciPy's ``NonlinearConstraint``, ``LinearConstraint``, dicts, functions whose values must
        be at most 0, or a list of them. A point that breaks one is not evaluated; it counts in
        ``nit`` and against ``maxfev``, not in ``nfev``.
    maxfev, maxtime, target
        The run ends after so many evaluations, so many seconds (evaluations under way are waited
        for), or at a value this low. By default after 100 evaluations per coordinate, at least
        1000.
    callback
        Called after every evaluation as ``callback(intermediate_result=res)`` if that is the name
        of its only parameter, else as ``callback(x)`` with the best point. Raising
        ``StopIteration`` or returning ``True`` ends the run.
    rng
        A seed or a generator, see SPEC 7.
    workers
        How many processes evaluate, or ``"threads"``, a ``concurrent.futures.Executor``, a Dask
        ``Client``, ``"ray"`` or a Ray remote function, an ``MPIPoolExecutor``, or a function like
        ``map``. See :mod:`racecars.workers`.
    vectorized
        ``fun`` takes an array whose columns are points and returns the values.
    timeout
        The most seconds for an evaluation, which is then ended and has failed. Needs processes.
    retries
        How often an evaluation is tried again that raised, timed out, or lost its worker.
    on_error
        ``"penalize"``: failed evaluations are told as failed, kept in ``res.errors``, and the first
        is warned of. ``"raise"``: the first ends the run with its exception.
    checkpoint, resume
        A file that the run is saved to, every second at most and at its end. ``resume="auto"`` goes
        on with it if it is there, ``"must"`` insists, ``"never"`` begins anew.
    disp
        Print how the run goes.
    method, options
        One of ``racecars.METHODS`` with its settings, or an :class:`Optimizer` to go on with,
        such as ``res.optimizer``. ``"auto"`` chooses by what it sees of the objective, and
        ``res.portfolio`` says how; settings without a method are those of ``"race-cars"``. Whether
        the function is noisy it finds out by evaluating the first point twice, unless told by
        ``noise="yes"`` or ``"no"``; then ``res.x`` is not the luckiest point, and ``res.fun`` a
        mean.
    deterministic, lookahead
        Tell outcomes in the order asked, with ``lookahead`` points out (8), so that the run does
        not depend on the number of workers. With ``vectorized``, ``lookahead`` is the number of
        columns (32).
    """
    if method == "auto" and options and "noise" not in options:
        method = "race-cars"  # whose settings they are; auto has no others
    given = _space(bounds, space, integrality, method)
    as_dict = given.is_by_name
    _check(vectorized, as_dict, retries, on_error, resume, timeout, lookahead)
    if maxfev is None and maxtime is None:
        maxfev = max(1000, 100 * given.dimension)
    _check_limits(maxfev, maxtime, target)
    saved = None if checkpoint is None else Checkpoint(checkpoint)
    resumes = saved is not None and resume != "never" and (resume == "must" or saved.path.exists())
    if saved is not None and resumes:
        optimizer = saved.optimizer(given)
    elif isinstance(method, Optimizer):
        optimizer = method
    else:
        optimizer = Optimizer(given, method, budget=maxfev, rng=rng, **options)
    if isinstance(method, str) and optimizer.method != method:
        text = f"checkpoint {checkpoint} is of method {optimizer.method}, not {method}"
        raise ValueError(f"{text}; resume='never' begins anew")
    run = Run(
        optimizer,
        Objective(fun, args if isinstance(args, tuple) else (args,), Constraints(constraints)),
        as_dict=as_dict,
        maxfev=maxfev,
        maxtime=maxtime,
        target=target,
        callback=callback,
        retries=retries,
        on_error=on_error,
        checkpoint=saved,
        disp=disp,
    )
    if saved is not None and resumes:
        run.resume(saved)
    else:
        run.starts(_points(x0, given.dimension))
    return _carry_out(run, workers, vectorized, timeout, deterministic, lookahead)


def _carry_out(
    run: Run,
    workers: Any,
    vectorized: bool,
    timeout: float | None,
    deterministic: bool,
    lookahead: int | None,
) -> OptimizeResult:
    is_one = isinstance(workers, (int, np.integer)) and workers == 1
    try:
        if vectorized:
            _loops.vectorized(run, lookahead or COLUMNS)
        elif is_one and timeout is None and (not deterministic or (lookahead or 0) == 1):
            _loops.sequential(run)
        else:
            from racecars import workers as pools

            ahead = (lookahead or LOOKAHEAD) if deterministic else None
            with pools.pool_of(workers, run.objective, timeout) as pool:
                pools.asynchronous(run, pool, ahead)
    except KeyboardInterrupt:
        run.stop("interrupted")
    finally:
        run.save()
    if run.disp:
        print(run.line(), flush=True)
    return run.result(run.reason or "limit")


def method(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    bounds: Any = None,
    constraints: Any = (),
    callback: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    algorithm: str = "auto",
    **options: Any,
) -> OptimizeResult:
    """For ``scipy.optimize.minimize(fun, x0, bounds=..., method=racecars.method, options=...)``.

    ``options`` are the keywords of :func:`minimize`, and ``algorithm`` its ``method``. Derivatives
    are not used.

    >>> import scipy.optimize, racecars
    >>> res = scipy.optimize.minimize(
    ...     scipy.optimize.rosen, [2, 2], bounds=[(-5, 5)] * 2, method=racecars.method,
    ...     options={"maxfev": 500, "rng": 1})
    >>> res.nfev
    500
    """
    if bounds is None:
        raise ValueError("method=racecars.method needs bounds")
    if "maxiter" in options:
        options.setdefault("maxfev", options.pop("maxiter"))
    options.pop("tol", None)
    return minimize(
        fun,
        bounds,
        args=args,
        x0=x0,
        constraints=constraints,
        callback=callback,
        method=algorithm,
        **options,
    )


def _space(bounds: Any, space: Any, integrality: Any, method: str | Optimizer) -> Space:
    if bounds is not None and space is not None:
        raise ValueError("bounds and space are both given; one of them says it all")
    if bounds is None and space is None:
        if isinstance(method, Optimizer):
            return method.space
        raise ValueError("neither bounds nor space is given")
    given = space_of(space if bounds is None else bounds, integrality)
    if isinstance(method, Optimizer) and method.space != given:
        raise ValueError("the optimizer to go on with searches another space")
    return given


def _check(
    vectorized: bool,
    as_dict: bool,
    retries: int,
    on_error: str,
    resume: str,
    timeout: float | None,
    lookahead: int | None,
) -> None:
    if on_error not in ("penalize", "raise"):
        raise ValueError(f"on_error is {on_error!r}; it must be 'penalize' or 'raise'")
    if resume not in ("auto", "must", "never"):
        raise ValueError(f"resume is {resume!r}; it must be 'auto', 'must' or 'never'")
    if retries < 0:
        raise ValueError(f"retries is {retries}; it must be 0 or more")
    if lookahead is not None and lookahead < 1:
        raise ValueError(f"lookahead is {lookahead}; it must be at least 1")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout is {timeout}; it must be above 0 seconds")
    if vectorized and as_dict:
        raise ValueError("vectorized=True needs bounds: a dict space has no columns")
    if vectorized and timeout is not None:
        raise ValueError("timeout needs one evaluation at a time, not vectorized=True")


def _check_limits(maxfev: int | None, maxtime: float | None, target: float | None) -> None:
    if maxfev is not None and maxfev < 1:
        raise ValueError(f"maxfev is {maxfev}; it must be at least 1")
    if maxtime is not None and not maxtime > 0:
        raise ValueError(f"maxtime is {maxtime}; it must be above 0 seconds")
    if target is not None and math.isnan(target):
        raise ValueError("target is NaN, which no value is below")


def _points(x0: Any, dimension: int) -> list[Any]:
    """One point or several, as arrays or dicts."""
    if x0 is None:
        return []
    if isinstance(x0, Mapping):
        return [dict(x0)]
    if isinstance(x0, (list, tuple)) and x0 and all(isinstance(x, Mapping) for x in x0):
        return [dict(x) for x in x0]
    points = np.atleast_2d(np.asarray(x0, dtype=float))
    if points.ndim != 2 or points.shape[1] != dimension:
        shape = np.shape(x0)
        raise ValueError(f"x0 has shape {shape}; it takes ({dimension},) or (k, {dimension})")
    return [np.ascontiguousarray(point) for point in points]
