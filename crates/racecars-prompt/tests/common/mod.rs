//! An endpoint in this process that answers, fails, stalls, limits and lies as it is told.

#![allow(dead_code, clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the endpoint does with a request.
pub(crate) enum Reply {
    /// 200 with this body.
    Body(String),
    /// A status with headers and a body.
    Status(u16, &'static str, String),
    /// Half of this body, and the connection ends.
    Cut(String),
    /// Nothing for so long.
    Stall(Duration),
    /// The connection ends without an answer.
    Close,
}

#[derive(Default)]
pub(crate) struct Seen {
    /// The bodies of all requests.
    pub(crate) requests: Vec<String>,
    /// The bodies of those that were answered by 200 and a whole body.
    pub(crate) answered: Vec<String>,
    /// The headers `Authorization`.
    pub(crate) keys: Vec<String>,
    /// The most requests under way at once.
    pub(crate) most_at_once: usize,
    under_way: usize,
}

/// An endpoint.
pub(crate) struct Fake {
    pub(crate) url: String,
    pub(crate) seen: Arc<Mutex<Seen>>,
}

impl Fake {
    /// An endpoint that replies as `behave` says, given the number of the request from 0 and its body.
    pub(crate) fn start(behave: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (seen, behave) = (Arc::<Mutex<Seen>>::default(), Arc::new(behave));
        let shared = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, behave) = (shared.clone(), behave.clone());
                std::thread::spawn(move || serve(stream, &seen, &*behave));
            }
        });
        Fake { url, seen }
    }

    pub(crate) fn answered(&self) -> Vec<String> {
        self.seen.lock().unwrap().answered.clone()
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().unwrap().requests.len()
    }
}

fn serve(
    stream: TcpStream,
    seen: &Mutex<Seen>,
    behave: &(dyn Fn(usize, &Value) -> Reply + Send + Sync),
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut length, mut key, mut first) = (0, None, true);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if std::mem::take(&mut first) {
                assert!(line.starts_with("POST /v1/"), "{line}");
            }
            let (name, value) = line.split_once(':').unwrap_or((line.trim(), ""));
            match name.to_lowercase().as_str() {
                "" => break,
                "content-length" => length = value.trim().parse().unwrap(),
                "authorization" => key = Some(value.trim().to_string()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = String::from_utf8(body).unwrap();
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.keys.extend(key);
            seen.requests.push(body.clone());
            seen.under_way += 1;
            seen.most_at_once = seen.most_at_once.max(seen.under_way);
            seen.requests.len() - 1
        };
        let reply = behave(number, &serde_json::from_str(&body).unwrap());
        seen.lock().unwrap().under_way -= 1;
        let head = |status: u16, headers: &str, length: usize| {
            format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}\r\n")
        };
        let written = match reply {
            Reply::Body(text) => {
                seen.lock().unwrap().answered.push(body);
                stream.write_all((head(200, "", text.len()) + &text).as_bytes())
            }
            Reply::Status(status, headers, text) => {
                stream.write_all((head(status, headers, text.len()) + &text).as_bytes())
            }
            Reply::Cut(text) => {
                let half = &text[..text.len() / 2];
                let _ = stream.write_all((head(200, "", text.len()) + half).as_bytes());
                return;
            }
            Reply::Stall(time) => {
                std::thread::sleep(time);
                return;
            }
            Reply::Close => return,
        };
        if written.is_err() {
            return;
        }
    }
}

/// The text of a request: its prompt, or all messages.
pub(crate) fn prompt_of(body: &Value) -> String {
    match &body["messages"] {
        Value::Array(messages) => {
            let texts = messages.iter().map(|message| message["content"].as_str().unwrap());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => body["prompt"].as_str().unwrap().to_string(),
    }
}

/// A "model" that is right about `word<i>` if `i` is below what its instruction, examples and temperature are worth.
pub(crate) fn knows(body: &Value) -> bool {
    let prompt = prompt_of(body);
    let text = prompt.rsplit("Text: ").next().unwrap();
    let number: usize =
        text.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
    let quality = if prompt.contains("carefully") { 75 } else { 35 }
        + 5 * prompt.matches("Label:").count().saturating_sub(1)
        - (20.0 * body["temperature"].as_f64().unwrap_or(0.0)) as usize;
    number * 37 % 100 < quality
}

/// The answer of that model: the label of a text with an even number is yes.
pub(crate) fn answer(body: &Value) -> String {
    let prompt = prompt_of(body);
    let text = prompt.rsplit("Text: ").next().unwrap();
    let number: usize =
        text.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
    let word = if number.is_multiple_of(2) == knows(body) { "yes" } else { "no" };
    json!({
        "choices": [{ "message": { "content": word }, "text": format!(" {word}"), "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 20, "completion_tokens": 1 },
    })
    .to_string()
}

/// Writes tables and a file of settings into `folder`; `more` is added to the file.
pub(crate) fn write_task(folder: &Path, url: &str, calls: u64, more: &str) -> std::path::PathBuf {
    let rows = |range: std::ops::Range<usize>| -> String {
        let row = |i| format!("word{i}\t{}\n", if i % 2 == 0 { "yes" } else { "no" });
        std::iter::once("text\tlabel\n".to_string()).chain(range.map(row)).collect()
    };
    std::fs::write(folder.join("train.tsv"), rows(0..24)).unwrap();
    std::fs::write(folder.join("dev.tsv"), rows(24..40)).unwrap();
    std::fs::write(folder.join("test.tsv"), rows(40..80)).unwrap();
    std::fs::write(folder.join("pool.tsv"), rows(80..90)).unwrap();
    let settings = format!(
        r#"
[endpoint]
url = "{url}"
model = "fake"
timeout = "5s"
{}
[prompt]
template = "{{instruction}}\n{{examples}}Text: {{text}}"
example = "Text: {{text}}\nLabel: {{label}}\n"
[choices]
instruction = ["Say yes or no.", "Answer.", "Think carefully.", "Guess.", "What is it?"]
[examples]
file = "pool.tsv"
count = "0..3"
[data]
train = "train.tsv"
dev = "dev.tsv"
test = "test.tsv"
[sampling]
temperature = "0:1"
[search]
finalists = 3
[limits]
calls = {calls}
"#,
        more
    );
    let path = folder.join("task.toml");
    std::fs::write(&path, settings).unwrap();
    path
}
