//! HTTP clients, with TLS.

use std::time::Duration;
use ureq::Agent;

/// The time that a client waits.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    /// For a whole request and its answer.
    Request(Duration),
    /// For the next piece of an answer, which may be large.
    Piece(Duration),
}

/// A client. Its answers may have any status: a redirect is an answer, too, so that keys and tokens go to no
/// other address.
pub fn client(connect: Duration, patience: Patience) -> Agent {
    let settings = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(connect))
        .user_agent(concat!("racecars/", env!("CARGO_PKG_VERSION")));
    let settings = match patience {
        Patience::Request(time) => settings.timeout_global(Some(time)),
        Patience::Piece(time) => settings.timeout_per_read(Some(time)),
    };
    settings.build().new_agent()
}

/// Whether the certificate of the other side is not trusted: nothing was sent, and no retry helps.
pub fn is_untrusted(error: &ureq::Error) -> bool {
    // ureq has no variant for it.
    matches!(error, ureq::Error::Io(_)) && error.to_string().contains("invalid peer certificate")
}

/// The value of the header `Authorization` for a key.
pub fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}
