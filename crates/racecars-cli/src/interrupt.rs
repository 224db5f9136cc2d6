//! Ctrl-C and SIGTERM: the first ends a run and keeps what is done.

use racecars::Cancel;
use racecars_study::Interrupt;

/// The exit code of a process that a Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// A token that Ctrl-C cancels; the second ends the process.
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

/// What Ctrl-C asks of a study: the first to finish what runs, the second to stop now.
pub(crate) fn request_on_interrupt() -> anyhow::Result<Interrupt> {
    let interrupt = Interrupt::new();
    let handler = interrupt.clone();
    ctrlc::set_handler(move || {
        if !handler.is_requested() {
            eprintln!("\nfinishing what runs; once more to stop now");
        }
        handler.request();
    })?;
    Ok(interrupt)
}
