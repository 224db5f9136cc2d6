"""The field in one run: ours and other optimizers on the same problems, budgets and seeds.

Prints quality (mean, std, rank of the final values) and overhead (the optimizers' own time per
evaluation, as ratios to ours), and writes comparison.md and comparison.csv. The whole run takes
about half an hour, `--quick` two minutes. `./scripts/field` installs what is needed and calls this.

    ./scripts/field [--quick]
    python -m peers.field [--problems P,..] [--dims N,..] [--budget 100n] [--seeds K] [--peers A,..]
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import racecars
from peers import binary as binaries
from peers.binary import Binary, BinaryError
from peers.field import report, sections
from peers.field.optimizers import PEERS, Peer
from peers.field.sections import OURS, Section
from peers.field.trials import REPEATS, Progress, Trial, jobs_of, left_out, run_jobs
from peers.problems import load

# Everybody gets one core: the linear algebra below NumPy would take all.
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

TERMS = f"""\
Bold names are ours. All have the same problems, shifts and rotations included, the same budgets and
the same number of seeds, and none starts at the centre. What the objective takes does not count as
overhead, which is processor time between two calls of the objective; for ours, which
`racecars.minimize` runs, the least of {REPEATS} repeats where trials run one at a time. It is one
run on a machine that others use too: digits beyond the first mean little."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m peers.field",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--problems", metavar="P,..", help="instead of the usual ten")
    parser.add_argument("--dims", metavar="N,..", help="the numbers of coordinates")
    parser.add_argument("--budget", metavar="T|100n", help="evaluations, or so many per dimension")
    parser.add_argument("--seeds", metavar="K", type=int, help="how many seeds each has")
    parser.add_argument("--peers", metavar="A,..", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--ours", metavar="A,..", default=",".join(OURS), help="our algorithms")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--jobs",
        metavar="J",
        type=int,
        default=os.cpu_count() or 1,
        help="trials at once; with 1 the overhead is measured undisturbed",
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        help="the most processor time for a trial of a peer",
    )
    parser.add_argument("--quick", action="store_true", help="a small tour of two minutes")
    parser.add_argument("--out", metavar="DIR", type=Path, help="where the results are written")
    parser.add_argument("--racecars", metavar="PATH", default=binaries.DEFAULT, help="our binary")
    return parser.parse_args()


def run_section(
    section: Section, binary: Binary, ours: list[str], peers: list[Peer], seed: int
) -> list[Trial]:
    problems = [load(binary, name, section.dim, seed) for name in section.problems]
    jobs = jobs_of(section, problems, ours, peers, seed)
    progress = Progress(section.title, len(jobs))
    trials = left_out(section, peers, seed)
    for trial in run_jobs(jobs, section.jobs):
        trials.append(trial)
        progress.step(trial.method)
    return sorted(trials, key=lambda trial: (not trial.is_ours, trial.problem, trial.seed))


def chosen_peers(names: str | None) -> list[Peer]:
    unknown = [name for name in (names or "").split(",") if name and name not in PEERS]
    if unknown:
        raise ValueError(f"peer {unknown[0]} is not one of {', '.join(PEERS)}")
    return [PEERS[name] for name in (names.split(",") if names else PEERS)]


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ")[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def about(peers: list[Peer]) -> list[str]:
    """What the report says before its tables."""
    installed = {peer.package: version(peer.package) for peer in peers}
    versions = [f"{package} {number}" for package, number in installed.items() if number]
    today = datetime.date.today().isoformat()
    command = "./scripts/field" + "".join(f" {argument}" for argument in sys.argv[1:])
    return [
        f"Written by `{command}` on {today}: racecars {racecars.__version__}, "
        f"{', '.join(versions)}, Python "
        f"{platform.python_version()}, on {os.cpu_count()} cores of {processor()}.",
        TERMS,
    ]


def is_whole(options: argparse.Namespace) -> bool:
    """Whether nothing is left out, so that the results may replace those in the repository."""
    changed = [options.quick, options.problems, options.dims, options.budget, options.peers]
    changed += [options.seeds, options.seconds]
    return not any(changed) and options.ours == ",".join(OURS)


def run(options: argparse.Namespace) -> None:
    binary = Binary(options.racecars)
    peers = chosen_peers(options.peers)
    wanted = options.ours.split(",")
    ours = [name for name in wanted if name in racecars.METHODS]
    unknown = [name for name in wanted if name not in ours]
    todo = sections.chosen(options)
    trials: list[Trial] = []
    for section in todo:
        trials += run_section(section, binary, ours, peers, options.seed)
    text = report.page(todo, trials, about(peers), unknown)
    directory = options.out or Path("docs" if is_whole(options) else "target/field")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "comparison.md").write_text(text)
    report.write_csv(directory / "comparison.csv", trials)
    print(text)
    print(f"written to {directory}/comparison.md and .csv", file=sys.stderr)


def main() -> int:
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    options = arguments()
    try:
        run(options)
    except (BinaryError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
