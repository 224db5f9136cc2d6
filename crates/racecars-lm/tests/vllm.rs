//! The client of vLLM against a small server that reads the same format and runs the network itself: the losses are
//! those of the service in this process.

#![allow(clippy::unwrap_used)]

mod common;

use common::{HIDDEN, write_llama};
use racecars::random::Random;
use racecars_lm::wire::{EvaluateOptions, ServiceLimits, Upload};
use racecars_lm::{BlackBox, ErrorKind, InputText, Model, Service, VllmClient};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

const WORDS: [&str; 4] = ["a", "b", "c", "d"];

/// Decodes base64.
fn decode(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        bits = bits << 6 | DIGITS.iter().position(|other| *other == digit).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// Reads a matrix as PyTorch does: by the archive's directory, the numbers of `data/0`, the shape of the pickle.
fn load(file: &[u8]) -> Vec<f32> {
    let u16_at = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap()) as usize;
    let u32_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let end = file.len() - 22;
    assert_eq!(&file[end..end + 4], b"PK\x05\x06");
    let (mut at, mut entries) = (u32_at(end + 16), std::collections::BTreeMap::new());
    for _ in 0..u16_at(end + 10) {
        assert_eq!(&file[at..at + 4], b"PK\x01\x02");
        let (size, name, header) = (u32_at(at + 24), u16_at(at + 28), u32_at(at + 42));
        let name = std::str::from_utf8(&file[at + 46..][..name]).unwrap();
        let start = header + 30 + u16_at(header + 26) + u16_at(header + 28);
        entries.insert(name.to_string(), &file[start..start + size]);
        at += 46 + name.len();
    }
    assert_eq!(entries["archive/version"], b"3\n");
    assert_eq!(entries["archive/byteorder"], b"little");
    let numbers = entries["archive/data/0"].chunks(4);
    let numbers: Vec<f32> = numbers.map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
    let pickle = entries["archive/data.pkl"];
    let has = |part: &[u8]| pickle.windows(part.len()).any(|other| other == part);
    assert!(has(b"torch\nFloatStorage\n"));
    let rows = (numbers.len() / HIDDEN) as u32;
    let integer = |x: u32| [b"J".as_slice(), &x.to_le_bytes()].concat();
    let shape = [integer(rows), integer(HIDDEN as u32), vec![0x86]].concat();
    assert!(has(&shape), "the shape is not {rows} x {HIDDEN}");
    numbers
}

/// Serves `POST /v1/completions` by the model itself. The last token of a sequence is known to be `x`, since a
/// model of ours takes a text as well.
fn serve(model: &Path, lie: fn(&mut Value)) -> String {
    let service = Arc::new(Service::new(Model::open(model).unwrap(), ServiceLimits::default()));
    let text = InputText { after: "x".into(), ..InputText::default() };
    let words = WORDS.map(str::to_string).to_vec();
    let (labels, base) = (Vec::new(), String::new());
    let batch = service.upload(&Upload { texts: vec![text], words, labels, base }).unwrap().batch;
    // The words follow the bytes in the vocabulary.
    let ids = 256..260;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let request = read_request(&stream);
            assert_eq!(request["return_tokens_as_token_ids"], true);
            assert_eq!((&request["max_tokens"], &request["model"]), (&json!(1), &json!("served")));
            let tensors = request["prompt_embeds"].as_array().unwrap().iter().enumerate();
            let choices: Vec<Value> = tensors
                .map(|(index, tensor)| {
                    let mut rows = load(&decode(tensor.as_str().unwrap()));
                    rows.truncate(rows.len() - HIDDEN);
                    let wanted = EvaluateOptions { logits: true, ..EvaluateOptions::default() };
                    let answer = service.evaluate(&batch, &[rows], wanted).unwrap().remove(0);
                    let logits = &answer.logits.unwrap()[0];
                    let total = logits.iter().map(|x| f64::from(*x).exp()).sum::<f64>().ln();
                    let pairs = ids.clone().zip(logits);
                    let pairs = pairs
                        .map(|(id, x)| (format!("token_id:{id}"), json!(f64::from(*x) - total)));
                    let top: serde_json::Map<String, Value> = pairs.collect();
                    json!({"index": index, "text": "", "logprobs": {"top_logprobs": [top]}})
                })
                // In any order.
                .rev()
                .collect();
            let mut answer = json!({"choices": choices});
            lie(&mut answer);
            let body = answer.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = (&stream).write_all((head + &body).as_bytes());
        }
    });
    url
}

fn read_request(stream: &TcpStream) -> Value {
    let (mut reader, mut length) = (BufReader::new(stream), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn upload() -> Upload {
    let text = |before: &str, after: &str| InputText {
        before: before.into(),
        after: after.into(),
        tail: String::new(),
    };
    Upload {
        texts: vec![text("one", " is x"), text("another", " x"), text("", "x")],
        words: WORDS.map(str::to_string).to_vec(),
        labels: vec![0, 3, 2],
        base: "pq".into(),
    }
}

#[test]
fn losses_are_those_of_the_service_in_this_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_llama(folder.path());
    let url = serve(&path, |_| {});
    let client = VllmClient::new(&url, None, Model::open(&path).unwrap(), "served").unwrap();
    let service = Service::new(Model::open(&path).unwrap(), ServiceLimits::default());
    assert_eq!(client.describe().unwrap().info, service.describe().unwrap().info);
    let (ours, theirs) = (client.upload(&upload()).unwrap(), service.upload(&upload()).unwrap());
    assert_eq!((ours.texts, ours.tokens), (theirs.texts, theirs.tokens));
    let mut random = Random::new(5);
    let mut prompt = || (0..3 * HIDDEN).map(|_| random.normal() as f32).collect::<Vec<f32>>();
    let prompts = [prompt(), prompt()];
    let wanted = EvaluateOptions::default();
    let ours = client.evaluate(&ours.batch, &prompts, wanted).unwrap();
    let theirs = service.evaluate(&theirs.batch, &prompts, wanted).unwrap();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let difference = (ours.loss.unwrap() - theirs.loss.unwrap()).abs();
        assert!(difference < 1e-3, "{ours:?} {theirs:?}");
        assert_eq!(ours.accuracy, theirs.accuracy);
    }
    assert!(ours[0].loss != ours[1].loss);
}

#[test]
fn what_is_no_answer_is_refused_and_batches_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_llama(folder.path());
    let url = serve(&path, |answer| answer["choices"][0]["logprobs"] = Value::Null);
    let client = VllmClient::new(&url, None, Model::open(&path).unwrap(), "served").unwrap();
    let batch = client.upload(&upload()).unwrap().batch;
    let evaluate =
        |prompt: Vec<f32>| client.evaluate(&batch, &[prompt], EvaluateOptions::default());
    let error = evaluate(vec![0.0; HIDDEN]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network);
    assert!(error.to_string().contains("top_logprobs"), "{error}");
    assert_eq!(evaluate(vec![0.0; 3]).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(evaluate(vec![f32::NAN; HIDDEN]).unwrap_err().kind(), ErrorKind::Input);
    let few = Upload { labels: vec![0], ..upload() };
    assert_eq!(client.upload(&few).unwrap_err().kind(), ErrorKind::Input);
    client.remove(&batch).unwrap();
    assert_eq!(evaluate(vec![0.0; HIDDEN]).unwrap_err().kind(), ErrorKind::Unknown);
    assert!(VllmClient::new("ftp://x", None, Model::open(&path).unwrap(), "m").is_err());
}
