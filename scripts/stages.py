"""The stages of `./scripts/test`, run side by side, the output of each in one piece.

Without a name all stages run, except those of --full; with names, those and what they need.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
# Logs of the stages, and the programs that they share.
FOLDER = TARGET / "test"


# The tests of the Python package that wait for other programs most of the time; about half of all.
WITH_OTHERS = " ".join(
    f"python/tests/test_{name}.py"
    for name in ("clusters", "examples", "gallery", "ray_tune", "optuna_storages")
)


@dataclass(frozen=True)
class Stage:
    name: str
    about: str
    # The stages that must have passed before.
    needs: str
    # For bash.
    commands: str
    full: bool = False


# Of the stages that may start, the first in this list does: those that others wait for and those
# that take long come first.
#
# All calls of cargo select the whole workspace: with `-p`, cargo chooses other features of the
# dependencies and compiles everything again. A call waits while another one compiles, so `needs`
# also puts those that compile one after the other.
STAGES = [
    Stage(
        "build",
        "the programs and tests, compiled once for all stages",
        "",
        """
        # With `racecars prompt`, as wheels and archives have it.
        cargo build --quiet --workspace --bin racecars --example synthetic \
          --features racecars-cli/net
        cp "$DEBUG/racecars" "$DEBUG/examples/synthetic" "$FOLDER"
        cargo test --quiet --workspace --no-run
        """,
    ),
    Stage(
        "install",
        "system packages and Python environments",
        "",
        """
        ./scripts/venv python
        ./scripts/browser-test --install
        ./scripts/postgres
        ./scripts/venv
        ./scripts/venv docs
        """,
    ),
    Stage(
        "wheel",
        "the Python package, as a wheel",
        "build install",
        './scripts/wheel --into .venv-python --dev --binary "$FOLDER/racecars"',
    ),
    Stage(
        "pytest-others",
        "the Python package with Dask, Ray, MPI, Optuna and PostgreSQL, and its examples",
        "wheel",
        f".venv-python/bin/python -m pytest --quiet --durations=10 {WITH_OTHERS}",
    ),
    Stage(
        "pytest",
        "all other tests of the Python package",
        "wheel",
        f"""
        ignored=$(printf -- '--ignore=%s ' {WITH_OTHERS})
        .venv-python/bin/python -m pytest --quiet --durations=10 $ignored
        """,
    ),
    Stage(
        "rust",
        "unit, integration and documentation tests of the crates",
        "wheel",
        """
        rm -f "$TARGET/tmp/skipped.txt"
        cargo test --quiet --workspace
        if [ -s "$TARGET/tmp/skipped.txt" ]; then
          echo "$(wc -l < "$TARGET/tmp/skipped.txt") skipped on this machine:"
          cat "$TARGET/tmp/skipped.txt"
        fi
        """,
    ),
    Stage(
        "lints",
        "format and lints of the crates",
        "wheel",
        """
        cargo fmt --all --check
        cargo clippy --quiet --workspace --all-targets -- -D warnings
        # Language models and prompts are optional features of the command line.
        cargo clippy --quiet --workspace --all-targets \
          --features racecars-cli/lm,racecars-cli/net -- -D warnings
        """,
    ),
    Stage(
        "documentation",
        "the crates' documentation, and the theory as a PDF where LaTeX is installed",
        "lints",
        """
        RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
        ./scripts/theory-pdf
        """,
    ),
    Stage(
        "site",
        "the documentation site: its links, and the playground in a browser",
        "build install",
        './scripts/docs --binary "$FOLDER/racecars" --playground',
    ),
    Stage(
        "attacks",
        "attacks, in short",
        "wheel",
        '.venv-python/bin/python -m peers.attack --quick --binary "$FOLDER/racecars"',
    ),
    Stage(
        "browser",
        "the report and the live page, in a browser",
        "build install",
        './scripts/browser-test "$FOLDER/racecars" "$FOLDER/synthetic"',
    ),
    Stage(
        "claims",
        "figures and outputs in README and docs",
        "build",
        'python3 -m peers.claims --binary "$FOLDER/racecars"',
    ),
    Stage(
        "python-lints",
        "format, lints and types of the Python code",
        "install",
        """
        .venv/bin/ruff format --quiet --check peers
        .venv/bin/ruff check --quiet peers
        .venv/bin/mypy --no-error-summary peers
        .venv-python/bin/ruff format --quiet --check python docs examples scripts
        .venv-python/bin/ruff check --quiet python docs examples scripts
        .venv-python/bin/mypy --no-error-summary python/racecars docs/examples scripts/stages.py \
          $(ls examples/*/*.ipynb | sed 's/ipynb$/py/')
        """,
    ),
    Stage(
        "optuna-export",
        "exports, opened by Optuna and its dashboard",
        "build install",
        '.venv/bin/python -m peers.reference.optuna_export "$FOLDER/racecars" "$FOLDER/synthetic"',
    ),
    Stage(
        "packages",
        "every crate packages, with its README and licences",
        "build",
        "./scripts/release crates --quick",
    ),
    Stage(
        "site-browser",
        "every page of the documentation site, in a browser",
        "site",
        './scripts/docs --binary "$FOLDER/racecars" --browser',
        full=True,
    ),
    Stage(
        "crates",
        "every crate packages and builds by itself",
        "packages",
        "./scripts/release crates",
        full=True,
    ),
    Stage("platforms", "other systems (minutes)", "build", "./scripts/platforms", full=True),
    Stage(
        "public-api",
        "the public interface, against docs/public-api.txt",
        "build",
        "./scripts/public-api",
        full=True,
    ),
    Stage(
        "references",
        "SRACOS against zoopt, CMA-ES against cma, DE against scipy (minutes)",
        "build install",
        """
        cargo build --quiet --release
        .venv/bin/python peers/reference/zoopt_sracos.py
        .venv/bin/python -m peers.reference.baselines
        """,
        full=True,
    ),
    Stage(
        "lm",
        "language models against transformers (installs 6 GB)",
        "references",
        """
        ./scripts/venv lm
        cargo build --quiet --release --features lm
        racecars=$TARGET/release/racecars
        .venv-lm/bin/python -m peers.lm.parity "$racecars" "$("$racecars" lm fetch smollm2)" \
          "$("$racecars" lm fetch gemma3-270m --accept-terms)"
        """,
        full=True,
    ),
]
NAMED = {stage.name: stage for stage in STAGES}


@dataclass
class Done:
    stage: Stage
    code: int
    wall: float
    cpu: float


def chosen(names: list[str], full: bool) -> list[Stage]:
    """The stages to run: those named and what they need, or all."""
    if not names:
        return [stage for stage in STAGES if full or not stage.full]
    wanted = set(names)
    # Backwards, since what a stage needs stands before it.
    for stage in reversed(STAGES):
        if stage.name in wanted:
            wanted.update(stage.needs.split())
    return [stage for stage in STAGES if stage.name in wanted]


def environment(full: bool) -> dict[str, str]:
    ours = {
        "TARGET": str(TARGET),
        "DEBUG": str(TARGET / "debug"),
        "FOLDER": str(FOLDER),
        "CARGO_TERM_COLOR": "always" if sys.stdout.isatty() else "never",
    }
    if full:
        ours["RACECARS_FULL"] = "1"
    else:
        # The same cases every time, so that a change is judged by what it changes.
        ours["PROPTEST_RNG_SEED"] = "1"
    if os.environ.get("CI"):
        # What is compiled once only need not be prepared for the next time.
        ours["CARGO_INCREMENTAL"] = "0"
    return {**os.environ, **ours}


class Runner:
    def __init__(self, stages: list[Stage], jobs: int, full: bool) -> None:
        self.waiting = stages
        self.jobs = jobs
        self.environment = environment(full)
        # By process. The objects are kept, since `subprocess` itself waits for those that are not.
        self.running: dict[int, tuple[Stage, float, subprocess.Popen[bytes]]] = {}
        self.done: list[Done] = []
        self.begin = time.monotonic()

    def say(self, text: str) -> None:
        seconds = time.monotonic() - self.begin
        print(f"== [{seconds // 60:02.0f}:{seconds % 60:02.0f}] {text}", flush=True)

    def run(self) -> bool:
        """Runs everything that can be run; returns whether all passed."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        try:
            while self.start_what_may() or self.running:
                self.finish_one()
        except BaseException:
            for process in self.running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGTERM)
            raise
        return self.summarize()

    def start_what_may(self) -> bool:
        passed = {done.stage.name for done in self.done if done.code == 0}
        for stage in list(self.waiting):
            if len(self.running) >= self.jobs:
                break
            if passed.issuperset(stage.needs.split()):
                self.waiting.remove(stage)
                self.start(stage)
        return bool(self.running)

    def start(self, stage: Stage) -> None:
        self.say(f"{stage.name} starts: {stage.about}")
        with log(stage).open("wb") as file:
            child = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", stage.commands],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                # One at a time, a stage may show its output as it comes.
                stdout=None if self.jobs == 1 else file,
                stderr=None if self.jobs == 1 else subprocess.STDOUT,
                start_new_session=True,
            )
        self.running[child.pid] = (stage, time.monotonic(), child)

    def finish_one(self) -> None:
        process, status, used = os.wait4(-1, 0)
        if process not in self.running:
            return
        stage, begin, child = self.running.pop(process)
        code = child.returncode = os.waitstatus_to_exitcode(status)
        done = Done(stage, code, time.monotonic() - begin, used.ru_utime + used.ru_stime)
        self.done.append(done)
        ended = "passed" if code == 0 else f"FAILED with exit code {code}"
        print()
        self.say(
            f"{stage.name} {ended} after {done.wall:.0f} s, {done.cpu:.0f} s of processor time"
        )
        sys.stdout.buffer.write(log(stage).read_bytes())
        print(flush=True)

    def summarize(self) -> bool:
        print(f"{'stage':16} {'seconds':>8} {'processor':>10}")
        for done in self.done:
            mark = "" if done.code == 0 else "  FAILED"
            print(f"{done.stage.name:16} {done.wall:8.0f} {done.cpu:10.0f}{mark}")
        wall, cpu = time.monotonic() - self.begin, sum(done.cpu for done in self.done)
        print(f"{'together':16} {wall:8.0f} {cpu:10.0f}")
        failed = [done.stage.name for done in self.done if done.code]
        if failed:
            left = ", ".join(stage.name for stage in self.waiting)
            print(f"== failed: {', '.join(failed)}" + (f"; not run: {left}" if left else ""))
        else:
            print("== all passed")
        return not failed


def log(stage: Stage) -> Path:
    return FOLDER / f"{stage.name}.txt"


def main() -> None:
    listed = "\n".join(f"  {stage.name:16} {stage.about}" for stage in STAGES if not stage.full)
    added = "\n".join(f"  {stage.name:16} {stage.about}" for stage in STAGES if stage.full)
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        description=__doc__,
        epilog=f"stages:\n{listed}\nadded by --full:\n{added}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="STAGE", help="only these and what they need")
    parser.add_argument("--full", action="store_true", help="the long stages, and new random cases")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # One more than cores, since there is always one that waits.
    most = min(cores or 2, 4) + 1
    parser.add_argument(
        "--jobs",
        type=int,
        default=most,
        metavar="N",
        help=f"stages at a time ({most}); 1 shows output as it comes",
    )
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in NAMED:
            parser.error(f"'{name}' is not a stage; there are {', '.join(NAMED)}")
    if arguments.jobs < 1:
        parser.error(f"--jobs is {arguments.jobs}; it must be 1 or more")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    stages = chosen(arguments.names, arguments.full)
    try:
        passed = Runner(stages, arguments.jobs, arguments.full).run()
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
