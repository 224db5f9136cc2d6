//! Downloading models from a test server with the layout, redirects and headers of the real hub.
#![allow(clippy::unwrap_used)]

mod common;

use common::{text, words, write_llama, write_roberta};
use racecars_lm::hub::{Fetched, Hub, HubModel};
use racecars_lm::wire::{EvaluateOptions, ServiceLimits, Upload};
use racecars_lm::{BlackBox, Error, ErrorKind, Loss, Model, Service};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const TOKEN: &str = "hf_secret";

/// The behaviour of a test hub.
#[derive(Default)]
struct Nature {
    /// The files of `owner/name`.
    files: HashMap<String, Vec<u8>>,
    /// The number of answers with a large file that end half way.
    broken: usize,
    /// Whether requests for a part are answered with the whole file.
    ignores_ranges: bool,
    /// Extra bytes of large files that the hub does not announce.
    change: Option<fn(&mut Vec<u8>)>,
    /// Whether a token is needed.
    is_private: bool,
    /// The status of every answer, if set.
    refuses: Option<u16>,
}

/// A request: the server, method, path, range, and whether the token was shown.
type Seen = (&'static str, String, String, Option<u64>, bool);

/// A hub, and the store of its large files at another address.
struct TestHub {
    url: String,
    nature: Arc<Mutex<Nature>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl TestHub {
    fn new(nature: Nature) -> Self {
        let [hub, store] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let url = format!("http://{}", hub.local_addr().unwrap());
        let store_url = format!("http://{}", store.local_addr().unwrap());
        let nature = Arc::new(Mutex::new(nature));
        let seen = Arc::new(Mutex::new(Vec::new()));
        for (name, listener) in [("hub", hub), ("store", store)] {
            let (nature, seen, store_url) = (nature.clone(), seen.clone(), store_url.clone());
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    serve(stream.unwrap(), name, &store_url, &nature, &seen);
                }
            });
        }
        TestHub { url, nature, seen }
    }

    fn fetch(&self, name: &str, folder: &Path) -> Result<Vec<Fetched>, Error> {
        self.fetch_as(None, name, folder)
    }

    fn fetch_as(
        &self,
        token: Option<&str>,
        name: &str,
        folder: &Path,
    ) -> Result<Vec<Fetched>, Error> {
        let hub = Hub::new(&self.url, token.map(String::from)).unwrap();
        hub.fetch(&name.parse().unwrap(), folder, |done, total, file| {
            assert!(done <= total && !file.is_empty(), "{done} of {total}");
        })
    }

    fn set(&self, change: impl FnOnce(&mut Nature)) {
        change(&mut self.nature.lock().unwrap());
    }

    /// The first byte of each request to the store.
    fn downloads(&self) -> Vec<Option<u64>> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.0 == "store").map(|seen| seen.3).collect()
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn serve(
    mut stream: TcpStream,
    server: &'static str,
    store: &str,
    nature: &Mutex<Nature>,
    seen: &Mutex<Vec<Seen>>,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let mut words = first.split(' ').map(String::from);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let (mut range, mut token) = (None, None);
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        match &*name.to_ascii_lowercase() {
            "range" => {
                range = value.trim_start_matches("bytes=").trim_end_matches('-').parse().ok()
            }
            "authorization" => token = Some(value.to_string()),
            _ => {}
        }
    }
    let knows_us = token.as_deref() == Some(&*format!("Bearer {TOKEN}"));
    seen.lock().unwrap().push((server, method.clone(), path.clone(), range, token.is_some()));
    let mut nature = nature.lock().unwrap();
    let mut answer = |status: u16, headers: &str, body: &[u8], sent: usize| {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        let body = if method == "HEAD" { &[][..] } else { &body[..sent] };
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
    };
    if let Some(status) = nature.refuses {
        return answer(status, "x-error-message: no\r\n", b"", 0);
    }
    if server == "store" {
        let mut body = nature.files[path.trim_start_matches("/")].clone();
        nature.change.iter().for_each(|change| change(&mut body));
        let range = range.filter(|_| !nature.ignores_ranges);
        if range.is_some_and(|from| from >= body.len() as u64) {
            return answer(416, "", b"", 0);
        }
        let from = range.unwrap_or(0) as usize;
        let sent = if nature.broken > 0 { (body.len() - from) / 2 } else { body.len() - from };
        nature.broken = nature.broken.saturating_sub(1);
        let headers = match range {
            Some(from) => {
                format!("Content-Range: bytes {from}-{0}/{1}\r\n", body.len() - 1, body.len())
            }
            None => String::new(),
        };
        // Stores have their own entity tags, which are not the SHA-256 of the file.
        let headers = format!("{headers}ETag: \"{}\"\r\n", "f".repeat(64));
        return answer(if range.is_some() { 206 } else { 200 }, &headers, &body[from..], sent);
    }
    if nature.is_private && !knows_us {
        return answer(401, "", b"", 0);
    }
    if let Some(file) = path.strip_prefix("/cached/") {
        let body = &nature.files[file];
        return answer(200, &format!("ETag: \"{}\"\r\n", &sha256(body)[..40]), body, body.len());
    }
    let file = ["/owner/name/resolve/main/".to_string(), format!("/owner/name/resolve/{COMMIT}/")]
        .iter()
        .find_map(|start| path.strip_prefix(&**start))
        .filter(|file| nature.files.contains_key(*file));
    let Some(file) = file else {
        return answer(404, "", b"", 0);
    };
    let (is_large, body) = (!file.ends_with(".json"), &nature.files[file]);
    let headers = match is_large {
        true => format!(
            "x-linked-etag: \"{}\"\r\nx-linked-size: {}\r\nLocation: {store}/{file}\r\n",
            sha256(body),
            body.len()
        ),
        false => format!("Location: /cached/{file}\r\n"),
    };
    let body = b"see there";
    answer(
        if is_large { 302 } else { 307 },
        &format!("X-Repo-Commit: {COMMIT}\r\n{headers}"),
        body,
        9,
    );
}

/// A hub with a small RoBERTa and a GGUF file.
fn hub() -> TestHub {
    let folder = tempfile::tempdir().unwrap();
    let (roberta, llama) = (write_roberta(folder.path()), write_llama(folder.path()));
    let mut files = HashMap::from([("small.gguf".to_string(), std::fs::read(llama).unwrap())]);
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        files.insert(name.to_string(), std::fs::read(roberta.join(name)).unwrap());
    }
    TestHub::new(Nature { files, ..Nature::default() })
}

/// The files in a folder and the folders within it.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_in(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn a_fetched_model_can_be_used() {
    let (hub, folder) = (hub(), tempfile::tempdir().unwrap());
    let (folder, name) = (folder.path(), "owner/name");
    let model: HubModel = name.parse().unwrap();
    assert!(!model.is_in(folder));
    let fetched = hub.fetch(name, folder).unwrap();
    let hashed: Vec<_> = fetched.iter().map(|file| (&*file.file, file.is_hashed)).collect();
    let all = [("config.json", false), ("tokenizer.json", false), ("model.safetensors", true)];
    assert_eq!(hashed, all);
    assert!(fetched.iter().all(|file| !file.was_there && file.bytes > 100));
    assert!(model.is_in(folder));
    assert_eq!(files_in(folder).len(), 3);
    // All of the commit that the first file was of.
    let seen = hub.seen.lock().unwrap().clone();
    let moved = |seen: &&Seen| seen.2.contains("/resolve/main/");
    assert_eq!(seen.iter().filter(moved).count(), 1, "{seen:?}");

    let service = Service::new(Model::open(&model.path(folder)).unwrap(), ServiceLimits::default());
    assert_eq!(service.describe().unwrap().info.name, "name");
    let upload = Upload {
        texts: vec![text("a fine film", " it was"), text("no", " it was")],
        words: words(),
        labels: vec![1, 0],
        base: String::new(),
    };
    let batch = service.upload(&upload).unwrap().batch;
    let wanted = EvaluateOptions { loss: Loss::CrossEntropy, logits: false };
    let answers = service.evaluate(&batch, &[common::prompt(3, 1)], wanted).unwrap();
    assert!(answers[0].loss.is_some_and(f64::is_finite), "{answers:?}");

    // A file with the right hash is not fetched again.
    let again = hub.fetch(name, folder).unwrap();
    assert_eq!(again.iter().map(|file| file.was_there).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(hub.downloads(), [None]);

    hub.fetch("owner/name/small.gguf", folder).unwrap();
    let file = "owner/name/small.gguf".parse::<HubModel>().unwrap();
    assert!(file.is_in(folder) && Model::open(&file.path(folder)).is_ok());
}

#[test]
fn weights_in_several_files_are_all_fetched() {
    let (hub, folder) = (hub(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    hub.set(|nature| {
        let weights = nature.files.remove("model.safetensors").unwrap();
        let read = safetensors::SafeTensors::deserialize(&weights).unwrap();
        let mut map = serde_json::Map::new();
        for (i, half) in [0, 1].into_iter().zip(["one.safetensors", "two.safetensors"]) {
            let tensors: Vec<_> = read.iter().skip(i).step_by(2).collect();
            map.extend(tensors.iter().map(|(name, _)| (name.to_string(), half.into())));
            nature.files.insert(half.into(), safetensors::serialize(tensors, None).unwrap());
        }
        let index = serde_json::json!({"weight_map": map}).to_string();
        nature.files.insert("model.safetensors.index.json".into(), index.into());
        // Not a model, but downloaded as one.
        for name in ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf"] {
            nature.files.insert(name.into(), vec![1; 1000]);
        }
    });
    for (name, count) in [("owner/name", 5), ("owner/name/big-00001-of-00002.gguf", 2)] {
        let model: HubModel = name.parse().unwrap();
        assert!(!model.is_in(folder));
        let before = files_in(folder).len();
        assert_eq!(hub.fetch(name, folder).unwrap().len(), count);
        assert_eq!(files_in(folder).len(), before + count);
        assert!(model.is_in(folder));
    }
    assert!(Model::open(&folder.join("owner/name")).is_ok());
    std::fs::remove_file(folder.join("owner/name/two.safetensors")).unwrap();
    assert!(!"owner/name".parse::<HubModel>().unwrap().is_in(folder));
}

#[test]
fn a_broken_download_goes_on_where_it_ended() {
    let (hub, folder) = (hub(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let right = hub.nature.lock().unwrap().files["small.gguf"].clone();
    let path = folder.join("owner/name/small.gguf");
    hub.set(|nature| nature.broken = 2);
    hub.fetch("owner/name/small.gguf", folder).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), right);
    let (half, whole) = (right.len() as u64 / 2, right.len() as u64);
    assert_eq!(hub.downloads(), [None, Some(half), Some(half + (whole - half) / 2)]);
    assert_eq!(files_in(folder).len(), 1);

    // Also if another process was interrupted, and if the part was complete.
    for cut in [1000, right.len()] {
        std::fs::remove_file(&path).unwrap();
        let part = folder.join(format!("owner/name/small.gguf.{}.part", &sha256(&right)[..16]));
        std::fs::write(&part, &right[..cut]).unwrap();
        hub.fetch("owner/name/small.gguf", folder).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), right);
        assert!(!part.exists());
    }
    assert_eq!(hub.downloads()[3..], [Some(1000)]);

    // A part of another version is not resumed.
    hub.set(|nature| nature.files.get_mut("small.gguf").unwrap().push(1));
    std::fs::write(folder.join("owner/name/small.gguf.old.part"), "old").unwrap();
    hub.fetch("owner/name/small.gguf", folder).unwrap();
    assert_eq!(hub.downloads()[4..], [None]);
    assert_eq!(std::fs::read(&path).unwrap().len(), right.len() + 1);

    // If the store does not serve ranges, the download starts over.
    hub.set(|nature| {
        nature.files.get_mut("small.gguf").unwrap().push(1);
        (nature.broken, nature.ignores_ranges) = (1, true);
    });
    hub.fetch("owner/name/small.gguf", folder).unwrap();
    assert_eq!(std::fs::read(&path).unwrap().len(), right.len() + 2);
}

#[test]
fn what_is_not_as_the_hub_says_is_not_used() {
    for (change, kind, message) in [
        ((|body| body[9] ^= 1) as fn(&mut Vec<u8>), ErrorKind::Model, "it is not used"),
        (|body| body.push(1), ErrorKind::Model, "as announced by the hub"),
        (|body| body.truncate(500), ErrorKind::Model, "has 500 bytes, not "),
    ] {
        let (hub, folder) = (hub(), tempfile::tempdir().unwrap());
        hub.set(|nature| nature.change = Some(change));
        let error = hub.fetch("owner/name", folder.path()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(message), "{error}");
        assert!(!"owner/name".parse::<HubModel>().unwrap().is_in(folder.path()));
        // And the same command succeeds once the store is correct.
        hub.set(|nature| nature.change = None);
        hub.fetch("owner/name", folder.path()).unwrap();
    }
}

#[test]
fn the_token_is_shown_to_the_hub_only() {
    let (hub, folder) = (hub(), tempfile::tempdir().unwrap());
    hub.set(|nature| nature.is_private = true);
    let error = hub.fetch("owner/name", folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    hub.fetch_as(Some(&format!("{TOKEN}\n")), "owner/name", folder.path()).unwrap();
    let seen = hub.seen.lock().unwrap().clone();
    assert!(seen.iter().any(|seen| seen.0 == "store"));
    assert!(seen[1..].iter().all(|seen| seen.4 == (seen.0 == "hub")), "{seen:?}");
}

#[test]
fn refusals_say_what_to_do_and_leave_nothing() {
    let (hub, folder) = (hub(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    for name in ["owner/other", "owner/name@v2", "owner/name/other.gguf"] {
        let error = hub.fetch(name, folder).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().contains("no such model, revision or file"), "{error}");
    }
    hub.set(|nature| nature.refuses = Some(403));
    let error = hub.fetch("owner/name", folder).unwrap_err().to_string();
    assert!(error.contains("agree to terms") && error.contains("(403 Forbidden: no)"), "{error}");
    hub.set(|nature| nature.refuses = Some(418));
    assert_eq!(hub.fetch("owner/name", folder).unwrap_err().kind(), ErrorKind::Network);
    // Redirects to nowhere.
    hub.set(|nature| nature.refuses = Some(302));
    let error = hub.fetch("owner/name", folder).unwrap_err();
    assert!(error.to_string().contains("to nowhere"), "{error}");
    assert_eq!(files_in(folder), Vec::<PathBuf>::new());

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = Hub::new(&format!("http://{free}"), None).unwrap();
    let error =
        unreachable.fetch(&"owner/name".parse().unwrap(), folder, |_, _, _| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    assert!(error.to_string().contains("without a network"), "{error}");
    // TLS is spoken: its first byte says that a handshake begins.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tls = Hub::new(&format!("https://{}", listener.local_addr().unwrap()), None).unwrap();
    let first = std::thread::spawn(move || {
        let mut first = [0];
        listener.accept().unwrap().0.read_exact(&mut first).unwrap();
        first[0]
    });
    tls.fetch(&"owner/name".parse().unwrap(), folder, |_, _, _| {}).unwrap_err();
    assert_eq!(first.join().unwrap(), 0x16);
}

#[test]
fn a_model_that_cannot_be_used_is_known_before_its_weights_are_there() {
    let (hub, folder) = (hub(), tempfile::tempdir().unwrap());
    hub.set(|nature| {
        nature.files.insert("config.json".into(), br#"{"model_type": "bert"}"#.to_vec());
    });
    let error = hub.fetch("owner/name", folder.path()).unwrap_err();
    assert!(error.to_string().contains("model_type `bert` is not supported"), "{error}");
    assert_eq!(hub.downloads(), []);
}

#[test]
fn a_full_disk_is_named_and_two_do_not_write_at_once() {
    let (hub, folder) = (hub(), tempfile::tempdir().unwrap());
    let right = hub.nature.lock().unwrap().files["small.gguf"].clone();
    let folder = folder.path().join("owner/name");
    std::fs::create_dir_all(&folder).unwrap();
    let part = folder.join(format!("small.gguf.{}.part", &sha256(&right)[..16]));
    let fetch = || hub.fetch("owner/name/small.gguf", folder.ancestors().nth(2).unwrap());
    std::os::unix::fs::symlink("/dev/full", &part).unwrap();
    let error = fetch().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::System);
    assert!(error.to_string().contains("the disk is full, "), "{error}");
    std::fs::remove_file(&part).unwrap();

    let other = std::fs::File::create(&part).unwrap();
    other.try_lock().unwrap();
    let error = fetch().unwrap_err();
    assert!(error.to_string().contains("by another process"), "{error}");
    drop(other);
    fetch().unwrap();
}
