//! Ctrl-C: the first stops the run and keeps what is done, the second ends the process.

use racecars::Cancel;

/// The exit code of a process that a Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// A token that Ctrl-C cancels.
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
