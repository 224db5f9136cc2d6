//! As much of HTTP/1.1 as one page and one stream of server-sent events need. Every answer ends its
//! connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest head of a request.
const HEAD: u64 = 16 << 10;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) host: Option<String>,
}

/// A stream with a deadline for all that is read and written, since a limit on each read or write would
/// let a client go on for ever, byte by byte.
pub(super) struct Timed<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl<'a> Timed<'a> {
    pub(super) fn new(stream: &'a TcpStream, patience: Duration) -> Self {
        Timed { stream, deadline: Instant::now() + patience }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the head of a request.
pub(super) fn read(stream: &mut Timed<'_>) -> io::Result<Request> {
    parse(BufReader::new(stream.take(HEAD)))
}

fn parse(mut head: impl BufRead) -> io::Result<Request> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "not an HTTP request");
    let mut line = String::new();
    head.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next())
    else {
        return Err(broken());
    };
    if !version.starts_with("HTTP/1.") {
        return Err(broken());
    }
    let path = target.split(['?', '#']).next().unwrap_or(target);
    let (mut hosts, is_old) = (0, version == "HTTP/1.0");
    let mut request = Request { method: method.into(), path: path.into(), host: None };
    loop {
        line.clear();
        if head.read_line(&mut line)? == 0 {
            return Err(broken());
        }
        let field = line.trim_end();
        if field.is_empty() {
            // RFC 9112, section 3.2: one Host, and from HTTP/1.1 on no less.
            let is_sound = hosts == 1 || hosts == 0 && is_old;
            return if is_sound { Ok(request) } else { Err(broken()) };
        }
        let Some((name, value)) = field.split_once(':') else { return Err(broken()) };
        // Section 5.1: a name with a space could be read as another one.
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err(broken());
        }
        if name.eq_ignore_ascii_case("host") {
            hosts += 1;
            request.host = Some(value.trim().to_string());
        }
    }
}

/// Sends the page.
pub(super) fn page(stream: &mut impl Write, page: &str, is_head: bool) -> io::Result<()> {
    let head = head("200 OK", "text/html; charset=utf-8");
    write!(stream, "{head}Content-Length: {}\r\n\r\n", page.len())?;
    if !is_head {
        stream.write_all(page.as_bytes())?;
    }
    Ok(())
}

/// Says why there is no page.
pub(super) fn refuse(stream: &mut impl Write, status: &str, why: &str) -> io::Result<()> {
    let head = head(status, "text/plain; charset=utf-8");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{why}\n", why.len() + 1)
}

fn head(status: &str, kind: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n"
    )
}

/// Begins a stream of server-sent events.
pub(super) fn begin_events(stream: &mut impl Write) -> io::Result<()> {
    write!(stream, "{}\r\nretry: 1000\n\n", head("200 OK", "text/event-stream"))
}

/// Sends an event; the data is one line.
pub(super) fn event(stream: &mut impl Write, name: &str, data: &str) -> io::Result<()> {
    write!(stream, "event: {name}\ndata: {data}\n\n")
}

pub(super) fn heartbeat(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b": still here\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_and_what_is_none_is_refused() {
        let text = "GET /events?x=1 HTTP/1.1\r\nAccept: */*\r\nHOST: localhost:80\r\n\r\n";
        let (method, path) = ("GET".to_string(), "/events".to_string());
        let host = Some("localhost:80".to_string());
        assert_eq!(parse(text.as_bytes()).unwrap(), Request { method, path, host });
        assert_eq!(parse("GET / HTTP/1.0\r\n\r\n".as_bytes()).unwrap().host, None);
        for wrong in [
            "",
            "GET /\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nHost : evil.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\n Host: evil.example\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
