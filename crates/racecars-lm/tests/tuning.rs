//! Tuning finds better prompts, saves them, and resumes after an interruption.
#![allow(clippy::unwrap_used)]

mod common;

use common::{HIDDEN, llama};
use racecars::Cancel;
use racecars_lm::data::{Example, Split};
use racecars_lm::wire::{Answer, Description, EvaluateOptions, ServiceLimits, Upload, Uploaded};
use racecars_lm::{
    BlackBox, Client, Draw, JOURNAL, Loss, PROMPT, Position, ProjectionSettings, Prompt,
    PromptScores, Result, Server, ServerSettings, Service, SharedUploads, Task, TuneSettings,
    Tuned, UploadedExamples, tune,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn task() -> Task {
    let text = "name='t'\ntemplate='{text} it was {mask}'\nwords=['a','b']\nlabels=['0','1']";
    Task::parse(text).unwrap()
}

fn split() -> Split {
    let examples = |from: usize| -> Vec<Example> {
        let example = |i: usize| Example::new(vec![("text".into(), format!("film {i}"))], i % 2);
        (from..from + 6).map(example).collect()
    };
    Split { source: "made up".into(), train: examples(0), dev: examples(6) }
}

fn settings(algorithm: &str, budget: u64) -> TuneSettings {
    TuneSettings {
        task: task(),
        shots: 3,
        seed: 1,
        algorithm: algorithm.into(),
        dim: 10,
        bound: 5.0,
        prompt_tokens: 2,
        budget,
        batch: if algorithm == "cma-es" { 8 } else { 1 },
        look_every: 20,
        loss: Loss::CrossEntropy,
        calibrate: false,
        average: 1,
        position: Position::Suffix,
        projection: ProjectionSettings { draw: Draw::Normal, alpha: 1.0, sigma: 1.0, seed: 1 },
        base: "so".into(),
    }
}

fn service() -> Service {
    Service::new(llama(), ServiceLimits::default())
}

fn run(service: &dyn BlackBox, settings: &TuneSettings, folder: &Path) -> Result<Tuned> {
    tune(service, settings, &split(), folder, &Cancel::new(), |_| {})
}

/// The result of a tuning, except times.
fn essence(tuned: &Tuned) -> String {
    let Tuned { improvements, looks, kept, calls, baselines, other_evaluations, .. } = tuned;
    format!("{improvements:?} {looks:?} {kept:?} {calls} {baselines:?} {other_evaluations}")
}

#[test]
fn it_finds_better_prompts_and_saves_the_one_that_is_best_on_development_texts() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    for algorithm in ["race-cars", "sracos", "cma-es", "random"] {
        let folder = folder.path().join(algorithm);
        let tuned = run(&service, &settings(algorithm, 150), &folder).unwrap();
        let last = tuned.looks.last().unwrap();
        assert_eq!((tuned.calls, last.calls, tuned.failures), (150, 150, 0));
        assert!(last.train.loss < tuned.baselines.untuned.train.loss, "{algorithm}: {tuned:?}");
        assert_eq!(tuned.improvements[0], (1, tuned.baselines.untuned.train.loss));
        let prompt = Prompt::load(&folder.join(PROMPT)).unwrap();
        assert_eq!((prompt.numbers.len(), prompt.z.len()), (2 * HIDDEN, 10));
        let kept = tuned.kept;
        assert!(tuned.looks.iter().all(|look| look.dev.loss >= kept.dev.loss));
        // Of those that were looked at, or the untuned one, which is the first call.
        let untuned = PromptScores { calls: 1, ..tuned.baselines.untuned };
        assert!(tuned.looks.contains(&kept) || kept == untuned);
        assert!(kept.dev.loss <= untuned.dev.loss);
        assert_eq!(prompt.origin.train_loss, kept.train.loss);
        let wanted = EvaluateOptions::default();
        for (examples, score) in [(&split().train, kept.train), (&split().dev, kept.dev)] {
            let panel =
                UploadedExamples::new(&service, &task(), Position::Suffix, "so", examples).unwrap();
            assert_eq!(panel.score(prompt.numbers.clone(), wanted).unwrap(), score);
        }
    }
    assert_eq!(service.held().0, 0);
}

/// A service that fails after a number of evaluations.
struct Fails<'a>(&'a Service, AtomicUsize);

impl BlackBox for Fails<'_> {
    fn describe(&self) -> Result<Description> {
        self.0.describe()
    }
    fn upload(&self, upload: &Upload) -> Result<Uploaded> {
        self.0.upload(upload)
    }
    fn evaluate(
        &self,
        batch: &str,
        prompts: &[Vec<f32>],
        wanted: EvaluateOptions,
    ) -> Result<Vec<Answer>> {
        match self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        {
            Ok(_) => self.0.evaluate(batch, prompts, wanted),
            // Any error will do.
            Err(_) => self.0.evaluate("gone", prompts, wanted),
        }
    }
    fn remove(&self, batch: &str) -> Result<()> {
        self.0.remove(batch)
    }
}

#[test]
fn broken_off_anywhere_it_goes_on_to_the_same_end() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    for (algorithm, calibrate) in
        [("race-cars", false), ("cma-es", false), ("race-cars(gamma=0.7, rho=0.1)", true)]
    {
        let settings = TuneSettings { calibrate, ..settings(algorithm, 70) };
        let whole = folder.path().join(format!("{algorithm}-whole"));
        let expected = run(&service, &settings, &whole).unwrap();
        let pieces = folder.path().join(format!("{algorithm}-pieces"));
        let mut times = 0;
        let tuned = loop {
            times += 1;
            match run(&Fails(&service, AtomicUsize::new(7)), &settings, &pieces) {
                Ok(tuned) => break tuned,
                Err(_) if times < 40 => {}
                Err(error) => panic!("{error}"),
            }
            // Also interrupted in the middle of a line.
            let journal = pieces.join(JOURNAL);
            let mut bytes = std::fs::read(&journal).unwrap();
            bytes.extend_from_slice(b"{\"calls\":{\"che");
            std::fs::write(&journal, bytes).unwrap();
        };
        assert!(times > 2);
        assert_eq!(essence(&tuned), essence(&expected));
        // A finished tuning evaluates nothing at all, and its budget may grow.
        let none = Fails(&service, AtomicUsize::new(0));
        assert_eq!(essence(&run(&none, &settings, &pieces).unwrap()), essence(&expected));
        let longer = TuneSettings { budget: 90, ..settings };
        assert_eq!(run(&service, &longer, &pieces).unwrap().calls, 90);
    }
}

/// Counts the prompts evaluated.
#[test]
fn every_evaluation_is_counted() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let tuned = run(&service, &settings("race-cars", 50), folder.path()).unwrap();
    let evaluated = service.counts().prompts.load(Ordering::Relaxed);
    assert_eq!(evaluated, tuned.calls + tuned.other_evaluations);
    assert!(tuned.other_evaluations > 4, "{tuned:?}");
    let journal = std::fs::read_to_string(folder.path().join(JOURNAL)).unwrap();
    assert_eq!(journal.matches("{\"baselines\":").count(), 1, "{journal}");
}

#[test]
fn tunings_share_uploads_and_a_service_that_lost_them_gets_them_again() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let alone = run(&service, &settings("sracos", 40), &folder.path().join("alone")).unwrap();
    let uploads = || service.counts().uploads.load(Ordering::Relaxed);
    let before = uploads();
    let shared = SharedUploads::new(&service);
    for name in ["one", "two"] {
        let tuned = run(&shared, &settings("sracos", 40), &folder.path().join(name)).unwrap();
        assert_eq!(essence(&tuned), essence(&alone));
    }
    assert_eq!(uploads(), before + 2);
    for name in service.names() {
        service.remove(&name).unwrap();
    }
    let tuned = run(&shared, &settings("sracos", 40), &folder.path().join("three")).unwrap();
    assert_eq!(essence(&tuned), essence(&alone));
    assert_eq!((uploads(), service.held().0), (before + 4, 2));
    drop(shared);
    assert_eq!(service.held().0, 0);
}

#[test]
fn a_mean_of_the_best_prompts_is_kept_and_resumed() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let settings = TuneSettings { calibrate: true, average: 5, ..settings("race-cars", 60) };
    let whole = run(&service, &settings, &folder.path().join("whole")).unwrap();
    let pieces = folder.path().join("pieces");
    let tuned =
        (0..40).find_map(|_| run(&Fails(&service, AtomicUsize::new(9)), &settings, &pieces).ok());
    assert_eq!(essence(&tuned.unwrap()), essence(&whole));
    let saved = |name: &str| std::fs::read(folder.path().join(name).join(PROMPT)).unwrap();
    assert_eq!(saved("whole"), saved("pieces"));
    // The mean of five is not one of them: its loss is none that a call had.
    let last = whole.looks.last().unwrap().train.loss;
    assert!(whole.improvements.iter().all(|(_, loss)| *loss != last));
}

#[test]
fn calibration_takes_the_bias_out_and_the_prompt_has_the_shifts() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let settings = TuneSettings { calibrate: true, ..settings("race-cars", 60) };
    let tuned = run(&service, &settings, folder.path()).unwrap();
    let baselines = tuned.baselines;
    assert!(baselines.calibrated.train.loss < baselines.untuned.train.loss, "{baselines:?}");
    // The search starts from the calibrated loss of p0, and finds a lower one.
    assert_eq!(tuned.improvements[0], (1, baselines.calibrated.train.loss));
    assert!(tuned.looks.last().unwrap().train.loss < baselines.calibrated.train.loss);
    let prompt = Prompt::load(&folder.path().join(PROMPT)).unwrap();
    assert_eq!(prompt.origin.shifts.len(), 2);
    assert!(prompt.origin.shifts[0] != 0.0);
    // With its shifts it has the scores of the kept prompt, on texts that they were not fitted on.
    let panel = UploadedExamples::new(&service, &task(), Position::Suffix, "so", &split().dev);
    let panel = panel.unwrap();
    let logits = panel.logits(std::slice::from_ref(&prompt.numbers)).unwrap().remove(0).unwrap();
    let score =
        |logits: &[f32]| racecars_lm::loss::score(settings.loss, logits, 2, &panel.labels());
    assert_eq!(score(&prompt.calibrated(logits.clone())), tuned.kept.dev);
    assert_ne!(score(&logits), tuned.kept.dev);
    // Shifts for another number of words are refused.
    let mut wrong = prompt;
    wrong.origin.shifts.push(0.0);
    let path = folder.path().join("wrong.safetensors");
    wrong.save(&path).unwrap();
    let error = Prompt::load(&path).unwrap_err().to_string();
    assert!(error.contains("3 shifts for 2 label words"), "{error}");
}

#[test]
fn a_journal_of_another_tuning_is_refused() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let first = settings("race-cars", 20);
    run(&service, &first, folder.path()).unwrap();
    let other = TuneSettings { bound: 6.0, ..first.clone() };
    let error = run(&service, &other, folder.path()).unwrap_err().to_string();
    assert!(error.contains("bound was 5.0, and is 6.0 now"), "{error}");
    // The same name, and one other text or label.
    let (mut text, mut label) = (split(), split());
    text.train[0] = Example::new(vec![("text".into(), "another film".into())], 0);
    label.dev[1].label = 0;
    for changed in [text, label] {
        let error = tune(&service, &first, &changed, folder.path(), &Cancel::new(), |_| {});
        let error = error.unwrap_err().to_string();
        assert!(error.contains("the texts in made up have changed"), "{error}");
    }
    let journal = folder.path().join(JOURNAL);
    let text = std::fs::read_to_string(&journal).unwrap();
    // A journal of an earlier version has no hash of the texts.
    let (start, hash) = text.split_once(",\"texts\":\"").unwrap();
    let (_, rest) = hash.split_once('"').unwrap();
    std::fs::write(&journal, format!("{start}{rest}")).unwrap();
    assert_eq!(run(&service, &first, folder.path()).unwrap().calls, 20);
    std::fs::write(&journal, text.replacen("\"check\":\"", "\"check\":\"0", 1)).unwrap();
    let error = run(&service, &first, folder.path()).unwrap_err().to_string();
    assert!(error.contains("other points"), "{error}");
    std::fs::write(&journal, text.replacen("{\"calls\":{", "{\"call\":{", 1)).unwrap();
    let error = run(&service, &first, folder.path()).unwrap_err().to_string();
    assert!(error.contains("line 3 of"), "{error}");
}

#[test]
fn a_service_that_was_started_anew_is_given_the_texts_again() {
    let folder = tempfile::tempdir().unwrap();
    let start =
        |address| Server::start(Arc::new(service()), address, ServerSettings::default()).unwrap();
    let mut server = Some(start(([127, 0, 0, 1], 0).into()));
    let address = server.as_ref().unwrap().address();
    let client = Client::new(&format!("http://{address}"), None).unwrap();
    let settings = settings("race-cars", 60);
    let cancel = Cancel::new();
    let tuned = tune(&client, &settings, &split(), folder.path(), &cancel, |status| {
        if status.calls == 30 {
            server.take().unwrap().stop();
            server = Some(start(address));
        }
    });
    let local = tempfile::tempdir().unwrap();
    let expected = run(&service(), &settings, local.path()).unwrap();
    assert_eq!(essence(&tuned.unwrap()), essence(&expected));
}

#[test]
fn settings_out_of_range_are_named() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let good = || settings("race-cars", 10);
    for (settings, message) in [
        (TuneSettings { dim: 0, ..good() }, "dim 0"),
        (TuneSettings { prompt_tokens: 0, ..good() }, "prompt-tokens 0"),
        (TuneSettings { prompt_tokens: 600, ..good() }, "takes at most 512"),
        (TuneSettings { bound: f64::NAN, ..good() }, "bound NaN"),
        (TuneSettings { algorithm: "x".into(), ..good() }, "algorithm `x`"),
        (settings("race-cars(gamma=2)", 9), "gamma"),
        (settings("sracos(gamma=0.5)", 9), "no setting `gamma`"),
    ] {
        let error = run(&service, &settings, folder.path()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_tuning_that_ended_before_its_first_call_leaves_the_folder_free() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    // The service fails while the baselines are evaluated, which are no calls.
    let none = Fails(&service, AtomicUsize::new(2));
    let wrong = TuneSettings { bound: 1e9, ..settings("race-cars", 10) };
    assert!(run(&none, &wrong, folder.path()).is_err());
    assert!(folder.path().join(JOURNAL).exists());
    assert_eq!(run(&service, &settings("race-cars", 1), folder.path()).unwrap().calls, 1);
}

type Lie = fn(&mut Answer);

/// A service whose answers are changed on the way.
struct Lies<'a>(&'a Service, Lie);

impl BlackBox for Lies<'_> {
    fn describe(&self) -> Result<Description> {
        self.0.describe()
    }
    fn upload(&self, upload: &Upload) -> Result<Uploaded> {
        self.0.upload(upload)
    }
    fn evaluate(
        &self,
        batch: &str,
        prompts: &[Vec<f32>],
        wanted: EvaluateOptions,
    ) -> Result<Vec<Answer>> {
        let mut answers = self.0.evaluate(batch, prompts, wanted)?;
        answers.iter_mut().for_each(self.1);
        Ok(answers)
    }
    fn remove(&self, batch: &str) -> Result<()> {
        self.0.remove(batch)
    }
}

#[test]
fn answers_that_are_none_end_a_tuning_with_the_reason() {
    let service = service();
    let lies: [(Lie, &str); 4] = [
        (|answer| answer.loss = answer.loss.map(|_| f64::NAN), "NaN as its loss"),
        (|answer| answer.accuracy = Some(7.0), "7 as its accuracy"),
        (|answer| drop(answer.logits.as_mut().map(Vec::pop)), "rows of logits for"),
        (|answer| answer.logits.iter_mut().flatten().for_each(|row| row.push(0.0)), "label words"),
    ];
    for (lie, what) in lies {
        let folder = tempfile::tempdir().unwrap();
        let error = run(&Lies(&service, lie), &settings("race-cars", 20), folder.path());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(what), "{what}: {error}");
    }
}
