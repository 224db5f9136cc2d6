//! Ctrl-C and SIGTERM: the first one ends a run and keeps its results.

use racecars::Cancel;
use racecars_study::Interrupt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a process ended by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// A token that the first Ctrl-C cancels; the second Ctrl-C ends the process.
pub(crate) fn on_interrupt() -> anyhow::Result<Cancel> {
    let cancel = Cancel::new();
    let handler = cancel.clone();
    ctrlc::set_handler(move || {
        if handler.is_cancelled() {
            std::process::exit(INTERRUPTED.into());
        }
        handler.cancel();
    })?;
    Ok(cancel)
}

/// A flag that the first Ctrl-C sets.
pub(crate) fn flag_on_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let handler = flag.clone();
    ctrlc::set_handler(move || handler.store(true, Ordering::Release))?;
    Ok(flag)
}

/// The interrupt of a study: the first Ctrl-C finishes the running evaluations, the second stops now.
pub(crate) fn request_on_interrupt() -> anyhow::Result<Interrupt> {
    request_or(|interrupt| interrupt.request())
}

/// The interrupt of a study whose evaluations cannot be broken off, such as requests: the second Ctrl-C ends the process,
/// and what runs is lost.
#[cfg(feature = "net")]
pub(crate) fn request_or_exit() -> anyhow::Result<Interrupt> {
    request_or(|_| std::process::exit(INTERRUPTED.into()))
}

fn request_or(second: impl Fn(&Interrupt) + Send + 'static) -> anyhow::Result<Interrupt> {
    let interrupt = Interrupt::new();
    let handler = interrupt.clone();
    ctrlc::set_handler(move || match handler.is_requested() {
        true => second(&handler),
        false => {
            eprintln!("\nfinishing what runs; once more to stop now");
            handler.request();
        }
    })?;
    Ok(interrupt)
}
