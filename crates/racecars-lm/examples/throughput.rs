//! The rate of evaluating prompts: `throughput MODEL TEXTS POSITION TOKENS PROMPTS SECONDS` evaluates requests
//! of PROMPTS random prompts before (prefix) or after (suffix) each text of the file TEXTS, which has a text
//! per line, and prints a JSON object.

use racecars::random::Random;
use racecars_lm::{InputText, Model};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, texts, position, tokens, prompts, seconds] = &arguments[..] else {
        return Err("usage: throughput MODEL TEXTS prefix|suffix TOKENS PROMPTS SECONDS".into());
    };
    let (tokens, prompts): (usize, usize) = (tokens.parse()?, prompts.parse()?);
    let seconds: f64 = seconds.parse()?;
    let model = Model::open(Path::new(model))?;
    let texts: Vec<InputText> = (std::fs::read_to_string(texts)?.lines())
        .map(|line| match position.as_str() {
            "suffix" => {
                InputText { before: line.into(), after: " It was".into(), tail: String::new() }
            }
            _ => InputText { after: format!("{line} It was"), ..InputText::default() },
        })
        .collect();
    let words = ["terrible", "great"].map(String::from);
    let start = Instant::now();
    let batch = model.prepare(&texts, &words, "", usize::MAX)?;
    let prepared = start.elapsed().as_secs_f64();
    let (hidden, std) = (model.info().hidden, model.info().embedding.std);
    let mut random = Random::new(1);
    let prompts: Vec<Vec<f32>> = (0..prompts)
        .map(|_| (0..tokens * hidden).map(|_| (std * random.normal()) as f32).collect())
        .collect();
    model.logits(&batch, &prompts)?;
    let (start, mut requests) = (Instant::now(), 0);
    while requests < 3 || start.elapsed().as_secs_f64() < seconds {
        model.logits(&batch, &prompts)?;
        requests += 1;
    }
    let per_prompt = start.elapsed().as_secs_f64() / f64::from(requests) / prompts.len() as f64;
    println!(
        "{{\"texts\": {}, \"text_tokens\": {}, \"prepare_seconds\": {prepared:.4}, \
         \"seconds_per_prompt\": {per_prompt:.5}}}",
        batch.len(),
        batch.tokens()
    );
    Ok(())
}
