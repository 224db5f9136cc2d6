//! The live page: the report of a study that runs, served on this machine, and kept up to date.
//!
//! A server of its own, on the standard library: it has one page and one stream of events, and a web
//! framework would cost every user more time to build than all the rest. One thread follows the
//! journal; each connection has a thread.

mod http;

use crate::report::{Digest, data, page};
use crate::trace::Reader;
use http::{Request, Timed};
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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
/// The longest time for a request and its answer, or for an event of a stream to be sent.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time between two attempts where the machine lacks descriptors or threads.
const SHORTAGE: Duration = Duration::from_millis(100);

/// A server of one study's page.
#[derive(Debug)]
pub struct Watch {
    listener: TcpListener,
    shared: Arc<Shared>,
    patience: Duration,
}

#[derive(Debug)]
struct Shared {
    latest: Mutex<Latest>,
    news: Condvar,
    /// In the order that they came.
    connections: Mutex<Vec<Arc<Connection>>>,
}

/// A connection that is served.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// Whether its request has been read.
    has_asked: AtomicBool,
    is_dropped: AtomicBool,
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
        let (news, connections) = (Condvar::new(), Mutex::default());
        let shared = Arc::new(Shared { latest, news, connections });
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || theirs.follow(follower));
        Ok(Watch { listener, shared, patience: PATIENCE })
    }

    /// Where the page is.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends.
    pub fn serve(&self) -> io::Result<()> {
        let is_local = self.address()?.ip().is_loopback();
        for stream in self.listener.incoming() {
            let stream = match stream {
                Ok(stream) => stream,
                // Gone before it was taken.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                // Out of descriptors, most likely: to ask again at once would fail at once.
                Err(_) => {
                    std::thread::sleep(SHORTAGE);
                    continue;
                }
            };
            let connection = self.shared.enter(stream);
            let (shared, theirs) = (Arc::clone(&self.shared), Arc::clone(&connection));
            let patience = self.patience;
            let started = std::thread::Builder::new().spawn(move || {
                // Whoever hangs up in the middle does not want the rest.
                let _ = shared.converse(&theirs, is_local, patience);
                shared.leave(&theirs);
            });
            if started.is_err() {
                self.shared.leave(&connection);
                std::thread::sleep(SHORTAGE);
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
        self.study = Digest::open(&self.folder)?;
        Ok(was_there || self.study.is_some())
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

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a connection. If there are too many, another has to go: the oldest whose request is not
    /// complete, or else the oldest, so that nobody can shut others out. A page whose stream of events is
    /// dropped asks for another by itself.
    fn enter(&self, stream: TcpStream) -> Arc<Connection> {
        let (has_asked, is_dropped) = (AtomicBool::new(false), AtomicBool::new(false));
        let connection = Arc::new(Connection { stream, has_asked, is_dropped });
        let mut connections = self.connections();
        if connections.len() >= CONNECTIONS {
            let is_slow = |other: &Arc<Connection>| !other.has_asked.load(Ordering::Relaxed);
            let dropped = connections.iter().position(is_slow).unwrap_or(0);
            let dropped = connections.remove(dropped);
            // Its thread ends by itself: a read or a write fails, and a stream of events looks.
            dropped.is_dropped.store(true, Ordering::Relaxed);
            let _ = dropped.stream.shutdown(Shutdown::Both);
            // With the lock, a stream of events either has seen that or is waiting.
            drop(self.latest());
            self.news.notify_all();
        }
        connections.push(Arc::clone(&connection));
        connection
    }

    fn leave(&self, connection: &Arc<Connection>) {
        self.connections().retain(|other| !Arc::ptr_eq(other, connection));
    }

    fn converse(
        &self,
        connection: &Connection,
        is_local: bool,
        patience: Duration,
    ) -> io::Result<()> {
        let mut stream = Timed::new(&connection.stream, patience);
        let Ok(Request { method, path, host }) = http::read(&mut stream) else {
            return http::refuse(&mut stream, "400 Bad Request", "not a request");
        };
        connection.has_asked.store(true, Ordering::Relaxed);
        // A page elsewhere that points its own name at this machine is kept out.
        if is_local && !host.as_deref().is_some_and(is_this_machine) {
            return http::refuse(&mut stream, "403 Forbidden", "ask for 127.0.0.1 or localhost");
        }
        match (method.as_str(), path.as_str()) {
            ("GET" | "HEAD", "/") => {
                let page = Arc::clone(&self.latest().page);
                http::page(&mut stream, &page, method == "HEAD")
            }
            ("GET", "/events") => self.send_events(connection, patience),
            ("GET" | "HEAD", _) => http::refuse(&mut stream, "404 Not Found", "there is / only"),
            _ => http::refuse(&mut stream, "405 Method Not Allowed", "GET only"),
        }
    }

    /// Sends every update until the reader leaves. It begins with the latest, so that a reader that
    /// lost its connection misses nothing.
    fn send_events(&self, connection: &Connection, patience: Duration) -> io::Result<()> {
        let timed = || Timed::new(&connection.stream, patience);
        http::begin_events(&mut timed())?;
        let is_dropped = || connection.is_dropped.load(Ordering::Relaxed);
        let mut seen = None;
        while !is_dropped() {
            let news = {
                let latest = self.latest();
                let wait = self.news.wait_timeout_while(latest, HEARTBEAT, |latest| {
                    seen == Some(latest.version) && !is_dropped()
                });
                let (latest, _) = wait.unwrap_or_else(PoisonError::into_inner);
                let is_new = seen != Some(latest.version);
                seen = Some(latest.version);
                is_new.then(|| Arc::clone(&latest.data))
            };
            match news {
                Some(data) => http::event(&mut timed(), "data", &data)?,
                None => http::heartbeat(&mut timed())?,
            }
        }
        Ok(())
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
            ("GET / HTTP/1.0", "403"),
            ("GET / HTTP/1.1", "400"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", "400"),
            ("GET / HTTP/1.1\r\nHost: evil.example\r\nHost: localhost", "400"),
            ("GET /secret HTTP/1.1\r\nHost: localhost:1", "404"),
            ("POST / HTTP/1.1\r\nHost: [::1]:80", "405"),
            ("nonsense", "400"),
        ] {
            let answer = text(address, head);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
        }
    }

    /// A server of a study that has not begun.
    fn serve(patience: Duration) -> (tempfile::TempDir, SocketAddr) {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = Watch::bind(folder.path(), "127.0.0.1:0".parse().unwrap(), false).unwrap();
        watch.patience = patience;
        let address = watch.address().unwrap();
        std::thread::spawn(move || watch.serve());
        (folder, address)
    }

    #[test]
    fn slow_clients_shut_nobody_out() {
        let (_folder, address) = serve(PATIENCE);
        let head = "GET /events HTTP/1.1\r\nHost: localhost";
        let mut lines = BufReader::new(get(address, head)).lines();
        assert_eq!(event(&mut lines)["state"]["state"], "waiting");
        let half = || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: loc").unwrap();
            stream
        };
        let mut slow: Vec<TcpStream> = (0..CONNECTIONS).map(|_| half()).collect();
        let page = text(address, "GET / HTTP/1.1\r\nHost: localhost");
        assert!(page.starts_with("HTTP/1.1 200 OK"), "{page:?}");
        // Whoever was slow for the longest had to go; who follows the study stays.
        assert!(matches!(slow[0].read(&mut [0; 9]), Ok(0) | Err(_)));
        assert!(lines.find_map(|line| line.unwrap().strip_prefix(": still").map(drop)).is_some());
        slow[CONNECTIONS - 1].write_all(b"alhost\r\n\r\n").unwrap();
        let mut late = String::new();
        slow[CONNECTIONS - 1].read_to_string(&mut late).unwrap();
        assert!(late.starts_with("HTTP/1.1 200 OK"), "{late:?}");
        // Nor can those who only follow.
        let following: Vec<TcpStream> = (0..2 * CONNECTIONS).map(|_| get(address, head)).collect();
        assert!(text(address, "GET / HTTP/1.1\r\nHost: localhost").starts_with("HTTP/1.1 200 OK"));
        drop(following);
    }

    #[test]
    fn a_connection_has_a_limit_however_often_it_sends_something() {
        let (_folder, address) = serve(Duration::from_millis(300));
        let mut slow = TcpStream::connect(address).unwrap();
        slow.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let is_over = |slow: &mut TcpStream| match slow.read(&mut [0; 99]) {
            Ok(0) => true,
            Ok(_) => panic!("an answer"),
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
        let bytes = (0..4000).take_while(|_| slow.write_all(b"x").is_ok() && !is_over(&mut slow));
        assert!(bytes.count() < 4000);
        assert!(text(address, "GET / HTTP/1.1\r\nHost: localhost").starts_with("HTTP/1.1 200 OK"));
    }
}
