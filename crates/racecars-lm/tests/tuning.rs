//! Tuning finds better prompts, saves them, and resumes after an interruption.
#![allow(clippy::unwrap_used)]

mod common;

use common::{HIDDEN, llama};
use racecars::Cancel;
use racecars_lm::data::{Example, Split};
use racecars_lm::wire::{Answer, Description, EvaluateOptions, ServiceLimits, Upload, Uploaded};
use racecars_lm::{
    BlackBox, Client, Draw, JOURNAL, Loss, PROMPT, Position, ProjectionSettings, Prompt, Result,
    Server, ServerSettings, Service, Task, TuneSettings, Tuned, UploadedExamples, tune,
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
        gamma: None,
        rho: None,
        dim: 10,
        bound: 5.0,
        prompt_tokens: 2,
        budget,
        batch: TuneSettings::natural_batch(&algorithm.parse().unwrap()),
        look_every: 20,
        loss: Loss::CrossEntropy,
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
    format!("{:?} {:?} {:?} {:?}", tuned.improvements, tuned.looks, tuned.kept, tuned.calls)
}

#[test]
fn it_finds_better_prompts_and_saves_the_one_that_is_best_on_development_texts() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    for algorithm in ["race-cars", "sracos", "cma-es", "random"] {
        let folder = folder.path().join(algorithm);
        let tuned = run(&service, &settings(algorithm, 150), &folder).unwrap();
        let last = tuned.looks.last().unwrap();
        assert_eq!((tuned.calls, last.calls, tuned.failures), (150, 150, 0));
        assert!(last.train.loss < tuned.untuned.train.loss, "{algorithm}: {tuned:?}");
        assert_eq!(tuned.improvements[0], (1, tuned.untuned.train.loss));
        let prompt = Prompt::load(&folder.join(PROMPT)).unwrap();
        assert_eq!((prompt.numbers.len(), prompt.z.len()), (2 * HIDDEN, 10));
        let kept = tuned.kept;
        assert!(tuned.looks.iter().all(|look| look.dev.loss >= kept.dev.loss));
        assert!(tuned.looks.contains(&kept));
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
    for algorithm in ["race-cars", "cma-es"] {
        let settings = settings(algorithm, 70);
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
        // A finished tuning is not repeated, and its budget may grow.
        assert_eq!(essence(&run(&service, &settings, &pieces).unwrap()), essence(&expected));
        let longer = TuneSettings { budget: 90, ..settings };
        assert_eq!(run(&service, &longer, &pieces).unwrap().calls, 90);
    }
}

#[test]
fn a_journal_of_another_tuning_is_refused() {
    let (service, folder) = (service(), tempfile::tempdir().unwrap());
    let first = settings("race-cars", 20);
    run(&service, &first, folder.path()).unwrap();
    let other = TuneSettings { bound: 6.0, ..first.clone() };
    let error = run(&service, &other, folder.path()).unwrap_err().to_string();
    assert!(error.contains("bound was 5.0, and is 6.0 now"), "{error}");
    let journal = folder.path().join(JOURNAL);
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replacen("\"check\":\"", "\"check\":\"0", 1)).unwrap();
    let error = run(&service, &first, folder.path()).unwrap_err().to_string();
    assert!(error.contains("other points"), "{error}");
    std::fs::write(&journal, text.replacen("{\"calls\"", "{\"call\"", 1)).unwrap();
    let error = run(&service, &first, folder.path()).unwrap_err().to_string();
    assert!(error.contains("line 2 of"), "{error}");
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
        (TuneSettings { gamma: Some(2.0), ..good() }, "gamma"),
        (TuneSettings { gamma: Some(0.5), ..settings("sracos", 9) }, "no setting `gamma`"),
    ] {
        let error = run(&service, &settings, folder.path()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}
