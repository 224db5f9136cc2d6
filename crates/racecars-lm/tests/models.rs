//! Properties of models that hold for any weights. Parity with other implementations is tested by
//! `peers/lm/parity.py`.
#![allow(clippy::unwrap_used)]

mod common;

use common::gguf::{Kind, Meta, write_gguf};
use common::{
    HIDDEN, every_model, gemma_file, llama_file, prompt, qwen_file, text, words, write_roberta,
    write_safetensors,
};
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
    for model in every_model() {
        let whole = logits(&model, &[text("", "so fine it was")], "", vec![]);
        // To the end: then the prompt, if there is one, is the last token.
        for cut in 1..=14 {
            let (before, after) = "so fine it was".split_at(cut);
            assert_close(&whole, &logits(&model, &[text(before, after)], "", vec![]));
        }
    }
}

#[test]
fn a_prompt_that_is_a_texts_embedding_is_that_text() {
    for model in every_model() {
        let with_text = logits(&model, &[text("so fine", "hello it was")], "", vec![]);
        // p0 is the text's embedding, and what is sent is zero.
        let with_base =
            logits(&model, &[text("so fine", " it was")], "hello", vec![0.0; 5 * HIDDEN]);
        assert_close(&with_text, &with_base);
        // It is repeated if the prompt is longer.
        let twice = logits(&model, &[text("so fine", "hellohe it was")], "", vec![]);
        let cycled = logits(&model, &[text("so fine", " it was")], "hello", vec![0.0; 7 * HIDDEN]);
        assert_close(&twice, &cycled);
        let last = logits(&model, &[text("so fine", "hello")], "", vec![]);
        let at_end = logits(&model, &[text("so fine", "")], "hello", vec![0.0; 5 * HIDDEN]);
        assert_close(&last, &at_end);
    }
}

#[test]
fn many_texts_and_prompts_at_once_are_as_one_at_a_time() {
    for model in every_model() {
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
    for model in every_model() {
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
    for model in every_model() {
        let with_tail = |tail: &str| InputText { tail: tail.into(), ..text("fine", " it was") };
        let plain = logits(&model, &[with_tail("")], "", prompt(2, 1));
        let tailed = logits(&model, &[with_tail(" indeed")], "", prompt(2, 1));
        assert_eq!(plain == tailed, model.info().kind == ModelKind::Causal);
    }
}

#[test]
fn bad_input_is_named() {
    for model in every_model() {
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

/// A prompt at the beginning of all texts is run once for all of them; among texts that begin differently, it is run
/// for each. Both are the same to the bit.
#[test]
fn a_prompt_before_all_texts_is_as_before_each() {
    for model in every_model() {
        let texts: Vec<_> =
            ["so fine it was", "no", " a film it is"].map(|after| text("", after)).into();
        let prompts: Vec<_> = (0..3).map(|seed| prompt(20, seed)).collect();
        let shared = model.prepare(&texts, &words(), "", ALL).unwrap();
        let mixed: Vec<_> = texts.iter().cloned().chain([text("but", " it was")]).collect();
        let mixed = model.prepare(&mixed, &words(), "", ALL).unwrap();
        let shared = model.logits(&shared, &prompts).unwrap();
        for (shared, mixed) in shared.iter().zip(model.logits(&mixed, &prompts).unwrap()) {
            assert_eq!(shared[..], mixed[..9]);
        }
    }
}

/// A Gemma without layers that see only a window has other logits for texts that are longer than it, and only
/// for these.
#[test]
fn windows_hide_what_is_far() {
    let (narrow, mut wide) = (gemma_file(), gemma_file());
    wide.set("gemma3.attention.sliding_window", Meta::Count(64));
    let [narrow, wide] = [narrow, wide].map(|file| file.open().unwrap());
    for (length, is_same) in [(7, true), (8, false), (30, false)] {
        let texts = [text("", &"x".repeat(length))];
        let same = logits(&narrow, &texts, "", vec![]) == logits(&wide, &texts, "", vec![]);
        assert_eq!(same, is_same, "{length}");
    }
}

#[test]
fn sentence_pieces_are_merged_by_score_and_fall_back_to_bytes() {
    let mut file = gemma_file();
    let model = file.open().unwrap();
    let count = |text: &str| model.tokenize(text).len();
    // `▁a` is a token, `▁x` is not; a line of its own is one; ü is two bytes, é a character.
    assert_eq!([" a", " x", "x\n\nx", "ü", "é", ""].map(count), [1, 2, 3, 2, 1, 0]);
    assert_eq!(model.tokenize("<bos>"), [2]);
    // With a space before the text, ` a` is at its beginning; a label word has only one space.
    file.set("tokenizer.ggml.add_space_prefix", Meta::Flag(true));
    let spaced = file.open().unwrap();
    let texts = [text("a", "a"), text("", " a")];
    let spaced = |texts: &[InputText]| spaced.prepare(texts, &words(), "", ALL).unwrap().tokens();
    // <bos>, ▁a, a.
    assert_eq!(spaced(&texts[..1]), 3);
    assert_eq!(spaced(&texts[1..]), 3);
}

#[test]
fn unsupported_models_are_refused_with_the_reason() {
    let refused = |key: &str, value: Meta| {
        let mut file = llama_file();
        file.set(key, value);
        file.open().unwrap_err().to_string()
    };
    let name = |name: &str| Meta::Text(name.into());
    for (key, value, reason) in [
        ("general.architecture", name("mamba"), "`llama`, `qwen2`, `qwen3` and `gemma3` are"),
        ("llama.rope.scaling.type", name("yarn"), "`linear` is"),
        ("llama.expert_count", Meta::Count(8), "mixtures of experts"),
        ("tokenizer.ggml.model", name("t5"), "`t5` is not supported"),
        ("tokenizer.ggml.pre", name("viking"), "`viking` is none of"),
        ("llama.block_count", Meta::Count(3), "`blk.2.attn_norm.weight`"),
        ("llama.block_count", Meta::Number(1.0), "is not a count"),
        ("llama.embedding_length", Meta::Count(0), "0 is not between 1"),
        ("tokenizer.ggml.tokens", Meta::Texts(vec!["x".into(); 300]), "is not a token"),
    ] {
        let error = refused(key, value);
        assert!(error.contains(reason), "{key}: {error}");
    }
    let mut scaled = llama_file();
    scaled.set("llama.rope.scaling.type", name("linear"));
    scaled.set("llama.rope.scaling.factor", Meta::Number(1.0));
    assert!(scaled.open().is_ok());
    scaled.tensors[0].kind = Kind::F16;
    assert!(scaled.open().is_ok());
}

#[test]
fn weights_in_several_files_are_those_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |i: usize| folder.path().join(format!("big-0000{i}-of-00003.gguf"));
    let file = qwen_file();
    let texts = [text("so fine", " it was")];
    let whole = logits(&file.open().unwrap(), &texts, "", prompt(2, 1));
    for (i, tensors) in file.tensors.chunks(file.tensors.len().div_ceil(3)).enumerate() {
        let split = [("split.no".to_string(), Meta::Count(i as u32))];
        let metadata = if i == 0 { &file.metadata[..] } else { &split };
        write_gguf(&path(i + 1), metadata, tensors);
    }
    for opened in [path(1), path(3), folder.path().to_path_buf()] {
        let model = Model::open(&opened).unwrap();
        assert_eq!(logits(&model, &texts, "", prompt(2, 1)), whole);
        assert_eq!(model.info().name, Model::open(&path(1)).unwrap().info().name);
    }
    std::fs::remove_file(path(2)).unwrap();
    let error = Model::open(&path(1)).unwrap_err().to_string();
    assert!(error.contains("big-00002-of-00003.gguf"), "{error}");

    let roberta = write_roberta(folder.path());
    let whole = logits(&Model::open(&roberta).unwrap(), &texts, "", prompt(2, 1));
    let one = roberta.join("model.safetensors");
    let bytes = std::fs::read(&one).unwrap();
    let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensors: Vec<_> = (read.iter())
        .map(|(name, view)| (name.to_string(), view.shape().to_vec(), view.data().to_vec()))
        .collect();
    let mut map = serde_json::Map::new();
    for (i, tensors) in tensors.chunks(10).enumerate() {
        let name = format!("model-{i}.safetensors");
        write_safetensors(&roberta.join(&name), tensors);
        map.extend(tensors.iter().map(|(tensor, ..)| (tensor.clone(), name.clone().into())));
    }
    std::fs::remove_file(&one).unwrap();
    let write_index = |map: &serde_json::Map<String, serde_json::Value>| {
        let index = serde_json::json!({"metadata": {}, "weight_map": map}).to_string();
        std::fs::write(roberta.join("model.safetensors.index.json"), index).unwrap();
    };
    write_index(&map);
    assert_eq!(logits(&Model::open(&roberta).unwrap(), &texts, "", prompt(2, 1)), whole);
    map.insert("x".into(), "../model.safetensors".into());
    write_index(&map);
    let error = Model::open(&roberta).unwrap_err().to_string();
    assert!(error.contains("is not the name of a safetensors file"), "{error}");
}

/// A file that is truncated or has a wrong byte is refused or still a model; it never crashes the program.
#[test]
fn damaged_files_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let gguf = folder.path().join("small.gguf");
    let roberta = write_roberta(folder.path());
    let safetensors = roberta.join("model.safetensors");
    let mut random = Random::new(4);
    let gguf_bytes = [llama_file(), gemma_file()].map(|file| {
        file.write(&gguf);
        std::fs::read(&gguf).unwrap()
    });
    let [llama, gemma] = gguf_bytes.map(|bytes| (&gguf, &gguf, bytes));
    let other = (&safetensors, &roberta, std::fs::read(&safetensors).unwrap());
    for (path, opened, whole) in [llama, gemma, other] {
        // Metadata and tensor names, where damage does most.
        let header = whole.len().min(20_000);
        for i in 0..40 {
            let end = if i % 2 == 0 { whole.len() } else { header };
            std::fs::write(path, &whole[..random.index(end)]).unwrap();
            assert!(Model::open(opened).is_err());
            let mut changed = whole.clone();
            let at = random.index(header);
            match i % 3 {
                0 => changed[at] ^= 1 << random.index(8),
                1 => changed[at] = [0, 1, 127, 128, 255][random.index(5)],
                // As a length.
                _ => changed[at..][..8]
                    .copy_from_slice(&(u64::MAX >> random.index(64)).to_le_bytes()),
            }
            std::fs::write(path, &changed).unwrap();
            if let Ok(model) = Model::open(opened) {
                // What can be opened can be used, or says why not.
                let texts = [text("so fine", " it was")];
                let _ = model
                    .prepare(&texts, &words(), "", ALL)
                    .and_then(|batch| model.logits(&batch, &[vec![0.0; 2 * model.info().hidden]]));
            }
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
    std::fs::copy(&gguf, several.join("y.gguf")).unwrap();
    assert!(Model::open(&several).unwrap_err().to_string().contains("name one of them"));
}
