//! Optimizing external programs with racecars: study file, journal, workers, recovery.
//!
//! A study is a folder with a journal in it. [`Settings`] say what to run, [`Study::open`] begins
//! or resumes a study, and [`Study::run`] runs the program until the budget is used up.
//!
//! ```
//! use racecars_study::{Interrupt, Settings, Study};
//!
//! let settings = Settings::parse(r#"
//!     command = ["sh", "-c", "echo $(( ({x} - 7) * ({x} - 7) ))"]
//!     budget = 20
//!     [parameters]
//!     x = "1..20"
//! "#)?;
//! let folder = std::env::temp_dir().join(format!("racecars-doc-{}", std::process::id()));
//! let mut study = Study::open(&folder, &settings, &std::env::temp_dir())?;
//! let summary = study.run(&Interrupt::new(), &mut |_status| {})?;
//! assert_eq!(summary.best.unwrap().params["x"], 7);
//! # drop(study);
//! # let _ = std::fs::remove_dir_all(&folder);
//! # Ok::<(), racecars_study::Error>(())
//! ```
//!
//! What is where: [`Parameter`], [`Settings`] and [`Plan`] are what is asked for; `command`, `process`
//! and `extract` are one run of the program; [`journal`] is what is kept; `search` is the core's
//! session, `journaled` writes it down, `runner` evaluates on workers; [`Recorder`] is the journal of a session that
//! somebody else drives. Results are shown by [`report`], [`watch`]
//! and [`export`], which follow the journal by [`trace`] and touch nothing.

mod command;
mod error;
mod evaluate;
pub mod export;
mod extract;
pub mod journal;
mod journaled;
mod known;
mod lock;
mod noise;
mod outcome;
mod parameter;
mod plan;
mod platform;
mod point;
pub mod process;
mod queue;
mod record;
mod recorder;
pub mod report;
mod room;
mod runner;
mod search;
mod settings;
mod shell;
mod study;
mod summary;
mod text;
pub mod trace;
mod transfer;
pub mod units;
pub mod watch;

pub use command::{TemplateFile, Variable};
pub use error::{Error, ErrorKind, Result};
pub use evaluate::DryRun;
pub use extract::Source;
pub use known::{Known, KnownPoints};
pub use parameter::Parameter;
pub use plan::{Aggregate, Keep, Plan, Sync};
pub use platform::Orphanage;
pub use point::NamedPoint;
pub use racecars::{Budget, Direction, Failure, FailureKind, Outcome, StopReason};
pub use record::{BestTrial, Totals};
pub use recorder::{Recorded, RecordedTrial, Recorder};
pub use runner::{Interrupt, Status};
pub use settings::{AlgorithmSetting, EXAMPLE, Row, Settings, Takes};
pub use study::{Asked, FOLDER, Study, Told};
pub use summary::{BestKnown, Chosen, Summary};
