//! One table of cases (`tests/drivers/` of the repository, see its README) over all drivers in Rust: one
//! evaluation after the other, threads, a session that is saved and restored, studies of a real program, also
//! interrupted, and replays of their journals. All must agree to the bit.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::Lab;
use racecars::{
    Algorithm, Auto, Direction, Flow, Next, Noise, Order, Outcome, Point, Run, Session, Solution,
    Space, StopReason, StopRules, Workers, load, maximize, minimize,
};
use racecars_study::{Interrupt, Summary, journal, report, trace};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    algorithm: String,
    noise: Option<Noise>,
    #[serde(default)]
    seed: u64,
    budget: u64,
    target: Option<f64>,
    patience: Option<u64>,
    #[serde(default)]
    retries: u32,
    #[serde(default)]
    maximize: bool,
    dimension: usize,
    #[serde(default = "low")]
    low: f64,
    #[serde(default = "high")]
    high: f64,
    #[serde(default)]
    integer: bool,
    #[serde(default)]
    start: Vec<Vec<f64>>,
    #[serde(default)]
    known: Vec<Known>,
    objective: String,
    lookahead: Vec<u64>,
    stop: StopReason,
    evaluations: Option<u64>,
    failures: Option<u64>,
    infeasible: Option<u64>,
}

fn low() -> f64 {
    -5.0
}

fn high() -> f64 {
    5.0
}

#[derive(Debug, Deserialize)]
struct Known {
    point: Vec<f64>,
    value: f64,
}

/// The result of a case, as `expected.json` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Expected {
    stop: StopReason,
    evaluations: u64,
    failures: u64,
    infeasible: u64,
    best: Option<f64>,
    best_point: Option<Vec<f64>>,
    /// The CRC-32 of all points in the order asked.
    points: u32,
}

/// What a driver did.
#[derive(Debug, Clone, PartialEq)]
struct Trace {
    points: Vec<Vec<f64>>,
    result: Expected,
}

impl Case {
    fn direction(&self) -> Direction {
        if self.maximize { Direction::Maximize } else { Direction::Minimize }
    }

    fn space(&self) -> Space {
        let builder = Space::builder();
        let builder = match self.integer {
            true => builder.integers("x", self.dimension, self.low as i64, self.high as i64),
            false => builder.reals("x", self.dimension, self.low, self.high),
        };
        builder.build().unwrap()
    }

    fn algorithm(&self) -> Algorithm {
        match self.noise {
            Some(noise) => Algorithm::Auto(Auto::default().noise(noise)),
            None => self.algorithm.parse().unwrap(),
        }
    }

    fn rules(&self) -> StopRules {
        let mut rules = StopRules::default();
        (rules.evaluations, rules.target) = (Some(self.budget), self.target);
        rules.patience = self.patience;
        rules
    }

    fn run<'o>(&self, points: &'o mut Vec<Vec<f64>>) -> Run<'o> {
        let start = if self.maximize { maximize } else { minimize };
        let mut run = start(&self.space())
            .algorithm(self.algorithm())
            .seed(self.seed)
            .budget(self.budget)
            .retries(self.retries)
            .observe(|progress| {
                points.push(progress.point.coordinates().to_vec());
                Flow::Continue
            });
        if let Some(target) = self.target {
            run = run.target(target);
        }
        if let Some(patience) = self.patience {
            run = run.patience(patience);
        }
        for point in &self.start {
            run = run.start(point.clone());
        }
        for known in &self.known {
            run = run.known(known.point.clone(), known.value);
        }
        run
    }

    /// The study file, but for what differs between runs.
    fn study(&self) -> String {
        let script = cases_folder().join("objective.sh");
        let sign = if self.maximize { -1 } else { 1 };
        let elements: Vec<String> = (0..self.dimension).map(|i| format!("'{{x[{i}]}}'")).collect();
        let mut lines = vec![
            format!(
                "command = ['{}', '{}', '{sign}', '{{trial}}', {}]",
                script.display(),
                self.objective,
                elements.join(", ")
            ),
            format!("{} = 'json:f'", if self.maximize { "maximize" } else { "minimize" }),
            format!("algorithm = '{}'", self.algorithm),
            format!("budget = {}", self.budget),
            format!("seed = {}", self.seed),
            format!("retries = {}", self.retries),
        ];
        if self.objective == "infeasible" {
            lines.push("constraints = ['json:g']".into());
        }
        if let Some(noise) = self.noise {
            lines.push(format!("noise = '{}'", format!("{noise:?}").to_lowercase()));
        }
        lines.extend(self.target.map(|target| format!("target = {target:?}")));
        lines.extend(self.patience.map(|patience| format!("patience = {patience}")));
        let start: Vec<String> = self.start.iter().map(|x| format!("{{ x = {x:?} }}")).collect();
        lines.push(format!("start = [{}]", start.join(", ")));
        let known = |known: &Known| {
            format!("{{ params = {{ x = {:?} }}, value = {:?} }}", known.point, known.value)
        };
        let known: Vec<String> = self.known.iter().map(known).collect();
        lines.push(format!("known = [{}]", known.join(", ")));
        let range = match self.integer {
            true => format!("{}..{}", self.low, self.high),
            false => format!("{}:{}", self.low, self.high),
        };
        let parameters = format!("[parameters]\n'x[{}]' = '{range}'", self.dimension);
        // Settings that differ go before the table.
        format!("{}\nDIFFERENT\n{parameters}", lines.join("\n"))
    }
}

fn cases_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/drivers").canonicalize().unwrap()
}

/// The objective in this process.
struct Objective<'c> {
    case: &'c Case,
    calls: AtomicU64,
    attempted: Mutex<HashSet<Vec<u64>>>,
}

impl<'c> Objective<'c> {
    fn new(case: &'c Case) -> Self {
        Objective { case, calls: AtomicU64::new(0), attempted: Mutex::default() }
    }

    fn evaluate(&self, x: &[f64]) -> Outcome {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut bowl = 0.0;
        for x in x {
            let d = x - 1.0;
            bowl += d * d;
        }
        let over = x[0] - 2.0;
        let sign = self.case.direction().signed(1.0);
        match self.case.objective.as_str() {
            "bowl" => Outcome::from(sign * bowl),
            // One trial at a time, and no retries.
            "noisy" => Outcome::from(sign * (bowl + (7919 * call % 1000) as f64 / 1000.0 - 0.5)),
            "fails" if over > 0.0 => Outcome::failed("over"),
            "nan" if over > 0.0 => Outcome::from(f64::NAN),
            "infeasible" if over > 0.0 => {
                Outcome::Infeasible { violation: over, value: Some(sign * bowl) }
            }
            "fails" | "nan" | "infeasible" => Outcome::from(sign * bowl),
            "flaky" => {
                let key = x.iter().map(|x| x.to_bits()).collect();
                match self.attempted.lock().unwrap().insert(key) {
                    true => Outcome::failed("the first attempt"),
                    false => Outcome::from(sign * bowl),
                }
            }
            other => panic!("no objective is called {other}"),
        }
    }
}

fn crc(points: &[Vec<f64>]) -> u32 {
    let mut crc = !0u32;
    for byte in points.iter().flatten().flat_map(|x| x.to_le_bytes()) {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn trace_of_run(solution: &Solution, points: Vec<Vec<f64>>) -> Trace {
    let result = Expected {
        stop: solution.stop(),
        evaluations: solution.evaluations(),
        failures: solution.failures(),
        infeasible: solution.infeasible(),
        best: solution.value(),
        best_point: solution.point().map(|point| point.coordinates().to_vec()),
        points: crc(&points),
    };
    Trace { points, result }
}

fn sequential(case: &Case) -> Trace {
    let (mut points, objective) = (Vec::new(), Objective::new(case));
    let run = case.run(&mut points);
    let mut lowest = f64::INFINITY;
    let evaluate = |point: Point<'_>| {
        let outcome = objective.evaluate(point.coordinates());
        lowest = lowest.min(outcome.value().unwrap_or(lowest));
        outcome
    };
    let solution = run.run(evaluate).unwrap();
    if let Some(target) = case.target.filter(|_| case.objective == "noisy") {
        assert!(lowest <= target, "{}: no single value is as good as the target", case.name);
    }
    trace_of_run(&solution, points)
}

fn threads(case: &Case, lookahead: u64, threads: usize) -> Trace {
    let (mut points, objective) = (Vec::new(), Objective::new(case));
    let run = case.run(&mut points);
    let workers = Workers::Deterministic { threads, lookahead: lookahead as usize };
    let evaluate = |point: Point<'_>| objective.evaluate(point.coordinates());
    let solution = run.run_on(workers, evaluate).unwrap();
    trace_of_run(&solution, points)
}

/// A session that is saved, with what is out, and restored when `at` outcomes have been told.
fn saved_session(case: &Case, lookahead: u64, at: u64) -> Trace {
    let objective = Objective::new(case);
    let optimizer = case.algorithm().optimizer(&case.space(), Some(case.budget), case.seed);
    let mut session = Session::new(optimizer.unwrap(), case.direction());
    session.set_order(Order::InOrder { lookahead }).unwrap();
    for known in &case.known {
        session.known(known.point.clone(), known.value).unwrap();
    }
    for point in &case.start {
        session.start(point.clone()).unwrap();
    }
    session.set_rules(case.rules()).unwrap();
    let (mut points, mut out) = (Vec::new(), Vec::new());
    let mut is_restored = false;
    let stop = loop {
        match session.next(Duration::ZERO).unwrap() {
            Next::Evaluate(trial) => {
                // Those that were out are handed out again.
                let number = trial.number() as usize;
                points.resize(points.len().max(number + 1), Vec::new());
                points[number] = trial.point().to_vec();
                out.push(trial);
            }
            Next::Wait if !is_restored && session.counts().evaluations >= at => {
                is_restored = true;
                let candidates = out.iter().map(racecars::Trial::candidate).chain(session.queued());
                let pending: Vec<_> = candidates.cloned().collect();
                out.clear();
                let counts = session.counts();
                session =
                    Session::new(load(&session.optimizer().save()).unwrap(), case.direction());
                session.set_order(Order::InOrder { lookahead }).unwrap();
                session.set_rules(case.rules()).unwrap();
                session.resume(counts, pending).unwrap();
            }
            Next::Wait | Next::Told => {
                let trial = out.remove(0);
                let mut outcome = objective.evaluate(trial.point());
                for _ in 0..case.retries {
                    if outcome.is_retryable() {
                        outcome = objective.evaluate(trial.point());
                    }
                }
                session.tell(trial, outcome).unwrap();
            }
            Next::Stop(reason) => break reason,
        }
    };
    let counts = session.counts();
    let result = Expected {
        stop,
        evaluations: counts.evaluations,
        failures: counts.failures,
        infeasible: counts.infeasible,
        best: session.value(),
        best_point: session.point().map(|point| point.coordinates().to_vec()),
        points: crc(&points),
    };
    Trace { points, result }
}

fn trace_of_study(case: &Case, lab: &Lab, summary: &Summary) -> Trace {
    let space = case.space();
    let mut points = Vec::new();
    journal::read(&lab.study().join(journal::FILE), |_, event| {
        if let journal::Event::Ask(ask) = event {
            points.push(trace::encode(&space, ask.params).unwrap());
        }
        Ok(())
    })
    .unwrap();
    let chosen = summary.recommended.as_ref().or(summary.best.as_ref());
    let known = summary.best_known.as_ref().map(|known| (Some(known.value), &known.params));
    let best = known.or(chosen.map(|chosen| (chosen.value, &chosen.params)));
    let encode = |params: &serde_json::Value| {
        trace::encode(&space, &serde_json::value::to_raw_value(params).unwrap()).unwrap()
    };
    let result = Expected {
        stop: summary.stop,
        evaluations: summary.evaluations,
        failures: summary.failures,
        infeasible: summary.infeasible,
        best: best.and_then(|(value, _)| value),
        best_point: best.map(|(_, params)| encode(params)),
        points: crc(&points),
    };
    Trace { points, result }
}

/// A study, then the same from its journal: reopened, and in its report.
fn study(case: &Case, different: &str, interrupt_at: &[u64], expected: &Trace, what: &str) {
    let lab = Lab::new();
    let settings = case.study().replace("DIFFERENT", different);
    let mut interruptions = 0;
    for at in interrupt_at {
        let interrupt = Interrupt::new();
        let summary = lab.open(&settings).unwrap().run(&interrupt, &mut |status| {
            if status.evaluations >= *at && !interrupt.is_requested() {
                interrupt.request();
            }
        });
        interruptions += u64::from(summary.unwrap().stop == StopReason::Interrupted);
    }
    let summary = lab.run(&settings).unwrap();
    assert_agree(&trace_of_study(case, &lab, &summary), expected, what);
    let is_long = expected.result.evaluations > 20;
    assert!(interruptions > 0 || interrupt_at.is_empty() || !is_long, "{what}: not interrupted");
    if case.objective == "nan" {
        assert_eq!(summary.retries, 0, "{what}: NaN was retried");
    }
    let again = lab.run(&settings).unwrap();
    assert_agree(&trace_of_study(case, &lab, &again), expected, &format!("{what}, replayed"));
    let digest = report::Digest::read(&lab.study()).unwrap();
    let data: serde_json::Value =
        serde_json::from_str(&report::data(&lab.study(), digest.as_ref())).unwrap();
    let portfolio = serde_json::to_value(&summary.portfolio).unwrap();
    assert_eq!(data["portfolio"], portfolio, "{what}, in the report");
    let recommended = summary.recommended.as_ref().and_then(|chosen| chosen.value);
    assert_eq!(data["recommended"]["value"].as_f64(), recommended, "{what}, in the report");
    assert_eq!(data["state"]["stop"], summary.stop.name(), "{what}, in the report");
}

fn assert_agree(trace: &Trace, expected: &Trace, what: &str) {
    let common = trace.points.iter().zip(&expected.points).take_while(|(a, b)| a == b).count();
    assert!(
        trace.points == expected.points,
        "{what}: {} points, of which the first {common} of {} agree",
        trace.points.len(),
        expected.points.len()
    );
    assert_eq!(trace.result, expected.result, "{what}");
}

fn assert_as_said(case: &Case, result: &Expected, what: &str) {
    assert_eq!(result.stop, case.stop, "{what}");
    for (said, found) in [
        (case.evaluations, result.evaluations),
        (case.failures, result.failures),
        (case.infeasible, result.infeasible),
    ] {
        assert!(said.is_none_or(|said| said == found), "{what}: {result:?}");
    }
    // The cases test what they say.
    match case.objective.as_str() {
        "fails" | "nan" => assert!(result.failures > 0, "{what}"),
        "infeasible" => assert!(result.infeasible > 0, "{what}"),
        _ => assert_eq!((result.failures, result.infeasible), (0, 0), "{what}"),
    }
}

/// Runs a case on all drivers. Returns the result, by lookahead.
fn check(case: &Case) -> BTreeMap<u64, Expected> {
    let mut results = BTreeMap::new();
    for &lookahead in &case.lookahead {
        let what = |driver: &str| format!("{}, lookahead {lookahead}: {driver}", case.name);
        let expected = threads(case, lookahead, 1);
        assert_as_said(case, &expected.result, &what("one thread"));
        if lookahead == 1 {
            assert_agree(&sequential(case), &expected, &what("sequential"));
        }
        let workers: &[usize] = if lookahead == 1 { &[2] } else { &[1, 2, 4] };
        for &workers in workers {
            let on = |driver| what(&format!("{driver} on {workers} workers"));
            assert_agree(&threads(case, lookahead, workers), &expected, &on("threads"));
            let different =
                format!("deterministic = true\nlookahead = {lookahead}\njobs = {workers}");
            study(case, &different, &[], &expected, &on("deterministic study"));
            study(case, &different, &[5, 11], &expected, &on("interrupted study"));
        }
        for at in [0, 7] {
            assert_agree(&saved_session(case, lookahead, at), &expected, &what("saved session"));
        }
        results.insert(lookahead, expected.result);
    }
    // As outcomes come in, results depend on how long evaluations take, and more may be out when the target
    // is reached. Otherwise what the case says holds.
    if case.objective != "noisy" && case.stop != StopReason::Target {
        let lab = Lab::new();
        let summary = lab.run(&case.study().replace("DIFFERENT", "jobs = 3")).unwrap();
        let result = trace_of_study(case, &lab, &summary).result;
        assert_as_said(case, &result, &format!("{}: study", case.name));
    }
    results
}

#[test]
fn all_drivers_agree_on_all_cases() {
    let text = std::fs::read_to_string(cases_folder().join("cases.toml")).unwrap();
    let table: Table = toml::from_str(&text).unwrap();
    // Programs mostly wait, so that cases run side by side.
    let results: BTreeMap<String, BTreeMap<u64, Expected>> = std::thread::scope(|scope| {
        let running: Vec<_> = (table.case.iter())
            .map(|case| (case.name.clone(), scope.spawn(move || check(case))))
            .collect();
        let join = |(name, thread): (String, std::thread::ScopedJoinHandle<'_, _>)| {
            (name, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        };
        running.into_iter().map(join).collect()
    });
    assert_eq!(results.len(), table.case.len(), "names of cases are unique");
    let path = cases_folder().join("expected.json");
    if std::env::var_os("RACECARS_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&results).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    let expected: BTreeMap<String, BTreeMap<u64, Expected>> =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for (name, result) in &results {
        assert_eq!(Some(result), expected.get(name), "{name}; see tests/drivers/README.md");
    }
    assert_eq!(results.len(), expected.len());
}
