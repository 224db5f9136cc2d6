"""Compares ours and other optimizers on the same problems, budgets and seeds, in one run.

Prints quality (mean, std, rank of the final values) and overhead (the optimizers' own time per
evaluation, as ratios to ours), and writes comparison.md and comparison.csv. The whole run takes
about half an hour, `--quick` two minutes. `./scripts/field` installs the requirements and calls
this.

    ./scripts/field [--quick]
    python -m peers.field [--problems P,..] [--dims N,..] [--budget 100n] [--seeds K] [--peers A,..]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import racecars
from peers import binary as binaries
from peers.binary import Binary, BinaryError
from peers.field import report, sections
from peers.field.optimizers import PEERS
from peers.field.run import Peer
from peers.field.sections import OURS, THEIRS, Section
from peers.field.trials import REPEATS, Trial, jobs_of, left_out, run_jobs
from peers.machine import use_one_thread, written_by
from peers.problems import load
from peers.processes import Progress

TERMS = f"""\
Bold names are ours. All methods have the same problems, including shifts and rotations, the same
budgets and the same number of seeds, and none starts at the centre. Overhead is the processor time
between two calls of the objective; for ours, which `racecars.minimize` runs, it is the minimum of
{REPEATS} repeats if trials run one at a time. This is a single run on a shared machine: only the
first digit is significant."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m peers.field",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--problems", metavar="P,..", help="instead of the default ten")
    parser.add_argument("--dims", metavar="N,..", help="the dimensions")
    parser.add_argument("--budget", metavar="T|100n", help="evaluations, total or per dimension")
    parser.add_argument("--seeds", metavar="K", type=int, help="the number of seeds")
    parser.add_argument("--peers", metavar="A,..", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--ours", metavar="A,..", default=",".join(OURS), help="our algorithms")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--jobs",
        metavar="J",
        type=int,
        default=os.cpu_count() or 1,
        help="parallel trials; with 1 the overhead is measured undisturbed",
    )
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        help="processor time limit of a peer's trial",
    )
    parser.add_argument("--quick", action="store_true", help="a small comparison of two minutes")
    parser.add_argument("--out", metavar="DIR", type=Path, help="the directory of the results")
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


def bare_overhead(binary: Binary, todo: list[Section]) -> dict[str, float]:
    """Our overhead without Python, in the dimension in which overheads are compared."""
    timed = [section for section in todo if section.jobs == 1]
    if not timed:
        return {}
    section = timed[-1]
    return {
        ours: min(
            binary.bench(ours, "sphere", section.dim, section.budget, 1, jobs=1).overhead_us
            for _ in range(REPEATS)
        )
        for ours in dict.fromkeys(ours for _, ours in report.PAIRS)
    }


def chosen_peers(names: str | None) -> list[Peer]:
    unknown = [name for name in (names or "").split(",") if name and name not in PEERS]
    if unknown:
        raise ValueError(f"peer {unknown[0]} is not one of {', '.join(PEERS)}")
    return [PEERS[name] for name in (names.split(",") if names else THEIRS)]


def about(peers: list[Peer]) -> list[str]:
    """The text of the report before its tables."""
    return [written_by("./scripts/field", [peer.package for peer in peers]), TERMS]


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
    text = report.page(todo, trials, bare_overhead(binary, todo), about(peers), unknown)
    directory = options.out or Path("docs" if is_whole(options) else "target/field")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "comparison.md").write_text(text)
    report.write_csv(directory / "comparison.csv", trials)
    print(text)
    print(f"written to {directory}/comparison.md and .csv", file=sys.stderr)


def main() -> int:
    use_one_thread()
    options = arguments()
    try:
        run(options)
    except (BinaryError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
