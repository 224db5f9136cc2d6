//! The live page: the report of a study that runs, served on this machine, and kept up to date.
//!
//! A server of its own, on the standard library: it has one page and one stream of events, and a web
//! framework would cost every user more time to build than all the rest. One thread follows the
//! journal; each connection has a thread.

mod http;

use crate::report::{Digest, data, page};
use crate::trace::Reader;
use http::{Request, Sent};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the journal is looked at.
const LOOK: Duration = Duration::from_millis(300);
/// The least time between two updates; more where making one takes long.
const PAUSE: Duration = Duration::from_secs(1);
/// An update may take this share of the time.
const SHARE: u32 = 10;
/// How often a silent stream says that it is there, and so notices that nobody listens.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How many connections are served at once.
const CONNECTIONS: usize = 64;

/// A server of one study's page.
#[derive(Debug)]
pub struct Watch {
    listener: TcpListener,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    latest: Mutex<Latest>,
    news: Condvar,
    connections: Mutex<usize>,
}

/// What the page shows.
#[derive(Debug)]
struct Latest {
    /// Counts the updates.
    version: u64,
    data: Arc<str>,
    page: Arc<str>,
}

impl Watch {
    /// Listens at an address; one that other machines can reach must be allowed by name.
    pub fn bind(folder: &Path, address: SocketAddr, is_open: bool) -> io::Result<Watch> {
        if !is_open && !address.ip().is_loopback() {
            let what = format!(
                "{address} can be reached from other machines, and whoever reaches it sees the study; \
                 use a loopback address such as 127.0.0.1, or allow it with --allow-remote"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        let listener = TcpListener::bind(address).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen at {address}: {error}"))
        })?;
        let follower = Follower::new(folder)?;
        let latest = Mutex::new(follower.latest(0));
        let (news, connections) = (Condvar::new(), Mutex::new(0));
        let shared = Arc::new(Shared { latest, news, connections });
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || theirs.follow(follower));
        Ok(Watch { listener, shared })
    }

    /// Where the page is.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends.
    pub fn serve(&self) -> io::Result<()> {
        let is_local = self.address()?.ip().is_loopback();
        for stream in self.listener.incoming() {
            // A connection that was gone before it was taken is no reason to stop.
            let Ok(stream) = stream else { continue };
            let shared = Arc::clone(&self.shared);
            let started =
                std::thread::Builder::new().spawn(move || shared.answer(stream, is_local));
            if started.is_err() {
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }
}

/// Follows a journal through its beginning, its growth and its replacement by another.
struct Follower {
    folder: PathBuf,
    study: Option<(Reader, Digest)>,
}

impl Follower {
    fn new(folder: &Path) -> io::Result<Self> {
        let mut follower = Follower { folder: folder.to_path_buf(), study: None };
        follower.look()?;
        Ok(follower)
    }

    /// Takes in what is new; returns whether anything is.
    fn look(&mut self) -> io::Result<bool> {
        if let Some((reader, digest)) = &mut self.study
            && !reader.is_replaced()
        {
            return digest.follow(reader);
        }
        let was_there = self.study.take().is_some();
        let Some(mut reader) = Reader::open(&self.folder)? else { return Ok(was_there) };
        let mut digest = Digest::new(&self.folder, &reader);
        digest.follow(&mut reader)?;
        self.study = Some((reader, digest));
        Ok(true)
    }

    fn latest(&self, version: u64) -> Latest {
        let digest = self.study.as_ref().map(|(_, digest)| digest);
        let data = data(&self.folder, digest);
        let page = page(&self.folder, &data, true);
        Latest { version, data: data.into(), page: page.into() }
    }
}

impl Shared {
    fn follow(&self, mut follower: Follower) {
        let mut rest = PAUSE;
        let mut is_behind = false;
        let mut updated = Instant::now();
        loop {
            std::thread::sleep(LOOK);
            // A folder that cannot be read now may be again later.
            is_behind |= follower.look().unwrap_or(false);
            if !is_behind || updated.elapsed() < rest {
                continue;
            }
            let start = Instant::now();
            let version = self.latest().version + 1;
            let fresh = follower.latest(version);
            *self.latest() = fresh;
            self.news.notify_all();
            (is_behind, updated) = (false, Instant::now());
            rest = PAUSE.max(SHARE * start.elapsed());
        }
    }

    fn latest(&self) -> std::sync::MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, more: bool) -> usize {
        let mut count = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if more {
            *count += 1;
        } else {
            *count -= 1;
        }
        *count
    }

    fn answer(&self, stream: TcpStream, is_local: bool) {
        if self.count(true) <= CONNECTIONS {
            // Whoever hangs up in the middle does not want the rest.
            let _ = self.converse(stream, is_local);
        }
        self.count(false);
    }

    fn converse(&self, mut stream: TcpStream, is_local: bool) -> io::Result<()> {
        let request = match http::read(&mut stream) {
            Ok(request) => request,
            Err(_) => return http::refuse(&mut stream, "400 Bad Request", "not a request"),
        };
        let Request { method, path, host } = request;
        // A page elsewhere that points its own name at this machine is kept out.
        if is_local && !host.as_deref().is_some_and(is_this_machine) {
            return http::refuse(&mut stream, "403 Forbidden", "ask for 127.0.0.1 or localhost");
        }
        match (method.as_str(), path.as_str()) {
            ("GET" | "HEAD", "/") => {
                let page = Arc::clone(&self.latest().page);
                http::page(&mut stream, &page, method == "HEAD")
            }
            ("GET", "/events") => self.stream(stream),
            ("GET" | "HEAD", _) => http::refuse(&mut stream, "404 Not Found", "there is / only"),
            _ => http::refuse(&mut stream, "405 Method Not Allowed", "GET only"),
        }
    }

    /// Sends every update until the reader leaves. It begins with the latest, so that a reader that
    /// lost its connection misses nothing.
    fn stream(&self, stream: TcpStream) -> io::Result<()> {
        let mut events = Sent::open(stream)?;
        let mut seen = None;
        loop {
            let news = {
                let latest = self.latest();
                let wait = self
                    .news
                    .wait_timeout_while(latest, HEARTBEAT, |latest| seen == Some(latest.version));
                let (latest, _) = wait.unwrap_or_else(PoisonError::into_inner);
                let is_new = seen != Some(latest.version);
                seen = Some(latest.version);
                is_new.then(|| Arc::clone(&latest.data))
            };
            match news {
                Some(data) => events.event("data", &data)?,
                None => events.heartbeat()?,
            }
        }
    }
}

/// Whether a `Host` names this machine itself rather than a name that someone else controls.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};

    const FIRST: &str = r#"{"study":{"space":{"coordinates":[{"name":"x","type":"real","low":0.0,"high":1.0}]},"budget":9}}"#;

    fn get(address: SocketAddr, head: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "{head}\r\n\r\n").unwrap();
        stream
    }

    fn text(address: SocketAddr, head: &str) -> String {
        let mut text = String::new();
        get(address, head).read_to_string(&mut text).unwrap();
        text
    }

    /// The next event's data.
    fn event(lines: &mut impl Iterator<Item = io::Result<String>>) -> serde_json::Value {
        let line = lines.find_map(|line| line.unwrap().strip_prefix("data: ").map(String::from));
        serde_json::from_str(&line.unwrap()).unwrap()
    }

    #[test]
    fn the_page_is_served_before_the_study_begins_while_it_runs_and_when_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch::bind(folder.path(), "127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = watch.address().unwrap();
        std::thread::spawn(move || watch.serve());
        let page = text(address, "GET / HTTP/1.1\r\nHost: 127.0.0.1");
        assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("data-live=\"live\""));
        let head = format!("GET /events HTTP/1.1\r\nHost: {address}");
        let mut lines = BufReader::new(get(address, &head)).lines();
        assert_eq!(event(&mut lines)["state"]["state"], "waiting");
        let path = folder.path().join(crate::journal::FILE);
        let mut journal = std::fs::File::create(&path).unwrap();
        writeln!(journal, "{FIRST}").unwrap();
        assert_eq!(event(&mut lines)["state"]["told"], 0);
        writeln!(journal, r#"{{"ask":{{"trial":0,"params":{{"x":0.5}},"at":5}}}}"#).unwrap();
        writeln!(journal, r#"{{"tell":{{"trial":0,"outcome":{{"value":2}},"at":9}}}}"#).unwrap();
        let told = event(&mut lines);
        assert_eq!((&told["state"]["told"], &told["best"]["value"]), (&1.into(), &2.0.into()));
        writeln!(journal, r#"{{"stop":{{"reason":"evaluations","at":9}}}}"#).unwrap();
        assert_eq!(event(&mut lines)["state"]["state"], "stopped");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(event(&mut lines)["state"]["state"], "waiting");
    }

    #[test]
    fn other_machines_other_names_and_other_paths_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let remote = "0.0.0.0:0".parse().unwrap();
        let message = Watch::bind(folder.path(), remote, false).err().unwrap().to_string();
        assert!(message.contains("--allow-remote"), "{message}");
        assert!(Watch::bind(folder.path(), remote, true).is_ok());
        let watch = Watch::bind(folder.path(), "127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = watch.address().unwrap();
        std::thread::spawn(move || watch.serve());
        for (head, status) in [
            ("GET / HTTP/1.1\r\nHost: evil.example", "403"),
            ("GET / HTTP/1.1", "403"),
            ("GET /secret HTTP/1.1\r\nHost: localhost:1", "404"),
            ("POST / HTTP/1.1\r\nHost: [::1]:80", "405"),
            ("nonsense", "400"),
        ] {
            let answer = text(address, head);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
        }
    }
}
