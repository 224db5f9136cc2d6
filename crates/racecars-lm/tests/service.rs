//! The service over HTTP: its answers, its refusals, and that no request crashes it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{HIDDEN, llama, prompt, text, words};
use racecars::random::Random;
use racecars_lm::wire::{EvaluateOptions, Refusal, ServiceLimits, Upload};
use racecars_lm::{BlackBox, Client, ErrorKind, Loss, Server, ServerSettings, Service};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn limits() -> ServiceLimits {
    ServiceLimits {
        prompts: 8,
        prompt_tokens: 16,
        texts: 32,
        tokens: 2000,
        batches: 4,
        request_bytes: 1 << 16,
        ..ServiceLimits::default()
    }
}

fn start(settings: ServerSettings) -> (Server, Arc<Service>) {
    let service = Arc::new(Service::new(llama(), limits()));
    let server = Server::start(Arc::clone(&service), ([127, 0, 0, 1], 0).into(), settings).unwrap();
    (server, service)
}

fn url(server: &Server) -> String {
    format!("http://{}", server.address())
}

fn upload() -> Upload {
    Upload {
        texts: vec![text("a fine film", " it was"), text("no", " it was")],
        words: words(),
        labels: vec![1, 0],
        base: String::new(),
    }
}

/// Sends bytes and returns the status and the body of the answer, if there is one.
fn raw(server: &Server, request: &[u8]) -> Option<(u16, String)> {
    exchange(server, request, false)
}

/// Like [`raw`]; `is_all` tells the server that nothing else will come.
fn exchange(server: &Server, request: &[u8], is_all: bool) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may answer and close before all is sent.
    let _ = stream.write_all(request);
    if is_all {
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Some((status, body.to_string()))
}

/// Waits until `is_so`. It ends the test after a minute, which is only reached if it never will be.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not happen");
}

fn request(method: &str, path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn over_the_wire_it_answers_as_in_this_process() {
    let (server, service) = start(ServerSettings::default());
    let client = Client::new(&url(&server), None).unwrap();
    assert_eq!(client.describe().unwrap(), service.describe().unwrap());
    let uploaded = client.upload(&upload()).unwrap();
    assert_eq!((uploaded.texts, uploaded.tokens), (2, 11 + 7 + 2 + 7));
    let prompts = [prompt(3, 1), prompt(3, 2)];
    for loss in [Loss::CrossEntropy, Loss::Hinge] {
        let wanted = EvaluateOptions { loss, logits: true };
        let far = client.evaluate(&uploaded.batch, &prompts, wanted).unwrap();
        assert_eq!(far, service.evaluate(&uploaded.batch, &prompts, wanted).unwrap());
        assert!(far[0].loss.unwrap() > 0.0 && far[0].logits.as_ref().unwrap().len() == 2);
        // The JSON form says the same.
        let body =
            serde_json::json!({"prompts": prompts, "loss": loss, "logits": true}).to_string();
        let path = format!("/v1/batches/{}/evaluate", uploaded.batch);
        let (status, body) =
            raw(&server, &request("POST", &path, "application/json", body.as_bytes())).unwrap();
        assert_eq!(status, 200);
        let near: racecars_lm::wire::EvaluateResponse = serde_json::from_str(&body).unwrap();
        assert_eq!(near.results, far);
    }
    assert_eq!(service.held().0, 1);
    client.remove(&uploaded.batch).unwrap();
    assert_eq!(service.held(), (0, 0));
    let gone = client.evaluate(&uploaded.batch, &prompts, EvaluateOptions::default()).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Unknown);
    let (status, metrics) = raw(&server, &request("GET", "/metrics", "", b"")).unwrap();
    assert!(status == 200 && metrics.contains("racecars_lm_prompts_total 12"), "{metrics}");
    assert_eq!(raw(&server, &request("GET", "/health", "", b"")).unwrap().0, 200);
}

#[test]
fn every_metric_has_a_type_and_a_help_line_before_its_values() {
    let (server, service) = start(ServerSettings::default());
    let client = Client::new(&url(&server), None).unwrap();
    let batch = client.upload(&upload()).unwrap().batch;
    client.evaluate(&batch, &[prompt(1, 1)], EvaluateOptions::default()).unwrap();
    let (_, metrics) = raw(&server, &request("GET", "/metrics", "", b"")).unwrap();
    let mut types = std::collections::HashMap::new();
    let (mut last_help, mut values) = ("", 0);
    for line in metrics.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["#", "HELP", name, ..] => last_help = name,
            ["#", "TYPE", name, kind] => {
                assert_eq!(name, last_help, "{metrics}");
                assert!(types.insert(name, kind).is_none(), "{name} has two types");
            }
            [name, value] => {
                let name = name.split('{').next().unwrap();
                let kind = types.get(name).copied().unwrap_or_else(|| {
                    let family = ["_bucket", "_sum", "_count"].iter();
                    let family = family.filter_map(|end| name.strip_suffix(end)).next();
                    types[family.unwrap_or_else(|| panic!("{name} has no type"))]
                });
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(value.parse::<f64>().is_ok(), "{line}");
                values += 1;
            }
            _ => panic!("{line:?} is no line of metrics"),
        }
    }
    assert!(values > 40, "{metrics}");
    // An upload and an evaluation have waited for their turn; they and this request's predecessors answered.
    assert!(metrics.contains("racecars_lm_queue_seconds_count 2\n"), "{metrics}");
    assert!(metrics.contains("racecars_lm_queue_seconds_bucket{le=\"+Inf\"} 2\n"), "{metrics}");
    assert!(metrics.contains("racecars_lm_request_seconds_count 2\n"), "{metrics}");
    drop(service);
}

#[test]
fn batches_of_clients_that_are_gone_are_let_go() {
    let limits = ServiceLimits { keep_seconds: 0, ..limits() };
    let service = Arc::new(Service::new(llama(), limits));
    let address = ([127, 0, 0, 1], 0).into();
    let server = Server::start(Arc::clone(&service), address, ServerSettings::default()).unwrap();
    let client = Client::new(&url(&server), None).unwrap();
    let batch = client.upload(&upload()).unwrap().batch;
    drop(client);
    wait_until("dropping the batch", || service.held() == (0, 0));
    let (_, metrics) = raw(&server, &request("GET", "/metrics", "", b"")).unwrap();
    assert!(metrics.contains("racecars_lm_dropped_total 1\n"), "{metrics}");
    let error = service.evaluate(&batch, &[prompt(1, 1)], EvaluateOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
}

#[test]
fn a_key_is_asked_for() {
    let key = Some("secret".to_string());
    let (server, _) = start(ServerSettings { key: key.clone(), ..ServerSettings::default() });
    assert!(Client::new(&url(&server), key).unwrap().describe().is_ok());
    for wrong in [None, Some("secre".to_string()), Some("secret2".to_string())] {
        let error = Client::new(&url(&server), wrong).unwrap().describe().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
    }
    assert_eq!(raw(&server, &request("GET", "/health", "", b"")).unwrap().0, 200);
    assert_eq!(raw(&server, &request("GET", "/metrics", "", b"")).unwrap().0, 401);
    for (given, status) in [
        ("Bearer secret", 200),
        ("bearer secret", 200),
        ("BEARER  secret", 200),
        ("Basic secret", 401),
        ("Bearersecret", 401),
        ("secret", 401),
        ("Bearer ", 401),
    ] {
        let head = format!(
            "GET /v1/model HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {given}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{given}: {answer}");
        let challenge = answer.to_lowercase().contains("\r\nwww-authenticate: bearer");
        assert_eq!(challenge, status == 401, "{given}: {answer}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let (server, service) = start(ServerSettings::default());
    let batch = service.upload(&upload()).unwrap().batch;
    let evaluate = format!("/v1/batches/{batch}/evaluate");
    let binary = format!("{evaluate}?prompts=1");
    let nan = [f32::NAN; HIDDEN].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let (json, bytes) = ("application/json", "application/octet-stream");
    let many =
        serde_json::json!({"texts": vec![text("x", "y"); 33], "words": ["a", "b"]}).to_string();
    let labels = r#"{"texts":[{"before":"x"}],"words":["a","b"],"labels":[2]}"#;
    let great = [vec![0.0; 5], vec![3e38; HIDDEN - 5]].concat();
    let great = serde_json::json!({ "prompts": [great] });
    let great = great.to_string();
    let long = vec![0; 4 * HIDDEN * 17];
    let large = vec![b' '; (1 << 16) + 1];
    #[allow(clippy::type_complexity)]
    let cases: &[(&str, &str, &str, &[u8], u16, &str)] = &[
        ("GET", "/", "", b"", 404, "there is no GET /"),
        ("PUT", "/v1/model", "", b"", 405, "PUT is not allowed"),
        ("POST", "/v1/batches", json, b"{", 400, "EOF"),
        ("POST", "/v1/batches", json, b"{\"texts\":[],\"words\":[\"a\",\"b\"]}", 422, "no texts"),
        ("POST", "/v1/batches", json, b"{\"text\":[]}", 400, "unknown field `text`"),
        ("POST", "/v1/batches", json, many.as_bytes(), 422, "33 texts; at most 32"),
        ("POST", "/v1/batches", json, labels.as_bytes(), 422, "label 2 of text 0"),
        ("POST", "/v1/batches", json, &large, 413, "length limit exceeded"),
        ("POST", &evaluate, "text/plain", b"", 415, "application/octet-stream"),
        ("POST", &evaluate, json, b"{\"prompts\":[]}", 422, "no prompts"),
        ("POST", &evaluate, json, b"{\"prompts\":[[1,2]]}", 422, "a multiple of 32"),
        ("POST", &evaluate, json, b"{\"prompts\":[[null]]}", 400, "invalid type: null"),
        ("POST", &evaluate, json, b"{\"prompts\":[[]],\"loss\":\"x\"}", 400, "unknown variant `x`"),
        ("POST", &evaluate, bytes, b"", 400, "missing field `prompts`"),
        ("POST", &binary, bytes, b"123", 400, "a body of 3 bytes"),
        ("POST", &binary, bytes, &nan, 422, "is NaN"),
        (
            "POST",
            &evaluate,
            json,
            great.as_bytes(),
            422,
            "number 5 of prompt 0 is 3e38; at most ±1e15",
        ),
        ("POST", &binary, bytes, &long, 422, "17 tokens of a prompt; at most 16"),
        ("POST", "/v1/batches/xyz/evaluate", json, b"{\"prompts\":[[]]}", 404, "no batch \"xyz\""),
        ("DELETE", "/v1/batches/%ff", "", b"", 400, "UTF-8"),
        ("DELETE", "/v1/batches/xyz", "", b"", 404, "no batch \"xyz\""),
    ];
    for (method, path, kind, body, status, message) in cases {
        let (found, answer) = raw(&server, &request(method, path, kind, body)).unwrap();
        assert_eq!(found, *status, "{method} {path}: {answer}");
        let refusal: Refusal = serde_json::from_str(&answer).unwrap();
        assert!(refusal.error.message.contains(message), "{method} {path}: {answer}");
    }
    // As many batches as are allowed, and one more.
    for _ in 0..3 {
        service.upload(&upload()).unwrap();
    }
    let error = service.upload(&upload()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("at most 4 batches"), "{error}");
}

/// Thousands of invalid requests: each gets a 4xx with a reason, and the server is unchanged.
#[test]
fn malformed_requests_by_the_thousand_get_a_reason() {
    let (server, service) = start(ServerSettings::default());
    let batch = service.upload(&upload()).unwrap().batch;
    let good_upload = serde_json::to_vec(&upload()).unwrap();
    let good_prompts = serde_json::json!({"prompts": [prompt(1, 1)], "logits": true}).to_string();
    let evaluate = format!("/v1/batches/{batch}/evaluate");
    let mut random = Random::new(5);
    let mut refused = 0;
    for i in 0..4000 {
        let (path, good): (&str, &[u8]) = match i % 3 {
            0 => ("/v1/batches", &good_upload),
            1 => (&evaluate, good_prompts.as_bytes()),
            _ => (&evaluate, b""),
        };
        let mut body = good.to_vec();
        let mut kind = "application/json";
        let mut path = path.to_string();
        let mut method = "POST";
        match random.index(6) {
            // A few bytes changed, cut off, or put in.
            0 => (0..1 + random.index(4)).for_each(|_| {
                if !body.is_empty() {
                    let at = random.index(body.len());
                    body[at] = random.bits() as u8;
                }
            }),
            1 => body.truncate(random.index(body.len() + 1)),
            2 => {
                let at = random.index(body.len() + 1);
                body.splice(
                    at..at,
                    (0..random.index(9)).map(|_| b"{}[]\",:-1e9"[random.index(11)]),
                );
            }
            // Bytes of any kind, in either form.
            3 => {
                body = (0..random.index(500)).map(|_| random.bits() as u8).collect();
                kind = ["application/octet-stream", "application/json"][random.index(2)];
                let count = ["0", "1", "2", "-1", "x", "", "99999999999999999999"][random.index(7)];
                path = format!("{path}?prompts={count}");
            }
            4 => {
                method = ["GET", "PUT", "DELETE", "HEAD", "PATCH", "NONSENSE"][random.index(6)];
            }
            _ => {
                let odd = ["/%00", "//", "/../..", "/%e2%82", "/x", "?a=b&&=", "/evaluate"];
                path += odd[random.index(odd.len())];
            }
        }
        let (status, answer) = raw(&server, &request(method, &path, kind, &body)).unwrap();
        match status {
            // Some changes are harmless.
            200 => service_is_tidy(&service, &batch),
            400..500 if method == "HEAD" => refused += 1,
            400..500 => {
                let refusal: Refusal = serde_json::from_str(&answer).unwrap();
                assert!(refusal.error.message.len() > 5, "{answer}");
                refused += 1;
            }
            _ => panic!(
                "{method} {path} {kind} {}: {status} {answer}",
                String::from_utf8_lossy(&body)
            ),
        }
    }
    assert!(refused > 3000, "{refused}");
    // Not even HTTP: answered with a 4xx or not at all.
    for _ in 0..500 {
        let noise: Vec<u8> = (0..random.index(300)).map(|_| random.bits() as u8).collect();
        assert!(
            exchange(&server, &noise, true).is_none_or(|(status, _)| (400..500).contains(&status))
        );
    }
    assert!(service.evaluate(&batch, &[prompt(1, 1)], EvaluateOptions::default()).is_ok());
}

/// Removes batches that a request uploaded after all.
fn service_is_tidy(service: &Service, keep: &str) {
    for name in service.names() {
        if name != keep {
            service.remove(&name).unwrap();
        }
    }
}

#[test]
fn those_who_are_too_many_are_told_so_and_come_again() {
    let (server, service) = start(ServerSettings { waiting: 1, ..ServerSettings::default() });
    let address = url(&server);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let client = Client::new(&address, None).unwrap();
            scope.spawn(move || client.upload(&upload()).unwrap());
        }
    });
    assert_eq!(service.held().0, 4);
}

#[test]
fn a_client_says_at_once_that_it_waits_for_a_service() {
    static NOTICES: AtomicUsize = AtomicUsize::new(0);
    let (first, service) = start(ServerSettings::default());
    let (place, address) = (first.address(), url(&first));
    first.stop();
    let client = Client::new(&address, None).unwrap().on_retry(|error, pause| {
        assert!(error.kind() == ErrorKind::Network && pause > Duration::ZERO, "{error}");
        NOTICES.fetch_add(1, Ordering::SeqCst);
    });
    let waiting = std::thread::spawn(move || client.describe());
    wait_until("a notice", || NOTICES.load(Ordering::SeqCst) > 0);
    let _server = Server::start(service, place, ServerSettings::default()).unwrap();
    assert!(waiting.join().unwrap().is_ok());
}

#[test]
fn a_server_that_stops_finishes_what_is_under_way() {
    let (server, service) = start(ServerSettings::default());
    let batch = service.upload(&upload()).unwrap().batch;
    let client = Client::new(&url(&server), None).unwrap();
    let prompts: Vec<_> = (0..8).map(|seed| prompt(16, seed)).collect();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| client.evaluate(&batch, &prompts, EvaluateOptions::default()));
        while service.counts().prompts.load(std::sync::atomic::Ordering::Relaxed) == 0
            && !asking.is_finished()
        {
            std::thread::yield_now();
        }
        server.stop();
        assert_eq!(asking.join().unwrap().unwrap().len(), 8);
    });
}

#[test]
fn an_answer_that_is_cut_off_is_asked_for_again() {
    let service = Service::new(llama(), limits());
    let whole = serde_json::to_string(&service.describe().unwrap()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        for sent in [&whole[..20], &whole] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let length = whole.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream.write_all(format!("{head}{sent}").as_bytes()).unwrap();
        }
    });
    let described = Client::new(&address, None).unwrap().describe();
    assert_eq!(described.unwrap(), service.describe().unwrap());
    serving.join().unwrap();
}
