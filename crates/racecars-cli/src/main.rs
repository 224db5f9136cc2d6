//! The `racecars` command line: arguments and printing; the work is done by the libraries.

mod commands;
mod interrupt;
mod live;
mod output;
mod plot;
mod progress;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Black-box optimization for functions that have no gradient, many coordinates, jumps, and a price
/// per call.
///
/// The method is RACE-CARS: keep a few good and some bad points, learn a box that holds a good one
/// and no bad one, draw the next point from it, and now and then shrink the region around the best.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  racecars run -p x=0:10 -p n=1..64 --budget 200 -- ./sim --x {x} --n {n}    optimize a program
  racecars report                                      a page about how it went
  racecars watch                                       the same page, live
  racecars solve ackley --dim 500                      find a minimum, see how it came down
  racecars solve shifted-rastrigin --dim 50 --json     the same for programs
  racecars bench --problem ackley,levy --dim 50,500 --budget 30n \\
                 --algorithm race-cars,sracos,random --trials 10
  racecars bench --suite default --quick               how good the default is, everywhere
  racecars problem                                     the test problems there are
  racecars overhead --dim 50,500,1000000               what a step costs, beside its floor
  racecars paper --quick                               the paper's experiments, as one page
  racecars theory --dim 50                             the paper's query bounds, printed and corrected";

#[derive(Subcommand)]
enum Command {
    Run(commands::run::Run),
    Init(commands::init::InitCommand),
    Check(commands::check::CheckCommand),
    Ask(commands::ask::AskCommand),
    Tell(commands::tell::TellCommand),
    Report(commands::report::ReportCommand),
    Watch(commands::watch::WatchCommand),
    Export(commands::export::ExportCommand),
    Solve(commands::solve::SolveCommand),
    Bench(commands::bench::BenchCommand),
    Overhead(commands::overhead::OverheadCommand),
    Paper(commands::paper::PaperCommand),
    Theory(Box<commands::theory::TheoryCommand>),
    Problem(commands::problem::ProblemCommand),
    #[cfg(feature = "lm")]
    #[command(subcommand)]
    Lm(commands::lm::LmCommand),
    /// Language models as a service: in a build with `--features lm`
    #[cfg(not(feature = "lm"))]
    Lm(commands::LmMissing),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(run) => run.run(),
        Command::Init(init) => init.run(),
        Command::Check(check) => check.run(),
        Command::Ask(ask) => ask.run(),
        Command::Tell(tell) => tell.run(),
        Command::Report(report) => report.run(),
        Command::Watch(watch) => watch.run(),
        Command::Export(export) => export.run(),
        Command::Solve(solve) => solve.run(),
        Command::Bench(bench) => bench.run(),
        Command::Overhead(overhead) => overhead.run(),
        Command::Paper(paper) => paper.run(),
        Command::Theory(theory) => theory.run(),
        Command::Problem(problem) => problem.run(),
        Command::Lm(lm) => lm.run(),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            // A reader that has seen enough, such as `head`, is no error.
            if is_broken_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    (error.downcast_ref::<std::io::Error>())
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
