//! As much of HTTP/1.1 as one page and one stream of server-sent events need. Every answer ends its
//! connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The longest head of a request.
const HEAD: u64 = 16 << 10;
/// How long a request, or a reader that does not read, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) host: Option<String>,
}

/// Reads the head of a request.
pub(super) fn read(stream: &mut TcpStream) -> io::Result<Request> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
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
    let mut request = Request { method: method.into(), path: path.into(), host: None };
    loop {
        line.clear();
        if head.read_line(&mut line)? == 0 {
            return Err(broken());
        }
        let field = line.trim_end();
        if field.is_empty() {
            return Ok(request);
        }
        if let Some((name, value)) = field.split_once(':')
            && name.eq_ignore_ascii_case("host")
        {
            request.host = Some(value.trim().to_string());
        }
    }
}

/// Sends the page.
pub(super) fn page(stream: &mut TcpStream, page: &str, is_head: bool) -> io::Result<()> {
    let head = head("200 OK", "text/html; charset=utf-8");
    write!(stream, "{head}Content-Length: {}\r\n\r\n", page.len())?;
    if !is_head {
        stream.write_all(page.as_bytes())?;
    }
    stream.flush()
}

/// Says why there is no page.
pub(super) fn refuse(stream: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let head = head(status, "text/plain; charset=utf-8");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{why}\n", why.len() + 1)?;
    stream.flush()
}

fn head(status: &str, kind: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n"
    )
}

/// A stream of server-sent events.
pub(super) struct Sent {
    stream: TcpStream,
}

impl Sent {
    pub(super) fn open(mut stream: TcpStream) -> io::Result<Self> {
        write!(stream, "{}\r\nretry: 1000\n\n", head("200 OK", "text/event-stream"))?;
        Ok(Sent { stream })
    }

    /// Sends an event; the data is one line.
    pub(super) fn event(&mut self, name: &str, data: &str) -> io::Result<()> {
        write!(self.stream, "event: {name}\ndata: ")?;
        self.stream.write_all(data.as_bytes())?;
        self.stream.write_all(b"\n\n")?;
        self.stream.flush()
    }

    pub(super) fn heartbeat(&mut self) -> io::Result<()> {
        self.stream.write_all(b": still here\n\n")?;
        self.stream.flush()
    }
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
        for wrong in ["", "GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n"]
        {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
