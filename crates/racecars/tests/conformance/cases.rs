//! The algorithms and spaces of the suite, and a driver with many pending candidates.

use crate::common::{bits, bowl};
use racecars::random::Random;
use racecars::{Algorithm, Auto, Candidate, ErrorKind, Noise, Optimizer, Outcome, Space};

/// The names of the spaces that an algorithm refuses. All other algorithms take all spaces.
const REFUSALS: [(&str, &[&str]); 12] = [
    ("gp", &["5000 reals"]),
    ("cma-es", &["orders, selections and shares"]),
    ("sep-cma-es", &["orders, selections and shares"]),
    ("cma-es", &["5000 reals", "categories and booleans", "mixed", "conditions"]),
    ("sep-cma-es", &["categories and booleans", "mixed", "conditions"]),
    ("quadratic", DISCRETE),
    ("quadratic", &["5000 reals"]),
    ("sqp", DISCRETE),
    ("sqp", &["5000 reals"]),
    ("quasi-newton", DISCRETE),
    ("zo-adam", DISCRETE),
    ("embedding", DISCRETE),
];

/// The spaces with a discrete coordinate or with rules.
const DISCRETE: &[&str] = &[
    "log real, grid and levels",
    "integers",
    "categories and booleans",
    "mixed",
    "single values beside others",
    "single values beside a real",
    "one point",
    "six points",
    "60 points, one name an array",
    "extreme ranges",
    "countless integers",
    "conditions",
    "constrained reals",
    "constrained and mixed",
    "few points that satisfy constraints",
    "orders, selections and shares",
];

/// The spaces on which every test runs the Gaussian process, which takes 20 times as long as all other algorithms
/// together. On the others `every_case` has it, and with RACECARS_FULL (`./scripts/test --full`) every test.
const GAUSSIAN_PROCESS: &[&str] = &[
    "one real",
    "mixed",
    "one point",
    "six points",
    "60 points, one name an array",
    "conditions",
    "constrained and mixed",
    "few points that satisfy constraints",
];

fn is_refused(algorithm: &str, space: &str) -> bool {
    REFUSALS.iter().any(|(name, spaces)| *name == algorithm && spaces.contains(&space))
}

/// One algorithm on one space.
pub(crate) struct Case {
    pub(crate) algorithm: Algorithm,
    pub(crate) space: Space,
    /// The number of seeds in a test that tries several.
    pub(crate) seeds: u64,
    /// Whether tests that need not have every case leave it out.
    is_slow: bool,
}

impl Case {
    pub(crate) fn optimizer(&self, budget: Option<u64>, seed: u64) -> Box<dyn Optimizer> {
        self.algorithm.optimizer(&self.space, budget, seed).unwrap()
    }

    pub(crate) fn session(&self, seed: u64) -> Session {
        Session::new(self.optimizer(Some(500), seed), seed)
    }

    /// The number of steps in a test: enough to fill any training set, fewer if steps are slow.
    pub(crate) fn steps(&self) -> usize {
        if self.space.dimension() > 1000 { 60 } else { 150 }
    }

    /// Whether two runs are very unlikely to be equal by chance.
    pub(crate) fn has_many_points(&self) -> bool {
        self.space.cardinality().is_none_or(|points| points > 100)
    }
}

/// Every algorithm on every space that it takes, the slow ones in their spaces only.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    every_case().filter(|case| !case.is_slow)
}

/// Every algorithm on every space that it takes. Each case is printed, so that a failure names it.
/// Unexpected refusals fail, and so do expected ones that do not happen.
pub(crate) fn every_case() -> impl Iterator<Item = Case> {
    let is_full = std::env::var_os("RACECARS_FULL").is_some();
    let with_surrogate = "cma-es(surrogate=true)".parse().unwrap();
    let named = Algorithm::all().chain([with_surrogate]).flat_map(|algorithm| {
        spaces().into_iter().map(move |(name, space)| (algorithm.clone(), name, space))
    });
    named.filter_map(move |(algorithm, name, space)| {
        let is_gp = algorithm.name() == "gp" && !is_full;
        let (seeds, is_slow) =
            (if is_gp { 1 } else { 3 }, is_gp && !GAUSSIAN_PROCESS.contains(&name));
        let optimizer = algorithm.optimizer(&space, None, 0);
        match (optimizer, is_refused(algorithm.name(), name)) {
            (Ok(_), false) => {
                eprintln!("{algorithm} on {name}");
                Some(Case { algorithm, space, seeds, is_slow })
            }
            (Err(error), true) => {
                assert_eq!(error.kind(), ErrorKind::Setting, "{algorithm} on {name}: {error}");
                assert_eq!(algorithm.takes(&space), Err(error));
                None
            }
            (Ok(_), true) => panic!("{algorithm} takes {name}, which it is listed to refuse"),
            (Err(error), false) => panic!("{algorithm} refuses {name}: {error}"),
        }
    })
}

/// The cases, without the second evaluation by which `auto` detects noise: tests/noise.rs covers it.
pub(crate) fn deterministic_cases() -> impl Iterator<Item = Case> {
    cases().map(|case| match case.algorithm {
        Algorithm::Auto(_) => {
            Case { algorithm: Algorithm::Auto(Auto::default().noise(Noise::No)), ..case }
        }
        _ => case,
    })
}

pub(crate) fn spaces() -> Vec<(&'static str, Space)> {
    let builders = [
        ("one real", Space::builder().real("x", -1.0, 3.0)),
        ("40 reals", Space::builder().reals("x", 40, -5.0, 5.0)),
        ("5000 reals", Space::builder().reals("x", 5000, 0.0, 1.0)),
        (
            "log real, grid and levels",
            (Space::builder().log_real("rate", 1e-6, 1.0))
                .grid("drop", 0.0, 0.9, 0.1)
                .levels("size", ["small", "medium", "large"]),
        ),
        ("integers", (Space::builder().integers("i", 6, -20, 20)).log_integer("width", 1, 4096)),
        (
            "categories and booleans",
            (Space::builder().categorical("c", ["a", "b", "c", "d", "e"]).boolean("b"))
                .array("bits", 12, racecars::Domain::Boolean)
                .categorical("mixed", [racecars::Value::from(1), "one".into(), true.into()]),
        ),
        (
            "mixed",
            (Space::builder().reals("x", 3, -1.0, 1.0).log_real("rate", 1e-3, 1e3))
                .integer("i", 0, 9)
                .grid("g", -1.0, 1.0, 0.25)
                .levels("l", [1, 2, 4, 8])
                .categorical("c", ["a", "b", "c"])
                .boolean("b"),
        ),
        (
            "single values beside others",
            (Space::builder().integer("three", 3, 3).categorical("only", ["this"]))
                .integer("i", 0, 500)
                .levels("one", [1.5]),
        ),
        (
            "single values beside a real",
            Space::builder().integer("three", 3, 3).real("x", 0.0, 1.0).levels("one", ["l"]),
        ),
        ("one point", Space::builder().integer("three", 3, 3).categorical("only", ["this"])),
        ("six points", Space::builder().integer("i", 0, 2).boolean("b")),
        (
            "60 points, one name an array",
            (Space::builder().integers("i", 2, 1, 2)).log_integer("l", 1, 5).levels("v", [1, 2, 3]),
        ),
        (
            "conditions",
            (Space::builder().categorical("kernel", ["linear", "poly", "rbf"]))
                .log_real("c", 1e-3, 1e3)
                .integer("degree", 2, 5)
                .when("kernel = poly")
                .log_real("gamma", 1e-4, 1.0)
                .when("kernel in (poly, rbf)")
                .reals("w", 3, 0.0, 1.0)
                .when("degree > 3"),
        ),
        (
            "constrained reals",
            (Space::builder().reals("x", 5, -1.0, 1.0).real("y", 0.0, 10.0))
                .subject_to("x[0] < x[1]")
                .subject_to("sum(x) + y <= 0.5"),
        ),
        (
            "constrained and mixed",
            (Space::builder().real("x", 0.0, 1.0).integer("i", 0, 40).categorical("m", ["a", "b"]))
                .levels("l", ["low", "middle", "high"])
                .when("m = b")
                .subject_to("not (m = a and i > 3)")
                .subject_to("l < high or x > 0.9"),
        ),
        (
            "few points that satisfy constraints",
            (Space::builder().integers("i", 3, 0, 4).boolean("b"))
                .subject_to("i[0] + i[1] + i[2] = 3")
                .subject_to("b or i[0] > 1"),
        ),
        (
            "orders, selections and shares",
            (Space::builder().permutation("order", 7).simplex("mix", 4))
                .subset("pick", 1..=3, ["a", "b", "c", "d", "e"])
                .real("x", 0.0, 1.0),
        ),
        (
            "extreme ranges",
            (Space::builder().real("wide", -8e307, 8e307).real("tiny", 0.0, 1e-320))
                .real("positive", 1e-300, 1e300)
                .real("narrow", 1.0, 1.0 + 4.0 * f64::EPSILON)
                .log_real("ratio", 5e-324, 1e308)
                .log_real("same", 1e300, 1e300 + 1e285)
                .integer("many", -(1 << 52), 1 << 52)
                .log_integer("log", 1, 1 << 53),
        ),
        (
            "extreme reals",
            (Space::builder().real("wide", -8e307, 8e307).reals("tiny", 2, 0.0, 1e-320))
                .real("least", 0.0, 5e-324)
                .real("narrow", 1.0, 1.0 + 4.0 * f64::EPSILON)
                .log_real("ratio", 5e-324, 1e308)
                .log_real("same", 1e300, 1e300 + 1e285),
        ),
        (
            "countless integers",
            (Space::builder().integers("i", 3, -(1 << 52), 1 << 52))
                .log_integer("log", 1 << 52, 1 << 53)
                .grid("g", -1e9, 1e9, 0.25),
        ),
    ];
    builders.map(|(name, builder)| (name, builder.build().unwrap())).into()
}

/// An optimizer with up to eight pending candidates, which are told in random order.
pub(crate) struct Session {
    pub(crate) optimizer: Box<dyn Optimizer>,
    pub(crate) out: Vec<Candidate>,
    /// The bits of every point asked.
    pub(crate) asked: Vec<Vec<u64>>,
    pub(crate) random: Random,
}

impl Session {
    pub(crate) fn new(optimizer: Box<dyn Optimizer>, seed: u64) -> Self {
        Session { optimizer, out: Vec::new(), asked: Vec::new(), random: Random::stream(seed, 1) }
    }

    /// Asks, or tells a random pending candidate. Returns false if there is nothing left to do.
    pub(crate) fn step(&mut self) -> bool {
        if self.out.is_empty() || (self.out.len() < 8 && self.random.chance(0.5)) {
            match self.optimizer.ask() {
                Some(candidate) => {
                    self.asked.push(bits(candidate.point()));
                    self.out.push(candidate);
                    return true;
                }
                None if self.out.is_empty() => return false,
                None => {}
            }
        }
        let candidate = self.out.swap_remove(self.random.index(self.out.len()));
        let outcome = match self.random.below(10) {
            0 => Outcome::failed("a random failure"),
            1 => Outcome::infeasible(self.random.unit()),
            _ => Outcome::from(bowl(self.optimizer.space(), candidate.point())),
        };
        self.optimizer.tell(candidate, outcome).unwrap();
        true
    }

    pub(crate) fn steps(&mut self, count: usize) {
        for _ in 0..count {
            if !self.step() {
                break;
            }
        }
    }
}
