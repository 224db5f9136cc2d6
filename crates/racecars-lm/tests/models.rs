//! Properties of models that hold for any weights. Parity with other implementations is tested by
//! `peers/lm/parity.py`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{HIDDEN, llama, prompt, roberta, text, words, write_llama, write_roberta};
use racecars::random::Random;
use racecars_lm::{ErrorKind, InputText, Model, ModelKind};

const ALL: usize = usize::MAX;

fn logits(model: &Model, texts: &[InputText], base: &str, prompt: Vec<f32>) -> Vec<f32> {
    let batch = model.prepare(texts, &words(), base, ALL).unwrap();
    model.logits(&batch, &[prompt]).unwrap().remove(0)
}

fn assert_close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
}

#[test]
fn where_a_text_is_cut_makes_no_difference_without_a_prompt() {
    for model in [llama(), roberta()] {
        let whole = logits(&model, &[text("", "so fine it was")], "", vec![]);
        for cut in 1..14 {
            let (before, after) = "so fine it was".split_at(cut);
            assert_close(&whole, &logits(&model, &[text(before, after)], "", vec![]));
        }
    }
}

#[test]
fn a_prompt_that_is_a_texts_embedding_is_that_text() {
    for model in [llama(), roberta()] {
        let with_text = logits(&model, &[text("so fine", "hello it was")], "", vec![]);
        // p0 is the text's embedding, and what is sent is zero.
        let with_base =
            logits(&model, &[text("so fine", " it was")], "hello", vec![0.0; 5 * HIDDEN]);
        assert_close(&with_text, &with_base);
        // It is repeated if the prompt is longer.
        let twice = logits(&model, &[text("so fine", "hellohe it was")], "", vec![]);
        let cycled = logits(&model, &[text("so fine", " it was")], "hello", vec![0.0; 7 * HIDDEN]);
        assert_close(&twice, &cycled);
    }
}

#[test]
fn many_texts_and_prompts_at_once_are_as_one_at_a_time() {
    for model in [llama(), roberta()] {
        let texts = ["", "a fine film", "no", "x".repeat(40).as_str(), "so so so"]
            .map(|before| text(before, " it was"));
        let batch = model.prepare(&texts, &words(), "", ALL).unwrap();
        let prompts: Vec<_> = (0..3).map(|seed| prompt(4, seed)).collect();
        let together = model.logits(&batch, &prompts).unwrap();
        for (prompt, together) in prompts.iter().zip(together) {
            for (text, row) in texts.iter().zip(together.chunks(3)) {
                assert_close(row, &logits(&model, std::slice::from_ref(text), "", prompt.clone()));
            }
        }
    }
}

#[test]
fn more_texts_than_run_at_once_are_the_same() {
    for model in [llama(), roberta()] {
        let mut random = Random::new(3);
        let texts: Vec<_> = (0..150)
            .map(|_| text(&"y".repeat(random.index(30)), &"z".repeat(1 + random.index(20))))
            .collect();
        let all = logits(&model, &texts, "", prompt(5, 1));
        for i in [0, 70, 149] {
            let alone = logits(&model, &texts[i..=i], "", prompt(5, 1));
            assert_close(&alone, &all[3 * i..3 * i + 3]);
        }
    }
}

#[test]
fn masked_models_look_at_what_follows_and_causal_ones_do_not() {
    for model in [llama(), roberta()] {
        let with_tail = |tail: &str| InputText { tail: tail.into(), ..text("fine", " it was") };
        let plain = logits(&model, &[with_tail("")], "", prompt(2, 1));
        let tailed = logits(&model, &[with_tail(" indeed")], "", prompt(2, 1));
        assert_eq!(plain == tailed, model.info().kind == ModelKind::Causal);
    }
}

#[test]
fn bad_input_is_named() {
    for model in [llama(), roberta()] {
        let batch = |texts: &[InputText], words: &[&str]| {
            let words: Vec<_> = words.iter().map(ToString::to_string).collect();
            model.prepare(texts, &words, "", 1000).map(|_| ()).unwrap_err().to_string()
        };
        let fine = [text("x", "y")];
        assert!(batch(&[], &["a", "b"]).contains("no texts"));
        assert!(batch(&fine, &["a"]).contains("at least 2"));
        assert!(batch(&fine, &["a", "a"]).contains("twice"));
        assert!(batch(&fine, &["a", "zebra"]).contains("6 tokens"));
        assert!(batch(&fine, &["a", ""]).contains("empty"));
        assert!(
            batch(&[text(&"x".repeat(70), "y")], &["a", "b"]).contains("more than the model's 64")
        );
        let many: Vec<_> = (0..50).map(|_| text(&"x".repeat(40), "y")).collect();
        assert!(batch(&many, &["a", "b"]).contains("at most 1000"));

        let batch = model.prepare(&fine, &words(), "", 1000).unwrap();
        let mut wrong = prompt(2, 1);
        wrong[7] = f32::NAN;
        for (prompts, message) in [
            (vec![prompt(2, 1), prompt(3, 1)], "prompt 1 has 96 numbers"),
            (vec![vec![0.0; 33]], "a multiple of 32"),
            (vec![wrong], "number 7 of prompt 0 is NaN"),
            (vec![prompt(63, 1)], "more than the model's 64"),
        ] {
            let error = model.logits(&batch, &prompts).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}

/// A file that is truncated or has a wrong byte is refused or still a model; it never crashes the program.
#[test]
fn damaged_files_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let gguf = write_llama(folder.path());
    let safetensors = write_roberta(folder.path()).join("model.safetensors");
    let mut random = Random::new(4);
    for (path, opened) in [(&gguf, &gguf), (&safetensors, &folder.path().join("roberta"))] {
        let whole = std::fs::read(path).unwrap();
        for _ in 0..60 {
            std::fs::write(path, &whole[..random.index(whole.len())]).unwrap();
            assert!(Model::open(opened).is_err());
            let mut changed = whole.clone();
            let at = random.index(whole.len().min(20_000));
            changed[at] ^= 1 << random.index(8);
            std::fs::write(path, &changed).unwrap();
            let _ = Model::open(opened);
        }
        std::fs::write(path, &whole).unwrap();
        assert!(Model::open(opened).is_ok());
    }
    assert!(Model::open(&folder.path().join("nothing.gguf")).is_err());
    let several = folder.path().join("several");
    std::fs::create_dir(&several).unwrap();
    assert!(Model::open(&several).is_err());
    std::fs::copy(&gguf, several.join("x.gguf")).unwrap();
    assert!(Model::open(&several).is_ok());
}
