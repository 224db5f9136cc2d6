"""``minimize``, with the conventions of SciPy."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from racecars import _core, _loops, _options
from racecars._checkpoint import ANEW, Checkpoint, held_here_only
from racecars._constraints import Constraints
from racecars._core import Session
from racecars._objective import Objective, Outcome, outcome_of
from racecars._run import Run
from racecars.optimizer import Optimizer, seed_of
from racecars.space import Space, Where, space_of
from racecars.trials import Plan, trials_of

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Unpack

    from racecars._options import Options
    from racecars.result import OptimizeResult

    P = ParamSpec("P")

# The number of points that `vectorized` evaluates together.
COLUMNS = 32


def minimize(
    fun: Callable[..., Any],
    bounds: Any = None,
    *,
    args: tuple[Any, ...] = (),
    space: Any = None,
    x0: Any = None,
    known: Any = (),
    from_: Any = None,
    assume: Mapping[str, Any] | None = None,
    integrality: Any = None,
    where: Where | None = None,
    constraints: Any = (),
    maxfev: int | None = None,
    maxtime: float | None = None,
    target: float | None = None,
    patience: int | None = None,
    patience_tolerance: float = 0.0,
    callback: Callable[..., Any] | None = None,
    rng: Any = None,
    workers: Any = 1,
    vectorized: bool = False,
    timeout: float | None = None,
    retries: int = 0,
    on_error: str = "penalize",
    checkpoint: Any = None,
    study: Any = None,
    resume: str = "auto",
    disp: bool = False,
    method: str | Optimizer | None = None,
    deterministic: bool = False,
    lookahead: int | None = None,
    **options: Unpack[Options],
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
        Called as ``fun(x, *args)``. It returns a number, ``racecars.Measured(value, constraints)``
        where it measures constraints, or ``racecars.Infeasible(by)``. An
        exception, NaN or an infinity is a failed evaluation, worse than all others; see
        ``on_error``.
    bounds, space
        One of the two. Pairs ``(low, high)`` or a ``scipy.optimize.Bounds``; or a dict whose
        values are ``(low, high)``, ``(low, high, "log")``, a ``range``, a list of choices,
        ``bool``, or ``racecars.Real``, ``Integer`` or ``Choice``.
    x0
        A point, or several, to be evaluated first: arrays, or dicts where the space is one. A
        parameter that a dict leaves out is as in the best known point (of ``known`` and ``from_``);
        without one, it has the middle of its range (on a log scale, of the logarithms), of ordered
        choices the middle one, of others the first.
    known
        Points evaluated before, as pairs of a point and its value: ``[(x, 1.5), ...]``. They are
        not evaluated again and count in no total, but the search learns from them, and one may be
        the best. A value may also be what else ``fun`` may return.
    from_, assume
        Trials to take over as known points: a result, its ``trials``, the folder of a study, or a
        list of them. Parameters are matched by name; those that are gone are ignored. Trials that
        failed are left out, and so are those outside the new ranges, with a warning. ``assume``
        has the values that parameters had there which were added since: ``{"momentum": 0.9}``.
    integrality
        Which coordinates of ``bounds`` are integers, as in ``differential_evolution``.
    where
        Constraints on the parameters that every evaluated point satisfies. They cost no
        evaluations. Texts: ``"a < b"``, ``["x[0] + x[1] <= 10", "not (mode = fast and n > 3)"]``
        (docs/spaces.md has what can be said); or functions that take one point, as ``fun`` does
        (also with ``vectorized``), and return ``True`` where it is allowed. Functions are called
        in this process, often several times for a point, and only where all texts hold; if one
        raises, so does ``minimize``. Files have only their names: a run that is resumed needs
        functions of the same names, which must do the same.
    constraints
        SciPy's ``NonlinearConstraint``, ``LinearConstraint``, dicts, functions whose values must
        be at most 0, or a list of them. A point that violates one is not evaluated and costs no
        budget: it counts in ``nit``, not in ``nfev`` nor against ``maxfev``, up to 100 such points
        for each evaluation. Constraints that only the evaluation knows are returned by ``fun``, as
        ``racecars.Measured(value, [g1, g2])``, each at most 0 where it is met.
    maxfev, maxtime, patience
        The run stops after this many evaluations, after this many seconds (evaluations under way
        are waited for), or after this many evaluations without an improvement. If none of them is
        given, it stops after 100 evaluations per coordinate, at least 1000.
    patience_tolerance
        With ``patience``: an improvement counts once the value is better by this much than when it
        last counted.
    target
        The run stops when the best value is this low. Where the function is noisy, a lucky value
        does not stop it: the best value must be the mean of several evaluations.
    callback
        Called after every evaluation as ``callback(intermediate_result=res)`` if that is the name
        of its only parameter, else as ``callback(x)`` with the best point. Raising
        ``StopIteration`` or returning ``True`` stops the run.
    rng
        A seed or a generator, see SPEC 7. A run that resumes a ``checkpoint`` ignores it.
    workers
        The number of processes that evaluate, or ``"threads"``, a ``concurrent.futures.Executor``,
        a Dask ``Client``, ``"ray"`` or a Ray remote function, an ``MPIPoolExecutor``, or a function
        like ``map``. See :mod:`racecars.workers`. No more points are out than there are workers.
        Where sending a point takes longer than evaluating it, one worker evaluates, and
        ``res.message`` says so.
    vectorized
        ``fun`` takes an array whose columns are points and returns the values. Where the space is a
        dict, it takes a dict of arrays: one value per point, or, of an array of parameters, one
        row per parameter. Choices that are not numbers are arrays of objects.
    timeout
        The seconds that an evaluation may take; then it is ended and has failed. ``fun`` runs in
        another process, even with ``workers=1``: what it changes in memory is not seen here.
    retries
        The number of further attempts at an evaluation that raised, timed out, or lost its worker.
    on_error
        ``"penalize"``: failed evaluations are told as failed and kept in ``res.errors``, and the
        first one causes a warning. ``"raise"``: the first one ends the run with its exception.
    checkpoint, resume
        A file that the run is saved to: at its start, at its end, and in between as often as 5 % of
        the time allows, at least once per second. With ``resume="auto"`` the run continues from the
        file if it exists, ``"must"`` requires it, and ``"never"`` begins anew. A resumed run takes
        ``x0``, ``known`` and the state of ``rng`` from the file, and ignores those given. The
        space, the method with its settings, the constraints, ``deterministic`` and, with it,
        ``lookahead`` must be those of the file, else it is a ``ValueError``; functions cannot be
        compared: keep ``fun``, ``args`` and those of the constraints the same. A killed run loses
        the evaluations since the last save, which are made again. A damaged file is a
        ``ValueError``, one that another run uses a ``BlockingIOError``; if it cannot be written,
        the run warns and continues.
    study
        A folder in which the run keeps a study, as ``racecars run`` does: every point and outcome
        is in its journal before the search goes on. ``racecars report``, ``watch`` and ``export``
        work on it, while the run lasts too. A run with the same folder resumes where the journal
        ends and loses nothing but the evaluations under way; ``resume`` is as for ``checkpoint``,
        with ``"never"`` moving the old journal aside. A resumed run takes ``x0``, ``known``,
        ``from_`` and the seed from the journal; space, method, settings, goal, ``deterministic``
        and ``lookahead`` must be the same. The method must be a name.
    disp
        Print the progress.
    method, options
        One of ``racecars.METHODS`` with its settings (see :func:`racecars.settings`), or an
        :class:`Optimizer` to continue with, such as ``res.optimizer``. The default is ``"auto"``,
        which chooses by what it sees of the objective, and reports its choices in
        ``res.portfolio``. It detects noise by evaluating the first point twice, unless
        ``noise="yes"`` or ``"no"`` says whether there is any; with noise, ``res.x`` is not the
        point with the luckiest value, and ``res.fun`` is the mean of ``res.best_evaluations``
        values. Settings without a method that ``"auto"`` does not have are those of
        ``"race-cars"``.
    deterministic, lookahead
        Tell outcomes in the order asked, with ``lookahead`` points out (2), so that the run does
        not depend on the number of workers; at most so many are busy, and the more are out, the
        less each knows (docs/parallel.md). With ``workers=1``, ``fun`` runs in another process,
        unless ``lookahead=1``. With ``vectorized``, ``lookahead`` is the number of
        columns (32).
    """
    _options.check(options, _KEYWORDS)
    maximize, fun = isinstance(fun, _Maximized), getattr(fun, "maximized", fun)
    settings = _options.plain(options)
    given = _space(bounds, space, integrality, where, method)
    _check(vectorized, retries, on_error, resume, timeout, lookahead)
    _check_limits(maxfev, maxtime, patience, patience_tolerance)
    _check_study(study, checkpoint, method, resume)
    maxfev = _core.budget(given.dimension, maxfev, maxtime, patience)
    is_one = isinstance(workers, (int, np.integer)) and workers == 1 and timeout is None
    is_here = vectorized or (is_one and (not deterministic or lookahead == 1))
    ahead = (lookahead or _core.LOOKAHEAD) if deterministic and not is_here else None
    told = [*_known(known, given), *_taken_over(from_, assume, given)]
    starts = _completed(_points(x0, given), told, given, maximize)
    constrained = Constraints(constraints)
    objective = Objective(fun, args if isinstance(args, tuple) else (args,), constrained)
    with ExitStack() as stack:
        saved = None if checkpoint is None else stack.enter_context(Checkpoint(checkpoint))
        state, asked, plan = None, {}, None
        if saved is not None:
            number = lookahead or (COLUMNS if vectorized else _core.LOOKAHEAD)
            asked["settings"] = _settings(method, settings)
            asked["constraints"] = constrained.described()
            asked["deterministic"] = f"True (lookahead={number})" if deterministic else "False"
            asked["goal"] = "to maximize" if maximize else "to minimize"
        if saved is not None and (resume == "must" or (resume == "auto" and saved.path.exists())):
            state, failures = saved.read()
            optimizer = _restored(saved, state["optimizer"], given, method, settings)
            if isinstance(method, Optimizer):
                del asked["settings"]
            saved.check(state, asked)
            asked = state["asked"]
        elif isinstance(method, Optimizer):
            optimizer = method
        else:
            planned = None if maxfev is None else max(maxfev - len(starts), 1)
            seed = seed_of(rng)
            optimizer = Optimizer(given, method, budget=planned, rng=seed, **settings)
            folder = None if study is None else os.path.abspath(study)
            plan = Plan(method, settings, seed, maxfev, starts, "evaluations", folder)
        session = Session(
            optimizer,
            given,
            maxfev=maxfev,
            maxtime=maxtime,
            target=target,
            patience=patience,
            patience_tolerance=patience_tolerance,
            lookahead=ahead,
            watch=callback is not None or saved is not None or disp,
            maximize=maximize,
        )
        stack.callback(session.close)
        run = Run(
            optimizer,
            session,
            objective,
            callback=callback,
            retries=retries,
            on_error=on_error,
            checkpoint=saved,
            asked=asked,
            disp=disp,
            maximize=maximize,
            plan=plan,
        )
        if state is not None:
            run.resume(state, failures)
        elif plan is not None and plan.folder is not None:
            jobs = int(workers) if isinstance(workers, (int, np.integer)) and workers > 0 else 1
            ways = (plan.method, settings, plan.seed, starts, told, jobs, resume == "never")
            session.open_study(plan.folder, *ways)
            stack.enter_context(held_here_only(session.study_files()))
        else:
            for point in starts:
                session.start(point)
            for point in told:
                session.known(*point)
            run.save()
        try:
            if vectorized:
                _loops.vectorized(run, lookahead or COLUMNS)
            elif is_here:
                _loops.sequential(run)
            else:
                from racecars import workers as pools

                with pools.pool_of(workers, objective, timeout) as pool:
                    in_order = ahead is not None
                    pools.asynchronous(run, pool, maxfev=maxfev, target=target, in_order=in_order)
        except KeyboardInterrupt:
            session.stop("interrupted")
        finally:
            if ahead is None and session.reason is not None:
                run.next()  # learns the outcomes that have come in
            run.save()
        if study is not None:
            session.close_study()
        if disp:
            print(run.line(), flush=True)
        return run.final_result()


class _Maximized:
    """A function that :func:`minimize` is to maximize."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.maximized = fun

    def __call__(self, *args: Any) -> Any:
        return self.maximized(*args)


def _with_the_signature_of(
    template: Callable[P, OptimizeResult],
) -> Callable[[Callable[..., OptimizeResult]], Callable[P, OptimizeResult]]:
    """For a function that takes what another one takes."""

    def given(function: Callable[..., OptimizeResult]) -> Callable[P, OptimizeResult]:
        function.__signature__ = inspect.signature(template)  # type: ignore[attr-defined]
        return function

    return given


@_with_the_signature_of(minimize)
def maximize(fun: Callable[..., Any], *args: Any, **keywords: Any) -> OptimizeResult:
    """Maximizes a function that has no gradient; takes what :func:`minimize` takes.

    Values are those of ``fun`` throughout: in ``res.fun``, ``res.history``, ``res.trials``,
    ``known`` and ``target``.

    >>> import racecars
    >>> res = racecars.maximize(lambda x: 3 - (x**2).sum(), [(-5, 5)] * 4, maxfev=800, rng=1)
    >>> bool(2.9 < res.fun <= 3), bool(res.fun == res.history.max())
    (True, True)
    """
    return minimize(_Maximized(fun), *args, **keywords)


_KEYWORDS = [name for name in inspect.signature(minimize).parameters if name != "options"]

# A point and its outcome, as a session takes them.
_Known = tuple[Any, Optional[float], Optional[float], Optional[str], str]


def _known(given: Any, space: Space) -> list[_Known]:
    """The points that are known, with their outcomes."""
    found: list[_Known] = []
    for place, pair in enumerate(given):
        try:
            x, returned = pair
        except (TypeError, ValueError):
            text = "is not a pair of a point and its value"
            raise ValueError(f"known[{place}] {text}: {pair!r}") from None
        outcome = outcome_of(returned)
        points = _points(x, space, f"known[{place}]")
        found += [(point, *outcome[:4]) for point in points]
    return found


def _completed(starts: list[Any], told: list[_Known], space: Space, maximize: bool) -> list[Any]:
    """Start points; what dicts leave out is as in the best known point, if there is one."""
    known = [point for point in told if point[3] is None]
    if not known or not any(isinstance(start, dict) for start in starts):
        return starts

    def rank(point: _Known) -> tuple[float, float]:
        _, value, violation, *_ = point
        return violation or 0.0, 0.0 if value is None else -value if maximize else value

    best = min(known, key=rank)[0]
    usual = dict(best) if isinstance(best, Mapping) else space.params(best)
    return [{**usual, **start} if isinstance(start, dict) else start for start in starts]


def _taken_over(given: Any, assume: Mapping[str, Any] | None, space: Space) -> list[_Known]:
    """The trials to take over, as known points of this space."""
    strange = [name for name in assume or () if name not in space.names]
    if strange:
        names = ", ".join(space.names[:20])
        raise ValueError(f"assume: `{strange[0]}` is no parameter; there are {names}")
    if given is None:
        if assume:
            raise ValueError(f"assume is {dict(assume)}, which has an effect only with from_")
        return []
    if isinstance(given, (list, tuple)):
        return [point for one in given for point in _taken_over(one, assume, space)]
    trials = trials_of(given, "from_")
    added, known = {**trials.fixed, **(assume or {})}, trials.known
    their_space = trials.space
    # What failed there may work here.
    trials = trials[np.isin(trials.outcome, ("value", "infeasible"))]
    rows, places = space.taken_over(their_space, np.ascontiguousarray(trials.x), added)
    if len(places) < len(trials):
        from racecars._run import warn

        out = len(trials) - len(places)
        warn(f"from_: {out} of {len(trials)} trials are outside the space and were left out")
    found: list[_Known] = []
    for x, value, violation in known:
        one, is_there = space.taken_over(their_space, x[np.newaxis], added)
        found += [(one[0], value, violation, None, "") for _ in is_there]
    for row, trial in zip(rows, trials[np.array(places, dtype=int)]):
        is_value = trial.outcome == "value"
        value = trial.value if np.isfinite(trial.value) else None
        outcome = Outcome(value) if is_value else Outcome(value, trial.violation)
        found.append((row, *outcome[:4]))
    return found


def _restored(
    saved: Checkpoint, state: bytes, given: Space, method: Any, options: dict[str, Any]
) -> Optimizer:
    """The optimizer of a checkpoint, if it is of the method asked for."""
    try:
        optimizer = Optimizer.from_bytes(state, given)
    except ValueError as error:
        raise ValueError(f"checkpoint {saved.path}: {error}; {ANEW}") from None
    if isinstance(method, Optimizer):
        return optimizer
    wanted = _core.algorithm_name(method, options)
    if optimizer.method != wanted:
        text = f"checkpoint {saved.path} is of method {optimizer.method}, not {wanted}"
        raise ValueError(f"{text}; {ANEW}")
    return optimizer


def _settings(method: Any, options: dict[str, Any]) -> str:
    """The settings of a method, as text."""
    if isinstance(method, Optimizer):
        return "of an Optimizer"
    plain = {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in sorted(options.items())
    }
    return json.dumps(plain, default=str)


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
    algorithm: str | None = None,
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


def _space(bounds: Any, space: Any, integrality: Any, where: Any, method: Any) -> Space:
    if bounds is not None and space is not None:
        raise ValueError("bounds and space are both given; give one of them")
    if bounds is None and space is None:
        if isinstance(method, Optimizer):
            return method.space
        raise ValueError("neither bounds nor space is given")
    given = space_of(space if bounds is None else bounds, integrality, where)
    if isinstance(method, Optimizer) and method.space != given:
        raise ValueError("the optimizer to continue with searches another space")
    return given


def _check(
    vectorized: bool,
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
    if vectorized and timeout is not None:
        raise ValueError("timeout needs one evaluation at a time, not vectorized=True")


def _check_study(study: Any, checkpoint: Any, method: Any, resume: str) -> None:
    if study is None:
        return
    if not hasattr(Session, "open_study"):
        raise NotImplementedError("study= needs Linux or macOS: studies are not built elsewhere")
    if checkpoint is not None:
        raise ValueError("study and checkpoint are both given; a study can be resumed by itself")
    if isinstance(method, Optimizer):
        raise ValueError("study needs the name of a method: a journal cannot begin amid a search")
    if resume == "must" and not os.path.exists(os.path.join(study, "journal.jsonl")):
        raise FileNotFoundError(f"study {study} has no journal to resume from, and resume='must'")


def _check_limits(
    maxfev: int | None, maxtime: float | None, patience: int | None, patience_tolerance: float
) -> None:
    if not patience_tolerance >= 0.0:
        raise ValueError(f"patience_tolerance is {patience_tolerance}; it must be 0 or more")
    for name, count in (("maxfev", maxfev), ("patience", patience)):
        if count is not None and count < 1:
            raise ValueError(f"{name} is {count}; it must be at least 1")
    if maxtime is not None and not maxtime > 0:
        raise ValueError(f"maxtime is {maxtime}; it must be above 0 seconds")


def _points(given: Any, space: Space, name: str = "x0") -> list[Any]:
    """One point or several, as arrays or dicts."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [dict(given)]
    if isinstance(given, (list, tuple)) and given and all(isinstance(x, Mapping) for x in given):
        return [dict(x) for x in given]
    points, n = np.atleast_2d(np.asarray(given, dtype=float)), space.dimension
    if points.ndim != 2 or points.shape[1] != n:
        raise ValueError(f"{name} has shape {np.shape(given)}; it takes ({n},) or (k, {n})")
    return list(points)
