//! The `racecars` command line: arguments and printing. The libraries do the work.

mod commands;
mod interrupt;
mod live;
mod output;
mod plot;
mod progress;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Black-box optimization of expensive functions without gradients, with many coordinates and jumps
///
/// The default algorithm is `auto`, a portfolio of RACE-CARS, CMA-ES and a local polish. RACE-CARS keeps a
/// few good points and some bad ones, learns a box that holds a good one and no bad one, draws the next
/// point from it, and now and then shrinks the search region around the best point.
#[derive(Parser)]
#[command(name = "racecars", version, after_help = EXAMPLES, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: CliCommand,
}

const EXAMPLES: &str = "\
Examples:
  racecars run -p x=0:10 -p k=1..64 --budget 200 -- ./sim --x {x} --k {k}    optimize a program
  racecars report                                      an HTML page about the study
  racecars watch                                       the same page, live
  racecars solve ackley --dim 500                      minimize a test problem, plot the progress
  racecars solve shifted-rastrigin --dim 50 --json     the same as JSON
  racecars bench --problem ackley,levy --dim 50,500 --budget 30n \\
                 --algorithm race-cars,sracos,random --trials 10
  racecars bench --suite default --quick               how good the default algorithm is
  racecars problem                                     list the test problems
  racecars algorithms                                  list the algorithms and their settings
  racecars overhead --dim 50,500,1000000               the cost of a step
  racecars paper --quick                               the paper's experiments, as one page
  racecars theory --dim 50                             the paper's query bounds, printed and corrected";

#[derive(Subcommand)]
enum CliCommand {
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
    Algorithms(commands::algorithms::AlgorithmsCommand),
    #[cfg(feature = "lm")]
    #[command(subcommand)]
    Lm(commands::lm::LmCommand),
    /// Language models as a service; only in a build with `--features lm`
    ///
    /// This build has none, since they take some minutes to compile. With them:
    ///
    /// cargo run --release --features lm -- lm --help
    #[cfg(not(feature = "lm"))]
    Lm(commands::Missing),
    #[cfg(feature = "net")]
    Prompt(commands::prompt::PromptCommand),
    /// Search prompts of a language model behind an endpoint; only in a build with `--features net`
    ///
    /// This build has no HTTPS, which needs a C compiler. With it:
    ///
    /// cargo run --release --features net -- prompt --help
    #[cfg(not(feature = "net"))]
    Prompt(commands::Missing),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        CliCommand::Run(run) => run.run(),
        CliCommand::Init(init) => init.run(),
        CliCommand::Check(check) => check.run(),
        CliCommand::Ask(ask) => ask.run(),
        CliCommand::Tell(tell) => tell.run(),
        CliCommand::Report(report) => report.run(),
        CliCommand::Watch(watch) => watch.run(),
        CliCommand::Export(export) => export.run(),
        CliCommand::Solve(solve) => solve.run(),
        CliCommand::Bench(bench) => bench.run(),
        CliCommand::Overhead(overhead) => overhead.run(),
        CliCommand::Paper(paper) => paper.run(),
        CliCommand::Theory(theory) => theory.run(),
        CliCommand::Problem(problem) => problem.run(),
        CliCommand::Algorithms(algorithms) => algorithms.run(),
        #[cfg(feature = "lm")]
        CliCommand::Lm(lm) => lm.run(),
        #[cfg(not(feature = "lm"))]
        CliCommand::Lm(lm) => {
            lm.run("language models, which take some minutes to compile", "lm", "lm")
        }
        #[cfg(feature = "net")]
        CliCommand::Prompt(prompt) => prompt.run(),
        #[cfg(not(feature = "net"))]
        CliCommand::Prompt(prompt) => {
            prompt.run("HTTPS, which needs a C compiler", "net", "prompt")
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            // A reader that closes the pipe early, such as `head`, is not an error.
            if is_broken_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            output::warn(format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    (error.downcast_ref::<std::io::Error>())
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::{Command, CommandFactory, Parser};

    /// Calls `check` with the path of every command and the command itself.
    fn for_each(path: String, command: &Command, check: &mut impl FnMut(&str, &Command)) {
        check(&path, command);
        for subcommand in command.get_subcommands() {
            for_each(format!("{path} {}", subcommand.get_name()), subcommand, check);
        }
    }

    /// The commands of racecars in lines as people read them: without the `$`, the comment and what else is
    /// on the line.
    fn commands(text: &str) -> Vec<Vec<String>> {
        // Continued lines are indented.
        let text = text.split("\\\n").map(str::trim_start).collect::<Vec<_>>().join("");
        let lines = text.lines().map(|line| line.trim().trim_start_matches("$ "));
        // Not the lines of a Cargo.toml.
        let is_ours =
            |line: &&str| line.starts_with("racecars ") && !line.starts_with("racecars =");
        let of_ours = lines.filter(is_ours);
        // In help, what a command does follows after some space.
        let words = of_ours.filter_map(|line| shlex::split(line.split("    ").next()?));
        let ends = ["|", "&&", ">"];
        words
            .map(|words| words.into_iter().take_while(|word| !ends.contains(&&**word)).collect())
            .collect()
    }

    #[test]
    fn printed_commands_are_accepted() {
        let mut texts = Vec::new();
        for_each("racecars".into(), &Arguments::command(), &mut |path, command| {
            texts.extend(command.get_after_help().map(|help| (path.to_string(), help.to_string())));
        });
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let pages = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
        for path in pages.chain([root.join("README.md")]) {
            let text = std::fs::read_to_string(&path).unwrap();
            // Every second part is within a fence.
            let fenced: Vec<&str> = text.split("\n```").skip(1).step_by(2).collect();
            texts.push((path.display().to_string(), fenced.join("\n")));
        }
        let mut count = 0;
        for (place, text) in texts {
            // These are in other builds.
            let is_missing = |words: &Vec<String>| match &*words[1] {
                "prompt" => !cfg!(feature = "net"),
                "lm" => !cfg!(feature = "lm"),
                "paper" => !cfg!(feature = "lm") && words.get(2).is_some_and(|word| word == "lm"),
                _ => false,
            };
            for words in commands(&text).into_iter().filter(|words| !is_missing(words)) {
                count += 1;
                let parsed = Arguments::try_parse_from(&words);
                assert!(parsed.is_ok(), "{place}: {words:?}: {}", parsed.err().unwrap());
            }
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    /// clap replaces the text `{n}` by a line break and has no way to escape it.
    #[test]
    fn help_keeps_every_line_of_its_texts_and_examples() {
        let mut examples = 0;
        for_each("racecars".into(), &Arguments::command(), &mut |path, command| {
            let page = command.clone().term_width(0).render_long_help().to_string();
            let lines: Vec<&str> = page.lines().map(str::trim).collect();
            let about = command.get_long_about().or(command.get_about());
            let arguments = command.get_arguments();
            let texts = (arguments.filter(|argument| !argument.is_hide_set()))
                .filter_map(|argument| argument.get_long_help().or(argument.get_help()))
                .chain(about)
                .chain(command.get_after_help());
            for line in texts
                .flat_map(|text| text.to_string().lines().map(str::to_string).collect::<Vec<_>>())
            {
                examples += usize::from(line.trim().starts_with("racecars "));
                let is_there = lines.iter().any(|shown| shown.contains(line.trim()));
                assert!(is_there, "`{path} --help` does not have the line {line:?}:\n{page}");
            }
        });
        assert!(examples > 20, "{examples} examples");
    }
}
