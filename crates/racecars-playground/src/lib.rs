//! The playground of the documentation: searches in two dimensions that a page steps through and draws.
//!
//! A page writes a [`Request`] as JSON where [`request`] says, calls [`answer`], and reads the answer at
//! [`answer_at`]. `docs/javascripts/playground.js` is that page; `./scripts/docs` builds this crate for
//! WebAssembly, which has no clock, threads or files: the library needs none.

mod panel;

use panel::Panel;
use racecars::Algorithm;
use racecars_problems::{Problem, catalogue::PROBLEMS};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The largest landscape, in points along one side.
const MAX_SIDE: usize = 500;

/// What a page may ask.
#[derive(Debug, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The functions and algorithms there are.
    Catalogue,
    /// A function's values on a grid, in rows from the lowest to the highest second coordinate.
    Landscape {
        /// The problem's name, with prefixes.
        problem: String,
        /// The seed of the problem's random parts.
        seed: u64,
        /// The number of points along each side.
        side: usize,
    },
    /// Begins a search in a panel, in place of the one that was there.
    Start {
        /// The panel's number.
        panel: u32,
        /// The problem's name, with prefixes.
        problem: String,
        /// The algorithm's name.
        algorithm: String,
        /// The number of evaluations that the search may plan with.
        budget: u64,
        /// The seed of the problem and of the search.
        seed: u64,
    },
    /// Makes some evaluations of a panel's search.
    Step {
        /// The panel's number.
        panel: u32,
        /// The number of evaluations.
        evaluations: u64,
    },
}

#[derive(Serialize)]
struct Catalogue {
    problems: Vec<Named>,
    algorithms: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
    about: &'static str,
}

#[derive(Serialize)]
struct Landscape {
    /// The range of both coordinates.
    range: (f64, f64),
    minimizer: Vec<f64>,
    values: Vec<f64>,
}

#[derive(Serialize)]
struct Failure {
    error: String,
}

/// The panels of a page.
#[derive(Debug, Default)]
pub struct Playground {
    panels: BTreeMap<u32, Panel>,
}

impl Playground {
    /// The answer to a request, both as JSON. What is wrong with a request is `{"error": ..}`.
    pub fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let answer = self.try_answer(request).unwrap_or_else(|error| json(&Failure { error }));
        answer.into_bytes()
    }

    fn try_answer(&mut self, request: &[u8]) -> Result<String, String> {
        let request: Request = serde_json::from_slice(request).map_err(|e| e.to_string())?;
        match request {
            Request::Catalogue => Ok(json(&catalogue())),
            Request::Landscape { problem, seed, side } => {
                Ok(json(&landscape(&in_the_plane(&problem, seed)?, side)?))
            }
            Request::Start { panel, problem, algorithm, budget, seed } => {
                let problem = in_the_plane(&problem, seed)?;
                self.panels.insert(panel, Panel::start(problem, &algorithm, budget, seed)?);
                Ok("{}".to_string())
            }
            Request::Step { panel, evaluations } => {
                let found = self.panels.get_mut(&panel);
                let searched = found.ok_or_else(|| format!("panel {panel} was not started"))?;
                Ok(json(&searched.step(evaluations)?))
            }
        }
    }
}

fn json(answer: &impl Serialize) -> String {
    // The types above have no key that is not a text.
    serde_json::to_string(answer).unwrap_or_default()
}

/// Functions of reals, which take prefixes, and the algorithms for them.
fn catalogue() -> Catalogue {
    let problems = PROBLEMS.iter().filter(|listed| listed.takes_prefixes);
    let algorithms = Algorithm::NAMES.iter().filter_map(|&name| {
        let algorithm: Algorithm = name.parse().ok()?;
        let plane = racecars::Space::cube(2, -1.0, 1.0).ok()?;
        algorithm.optimizer(&plane, Some(100), 0).ok()?;
        Some(Named { name, about: algorithm.about() })
    });
    Catalogue {
        problems: problems.map(|listed| Named { name: listed.name, about: listed.about }).collect(),
        algorithms: algorithms.collect(),
    }
}

/// A problem with two real coordinates of the same range.
fn in_the_plane(name: &str, seed: u64) -> Result<Problem, String> {
    let problem = Problem::named(name, 2, seed).map_err(|error| error.to_string())?;
    match problem.transformation() {
        Some(_) => Ok(problem),
        None => Err(format!("problem `{name}` has coordinates that are not real numbers")),
    }
}

fn landscape(problem: &Problem, side: usize) -> Result<Landscape, String> {
    if !(2..=MAX_SIDE).contains(&side) {
        return Err(format!("a side of {side} points is not from 2 to {MAX_SIDE}"));
    }
    let extent = problem.space().axis(0).extent();
    let at = |i: usize| extent.low + (extent.high - extent.low) * i as f64 / (side - 1) as f64;
    let rows = 0..side;
    Ok(Landscape {
        range: (extent.low, extent.high),
        minimizer: problem.minimizer(),
        values: rows
            .flat_map(|y| (0..side).map(move |x| [x, y]))
            .map(|point| problem.value_at(&point.map(at)))
            .collect(),
    })
}

thread_local! {
    static PLAYGROUND: RefCell<Playground> = RefCell::default();
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for a request of so many bytes, and says where it goes.
#[allow(unsafe_code, reason = "the name is for JavaScript, and nothing else has it")]
#[unsafe(no_mangle)]
pub extern "C" fn request(length: usize) -> *mut u8 {
    REQUEST.with_borrow_mut(|request| {
        request.clear();
        request.resize(length, 0);
        request.as_mut_ptr()
    })
}

/// Answers the request; the length of the answer.
#[allow(unsafe_code, reason = "the name is for JavaScript, and nothing else has it")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    let text = REQUEST
        .with_borrow(|request| PLAYGROUND.with_borrow_mut(|playground| playground.answer(request)));
    ANSWER.with_borrow_mut(|answer| {
        *answer = text;
        answer.len()
    })
}

/// Where the answer is.
#[allow(unsafe_code, reason = "the name is for JavaScript, and nothing else has it")]
#[unsafe(no_mangle)]
pub extern "C" fn answer_at() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn ask(playground: &mut Playground, request: &Value) -> Value {
        let answer = playground.answer(request.to_string().as_bytes());
        serde_json::from_slice(&answer).expect("an answer is JSON")
    }

    #[test]
    fn every_algorithm_of_the_catalogue_steps_on_every_function() {
        let mut playground = Playground::default();
        let catalogue = ask(&mut playground, &json!({"what": "catalogue"}));
        let names = |list: &str| -> Vec<String> {
            let rows = catalogue[list].as_array().expect("a list");
            rows.iter().map(|row| row["name"].as_str().expect("a name").to_string()).collect()
        };
        assert!(names("algorithms").contains(&"race-cars".to_string()));
        for problem in names("problems") {
            for algorithm in names("algorithms") {
                let start = json!({"what": "start", "panel": 0, "problem": problem, "seed": 1,
                    "algorithm": algorithm, "budget": 60});
                assert_eq!(ask(&mut playground, &start), json!({}), "{algorithm} on {problem}");
                let step = json!({"what": "step", "panel": 0, "evaluations": 60});
                let seen = ask(&mut playground, &step);
                assert_eq!(seen["evaluations"], 60, "{algorithm} on {problem}: {seen}");
                assert_eq!(seen["points"].as_array().map(Vec::len), Some(60));
            }
        }
    }

    #[test]
    fn steps_do_not_depend_on_how_many_are_taken_at_a_time() {
        let mut playground = Playground::default();
        for panel in [1, 2] {
            let start = json!({"what": "start", "panel": panel, "problem": "shifted-ackley",
                "algorithm": "race-cars", "budget": 100, "seed": 3});
            ask(&mut playground, &start);
        }
        let whole = ask(&mut playground, &json!({"what": "step", "panel": 1, "evaluations": 100}));
        for _ in 0..10 {
            ask(&mut playground, &json!({"what": "step", "panel": 2, "evaluations": 9}));
        }
        let last = ask(&mut playground, &json!({"what": "step", "panel": 2, "evaluations": 10}));
        assert_eq!(whole["best"], last["best"]);
        assert_eq!(whole["region"], last["region"]);
        assert!(whole["region"]["share"].as_f64().is_some_and(|share| share < 1.0), "{whole}");
    }

    #[test]
    fn a_landscape_has_its_minimum_at_the_minimizer() {
        let mut playground = Playground::default();
        let request =
            json!({"what": "landscape", "problem": "shifted-sphere", "seed": 5, "side": 201});
        let seen = ask(&mut playground, &request);
        let values: Vec<f64> = serde_json::from_value(seen["values"].clone()).expect("numbers");
        assert_eq!(values.len(), 201 * 201);
        let lowest = (0..values.len()).min_by(|&a, &b| values[a].total_cmp(&values[b]));
        let at = lowest.expect("there are values");
        for (i, share) in [at % 201, at / 201].into_iter().enumerate() {
            let there = -10.0 + 20.0 * share as f64 / 200.0;
            let minimizer = seen["minimizer"][i].as_f64().expect("a number");
            assert!((there - minimizer).abs() <= 0.05, "{there} and {minimizer}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut playground = Playground::default();
        for (request, reason) in [
            (json!({"what": "dance"}), "unknown variant `dance`"),
            (json!({"what": "step", "panel": 4, "evaluations": 1}), "panel 4 was not started"),
            (json!({"what": "landscape", "problem": "acley", "seed": 1, "side": 9}), "acley"),
            (json!({"what": "landscape", "problem": "ackley", "seed": 1, "side": 9999}), "9999"),
            (
                json!({"what": "landscape", "problem": "integer-sphere", "seed": 1, "side": 9}),
                "not real numbers",
            ),
            (
                json!({"what": "start", "panel": 0, "problem": "ackley", "algorithm": "magic",
                    "budget": 10, "seed": 1}),
                "magic",
            ),
            (
                json!({"what": "start", "panel": 0, "problem": "ackley", "algorithm": "auto",
                    "budget": 0, "seed": 1}),
                "budget",
            ),
        ] {
            let answer = ask(&mut playground, &request);
            let error = answer["error"].as_str().unwrap_or_else(|| panic!("{request}: {answer}"));
            assert!(error.contains(reason), "{request}: {error}");
        }
        let answer = playground.answer(b"\xff{");
        assert!(answer.starts_with(b"{\"error\""));
    }

    #[test]
    fn the_page_reads_what_it_asked_for() {
        let text = br#"{"what":"step","panel":7,"evaluations":1}"#;
        assert!(!request(text.len()).is_null());
        REQUEST.with_borrow_mut(|request| request.copy_from_slice(text));
        let length = answer();
        assert!(!answer_at().is_null());
        ANSWER.with_borrow(|answer| {
            assert_eq!(answer.len(), length);
            assert_eq!(answer, br#"{"error":"panel 7 was not started"}"#);
        });
    }
}
