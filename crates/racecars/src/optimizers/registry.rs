//! The registry: one row per algorithm. Names, parsing, construction, restoring, accepted spaces and
//! settings are derived from the row and from the declaration of the settings.

use super::Optimizer;
use super::cma_es::{CmaEs, CmaEsSearch};
use super::differential_evolution::{DeSearch, DifferentialEvolution, LShade, Strategy};
use super::embedding::{EmbeddingSearch, SequentialEmbedding};
use super::evolution::{Evolution, EvolutionSearch};
use super::gaussian_process::{GaussianProcess, GpSearch};
use super::local_search::{LocalSearch, LocalSearchState};
use super::quadratic::{Quadratic, QuadraticSearch};
use super::quasi_newton::{QuasiNewton, QuasiNewtonSearch};
use super::quasi_random::{QuasiRandom, QuasiRandomSearch};
use super::racos::{Classification, RaceCars, RacosSearch, Variant};
use super::random_search::{RandomSearch, UniformSearch};
use super::saved::MAX_NESTING;
use super::settings::{Field, GivenSetting, Parsed, Refusal, Setting, SettingValue, Settings};
use super::shell::{Setup, Shell};
use super::sqp::{Sqp, SqpSearch};
use super::zo_adam::{ZoAdam, ZoAdamSearch};
use crate::error::{Error, ErrorKind, Result, ensure};
use crate::portfolio::PortfolioSearch;
use crate::portfolio::auto::{Auto, AutoRule};
use crate::portfolio::held::HeldSearch;
use crate::portfolio::polish::PolishSearch;
use crate::portfolio::relay::{Relay, RelayRule};
use crate::portfolio::scan::ScanSearch;
use crate::random::Random;
use crate::space::{Axis, Space};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The spaces that an algorithm accepts.
#[derive(Debug, Clone, Copy)]
struct AcceptedSpaces {
    coordinates: AcceptedCoordinates,
    max_dimension: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum AcceptedCoordinates {
    Any,
    /// All except unordered coordinates with three or more values.
    Ordered,
    Continuous,
}

impl AcceptedSpaces {
    const ANY: AcceptedSpaces =
        AcceptedSpaces { coordinates: AcceptedCoordinates::Any, max_dimension: usize::MAX };
    const ORDERED: AcceptedSpaces =
        AcceptedSpaces { coordinates: AcceptedCoordinates::Ordered, ..AcceptedSpaces::ANY };
    const CONTINUOUS: AcceptedSpaces =
        AcceptedSpaces { coordinates: AcceptedCoordinates::Continuous, ..AcceptedSpaces::ANY };

    const fn up_to(self, max_dimension: usize) -> Self {
        AcceptedSpaces { max_dimension, ..self }
    }

    /// Why this space is not accepted; `None` if it is.
    fn obstacle(&self, space: &Space) -> Option<String> {
        let AcceptedSpaces { coordinates, max_dimension } = *self;
        if space.dimension() > max_dimension {
            let n = space.dimension();
            return Some(format!("takes at most {max_dimension} coordinates, the space has {n}"));
        }
        if coordinates == AcceptedCoordinates::Continuous && space.has_rules() {
            return Some("takes spaces without conditions, constraints and structures".to_string());
        }
        let is_refused = |axis: Axis| match (coordinates, axis) {
            (AcceptedCoordinates::Any, _) | (_, Axis::Continuous { .. }) => false,
            (AcceptedCoordinates::Ordered, Axis::Unordered { last }) => last > 1.0,
            (AcceptedCoordinates::Ordered, _) => false,
            (AcceptedCoordinates::Continuous, _) => true,
        };
        let (refused, _) = space.axes().find(|(_, axis)| is_refused(*axis))?;
        let name = space.coordinate_name(refused.start);
        Some(match coordinates {
            AcceptedCoordinates::Continuous => {
                format!("takes continuous coordinates, and `{name}` is discrete")
            }
            _ => format!("takes coordinates with an order, and the values of `{name}` have none"),
        })
    }
}

macro_rules! registry {
    ($(
        $(#[doc = $about:literal])*
        $function:ident, $variant:ident($settings:ty), $name:literal, $takes:expr, $search:ty, $new:expr;
    )*) => {
        /// An algorithm and its settings. Settings that are not given are derived from the dimension and
        /// the budget. The default is [`Algorithm::auto`].
        ///
        /// ```
        /// use racecars::{Algorithm, RaceCars};
        ///
        /// let by_name: Algorithm = "race-cars".parse()?;
        /// assert_eq!(by_name, Algorithm::race_cars());
        ///
        /// let tuned = Algorithm::RaceCars(RaceCars::default().gamma(0.9).rho(0.01));
        /// assert_eq!(tuned.to_string(), "race-cars(gamma=0.9, rho=0.01)");
        /// assert_eq!(tuned.to_string().parse::<Algorithm>()?, tuned);
        /// # Ok::<(), racecars::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Algorithm {
            $( $(#[doc = $about])* $variant($settings), )*
        }

        impl Algorithm {
            /// The names of all algorithms.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            $(
                $(#[doc = $about])*
                /// All settings are derived.
                pub fn $function() -> Self {
                    Algorithm::$variant(Default::default())
                }
            )*

            /// The algorithm's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $( Algorithm::$variant(_) => $name, )*
                }
            }

            /// A description in one or two sentences.
            pub fn about(&self) -> &'static str {
                match self {
                    $( Algorithm::$variant(_) => concat!($($about),*).trim_ascii_start(), )*
                }
            }

            /// The algorithm of this name, with all settings derived.
            fn named(name: &str) -> Option<Self> {
                match name {
                    $( $name => Some(Algorithm::$function()), )*
                    _ => None,
                }
            }

            fn accepted_spaces(&self) -> AcceptedSpaces {
                match self {
                    $( Algorithm::$variant(_) => $takes, )*
                }
            }

            fn settings_by_name(&self) -> &dyn Settings {
                match self {
                    $( Algorithm::$variant(settings) => settings, )*
                }
            }

            fn settings_by_name_mut(&mut self) -> &mut dyn Settings {
                match self {
                    $( Algorithm::$variant(settings) => settings, )*
                }
            }

            fn build(&self, setup: Setup<'_>) -> Result<Box<dyn Optimizer>> {
                match self {
                    $(
                        Algorithm::$variant(settings) => {
                            let new: fn(&$settings, Setup<'_>, &mut Random) -> Result<$search> =
                                $new;
                            let make = |random: &mut Random| new(settings, setup, random);
                            Ok(Box::new(Shell::new($name, setup, make)?))
                        }
                    )*
                }
            }
        }

        /// Restores the optimizer that was saved under this name.
        pub(super) fn restore(
            name: &str,
            space: Space,
            state: &[u8],
            depth: usize,
        ) -> Result<Box<dyn Optimizer>> {
            match name {
                $(
                    $name => {
                        Algorithm::$function().takes(&space)?;
                        Ok(Box::new(Shell::<$search>::restore($name, space, state, depth)?))
                    }
                )*
                // Members of portfolios that are not algorithms of their own.
                HeldSearch::REALS | HeldSearch::ORDERED if depth > 0 && !space.has_rules() => {
                    let names = [HeldSearch::REALS, HeldSearch::ORDERED];
                    let name = names[usize::from(name == HeldSearch::ORDERED)];
                    Ok(Box::new(Shell::<HeldSearch>::restore(name, space, state, depth)?))
                }
                PolishSearch::NAME if depth > 0 && space.is_real_box() => {
                    let polish =
                        Shell::<PolishSearch>::restore(PolishSearch::NAME, space, state, depth)?;
                    Ok(Box::new(polish))
                }
                ScanSearch::NAME if depth > 0 && space.is_real_box() => {
                    Ok(Box::new(Shell::<ScanSearch>::restore(ScanSearch::NAME, space, state, depth)?))
                }
                other => Err(Error::saved(format!(
                    "saved with algorithm `{other}`, which this version does not have"
                ))),
            }
        }
    };
}

registry! {
    /// A portfolio that surveys the objective, then chooses the algorithms. The default.
    auto, Auto(Auto), "auto", AcceptedSpaces::ANY, PortfolioSearch<AutoRule>,
        |settings, setup, random| AutoRule::portfolio(settings, setup, random);
    /// RACE-CARS: SRACOS within a region that shrinks around the best point (Algorithm 4).
    race_cars, RaceCars(RaceCars), "race-cars", AcceptedSpaces::ANY, RacosSearch,
        |settings, setup, _| RacosSearch::race_cars(settings, setup);
    /// SRACOS: sequential classification-based optimization (Algorithm 3).
    sracos, Sracos(Classification), "sracos", AcceptedSpaces::ANY, RacosSearch,
        |settings, setup, _| RacosSearch::whole_space(Variant::Sracos, settings, setup);
    /// RACOS: classification-based optimization in batches (Algorithms 1 and 2).
    racos, Racos(Classification), "racos", AcceptedSpaces::ANY, RacosSearch,
        |settings, setup, _| RacosSearch::whole_space(Variant::Racos, settings, setup);
    /// CMA-ES: evolution of a normal distribution.
    cma_es, CmaEs(CmaEs), "cma-es", AcceptedSpaces::ORDERED.up_to(4096), CmaEsSearch,
        |settings, setup, random| CmaEsSearch::new(settings, false, setup, random);
    /// Separable CMA-ES: one variance per coordinate instead of the full covariance matrix. Its cost is
    /// linear instead of quadratic in the dimension, and it adapts faster, but ignores interactions.
    sep_cma_es, SepCmaEs(CmaEs), "sep-cma-es", AcceptedSpaces::ORDERED, CmaEsSearch,
        |settings, setup, random| CmaEsSearch::new(settings, true, setup, random);
    /// Differential evolution, best/1/bin: a difference of two members is added to the best one.
    de, De(DifferentialEvolution), "de", AcceptedSpaces::ANY, DeSearch,
        |settings, setup, random| DeSearch::classic(Strategy::Best, settings, setup, random);
    /// Differential evolution, rand/1/bin: a difference of two members is added to a third.
    de_rand, DeRand(DifferentialEvolution), "de-rand", AcceptedSpaces::ANY, DeSearch,
        |settings, setup, random| DeSearch::classic(Strategy::Random, settings, setup, random);
    /// L-SHADE: differential evolution, current-to-pbest/1 with an archive, weights and crossover rates
    /// learned from success, and a population that shrinks over the budget, if there is one.
    l_shade, LShade(LShade), "l-shade", AcceptedSpaces::ANY, DeSearch,
        |settings, setup, random| DeSearch::l_shade(settings, setup, random);
    /// Evolution for discrete coordinates: climbs by single changes, mixing of local optima, and restarts.
    evolution, Evolution(Evolution), "evolution", AcceptedSpaces::ANY, EvolutionSearch,
        |_, setup, random| Ok(EvolutionSearch::new(setup, random));
    /// Local search: moves that fit each kind of coordinate (swaps, insertions and reversals of orders,
    /// exchanges of items, transfers of shares), late acceptance, and restarts near the best point.
    local_search, LocalSearch(LocalSearch), "local-search", AcceptedSpaces::ANY, LocalSearchState,
        |_, setup, _| Ok(LocalSearchState::new(setup));
    /// Gaussian process: a model of the objective within a trust region, for few and expensive evaluations.
    gp, Gp(GaussianProcess), "gp", AcceptedSpaces::ANY.up_to(1000), GpSearch,
        |settings, setup, random| GpSearch::new(settings, setup, random);
    /// Quasi-Newton descents on difference quotients, for smooth functions: L-BFGS within bounds, with restarts.
    quasi_newton, QuasiNewton(QuasiNewton), "quasi-newton", AcceptedSpaces::CONTINUOUS, QuasiNewtonSearch,
        |settings, setup, _| QuasiNewtonSearch::new(settings, setup);
    /// ZO-Adam: gradient descent with adaptive moments on estimated gradients.
    zo_adam, ZoAdam(ZoAdam), "zo-adam", AcceptedSpaces::CONTINUOUS, ZoAdamSearch,
        |settings, setup, random| ZoAdamSearch::new(settings, setup, random);
    /// Quadratic models in a trust region, in the manner of BOBYQA: for smooth functions, with few evaluations
    /// or to the last digit. Restarts elsewhere after convergence.
    quadratic, Quadratic(Quadratic), "quadratic", AcceptedSpaces::CONTINUOUS.up_to(200), QuadraticSearch,
        |settings, setup, random| QuadraticSearch::new(settings, setup, random);
    /// Sequential quadratic programming on difference quotients, for smooth objectives whose evaluation measures
    /// smooth constraints; with restarts.
    sqp, Sqp(Sqp), "sqp", AcceptedSpaces::CONTINUOUS.up_to(200), SqpSearch,
        |_, setup, _| Ok(SqpSearch::new(setup));
    /// Sequential random embedding: another algorithm searches one random subspace after the other.
    embedding, Embedding(SequentialEmbedding), "embedding", AcceptedSpaces::CONTINUOUS, EmbeddingSearch,
        |settings, setup, _| EmbeddingSearch::new(settings, setup);
    /// A custom portfolio: algorithms run one after the other, each from the best point known.
    relay, Relay(Relay), "relay", AcceptedSpaces::ANY, PortfolioSearch<RelayRule>,
        |settings, setup, _| RelayRule::portfolio(settings, setup);
    /// Quasi-random search: a scrambled Halton sequence.
    quasi_random, QuasiRandom(QuasiRandom), "quasi-random", AcceptedSpaces::ANY, QuasiRandomSearch,
        |_, _, random| Ok(QuasiRandomSearch::new(random));
    /// Random search: uniform sampling.
    random, Random(RandomSearch), "random", AcceptedSpaces::ANY, UniformSearch,
        |_, _, _| Ok(UniformSearch);
}

impl Algorithm {
    /// All algorithms, with all settings derived.
    pub fn all() -> impl Iterator<Item = Algorithm> {
        Algorithm::NAMES.iter().filter_map(|name| Algorithm::named(name))
    }

    /// The settings.
    pub fn settings(&self) -> Vec<Setting> {
        let fields = self.settings_by_name().fields().into_iter();
        fields.map(|Field { name, about, .. }| Setting { name, about }).collect()
    }

    /// The settings that differ from their defaults.
    pub fn given(&self) -> Vec<GivenSetting> {
        let fields = self.settings_by_name().fields().into_iter();
        fields
            .filter_map(|Field { name, given, .. }| Some(GivenSetting { name, text: given? }))
            .collect()
    }

    /// Sets one of [`Algorithm::settings`] from text, as on the command line and in study files.
    ///
    /// ```
    /// use racecars::Algorithm;
    ///
    /// let mut algorithm = Algorithm::cma_es();
    /// algorithm.set("population", "40")?;
    /// assert_eq!(algorithm.to_string(), "cma-es(population=40)");
    /// assert_eq!(
    ///     algorithm.set("population", "many").unwrap_err().to_string(),
    ///     "setting `population` of cma-es is `many`, not a whole number"
    /// );
    /// assert_eq!(
    ///     algorithm.set("size", "40").unwrap_err().to_string(),
    ///     "cma-es has no setting `size`; it has population, sigma, restarts, surrogate"
    /// );
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn set(&mut self, setting: &str, text: &str) -> Result<()> {
        let name = self.name();
        self.settings_by_name_mut().set(setting, text.trim()).map_err(|refusal| match refusal {
            Refusal::Expected { what, cause } => {
                let message = format!("setting `{setting}` of {name} is `{text}`, not {what}");
                match cause {
                    None => Error::setting(message),
                    Some(cause) => Error::setting(format!("{message}: {cause}")).caused_by(cause),
                }
            }
            Refusal::Unknown => {
                let names: Vec<&str> = self.settings().iter().map(|setting| setting.name).collect();
                let allowed = match names.len() {
                    0 => "it has none".to_string(),
                    _ => format!("it has {}", names.join(", ")),
                };
                let message = format!("{name} has no setting `{setting}`; {allowed}");
                Error::new(ErrorKind::UnknownSetting, message)
            }
        })
    }

    /// This algorithm with these settings, given by name and text. Without an algorithm, it is the default
    /// ([`Algorithm::auto`]), or RACE-CARS if the default does not have all of these settings.
    ///
    /// ```
    /// use racecars::Algorithm;
    ///
    /// assert_eq!(Algorithm::configured(None, [("noise", "no")])?.name(), "auto");
    /// assert_eq!(Algorithm::configured(None, [("gamma", "0.9")])?.name(), "race-cars");
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub fn configured<N: AsRef<str>, T: AsRef<str>>(
        named: Option<Algorithm>,
        settings: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Algorithm> {
        let settings: Vec<(N, T)> = settings.into_iter().collect();
        let mut algorithm = named.unwrap_or_else(|| {
            let usual = Algorithm::default();
            let has_all = settings.iter().all(|(name, _)| usual.has_setting(name.as_ref()));
            if has_all { usual } else { Algorithm::race_cars() }
        });
        for (name, text) in &settings {
            algorithm.set(name.as_ref(), text.as_ref())?;
        }
        Ok(algorithm)
    }

    /// Whether there is a setting of this name.
    pub fn has_setting(&self, name: &str) -> bool {
        self.settings().iter().any(|setting| setting.name == name)
    }

    /// Checks that this algorithm can search a space. The error says why not, and which algorithms can.
    pub fn takes(&self, space: &Space) -> Result<()> {
        let Some(obstacle) = self.accepted_spaces().obstacle(space) else { return Ok(()) };
        let others =
            Algorithm::all().filter(|other| other.accepted_spaces().obstacle(space).is_none());
        let others: Vec<&str> = others.map(|other| other.name()).collect();
        let name = self.name();
        Err(Error::setting(format!("{name} {obstacle}; {} take this space", others.join(", "))))
    }

    /// The depth of optimizers nested in this algorithm's optimizer.
    fn nesting(&self) -> usize {
        match self {
            Algorithm::Auto(_) => 1,
            Algorithm::Embedding(settings) => 1 + settings.algorithm.nesting(),
            Algorithm::Relay(settings) => {
                1 + settings.algorithms().map(Algorithm::nesting).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Creates an optimizer. `budget` is the planned number of evaluations, if known.
    pub fn optimizer(
        &self,
        space: &Space,
        budget: Option<u64>,
        seed: u64,
    ) -> Result<Box<dyn Optimizer>> {
        self.takes(space)?;
        space.check_functions()?;
        let is_shallow = self.nesting() <= MAX_NESTING;
        ensure!(is_shallow, setting, "{self} nests optimizers more than {MAX_NESTING} deep");
        self.build(Setup { space, budget, seed })
    }
}

impl Default for Algorithm {
    fn default() -> Self {
        Algorithm::auto()
    }
}

/// The name, followed by the given settings in parentheses.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let given: Vec<String> =
            self.given().iter().map(|given| format!("{}={}", given.name, given.text)).collect();
        if given.is_empty() { Ok(()) } else { write!(f, "({})", given.join(", ")) }
    }
}

/// Parses the output of `Display`.
impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, given) = match text.split_once('(') {
            Some((name, rest)) => {
                let closed = rest.strip_suffix(')');
                let inner = closed.ok_or_else(|| {
                    Error::setting(format!("algorithm `{text}` has a `(` without a `)`"))
                })?;
                (name, inner)
            }
            None => (text, ""),
        };
        let mut algorithm = Algorithm::named(name.trim()).ok_or_else(|| {
            let names = Algorithm::NAMES.join(", ");
            Error::setting(format!("algorithm `{name}` is not one of {names}"))
        })?;
        for setting in split_outside_brackets(given) {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                Error::setting(format!("`{setting}` in algorithm `{text}` is not NAME=VALUE"))
            })?;
            algorithm.set(key.trim(), value)?;
        }
        Ok(algorithm)
    }
}

/// Splits at commas that are not inside brackets.
pub(crate) fn split_outside_brackets(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (place, letter) in text.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// An algorithm as a setting of another one.
impl SettingValue for Algorithm {
    fn expected() -> String {
        "an algorithm such as race-cars or cma-es(population=40)".into()
    }

    fn parse(text: &str) -> Parsed<Self> {
        text.parse().map_err(Some)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Serializes as the output of `Display`.
impl Serialize for Algorithm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Algorithm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::load;

    #[test]
    fn every_algorithm_creates_an_optimizer_that_can_be_saved() {
        let space = Space::cube(3, 0.0, 1.0).unwrap();
        for name in Algorithm::NAMES {
            let algorithm: Algorithm = name.parse().unwrap();
            assert_eq!(algorithm.name(), *name);
            let mut optimizer = algorithm.optimizer(&space, Some(100), 1).unwrap();
            assert_eq!(optimizer.name(), *name);
            assert_eq!(load(&optimizer.save()).unwrap().ask(), optimizer.ask());
        }
        assert_eq!(Algorithm::all().count(), Algorithm::NAMES.len());
    }

    #[test]
    fn every_setting_is_documented_and_parses_its_own_text() {
        for algorithm in Algorithm::all() {
            for Setting { name, about } in algorithm.settings() {
                assert!(about.len() > 10, "{algorithm}: {name}");
            }
        }
        let texts = [
            "race-cars(training_size=7, replacing=farthest, repeats=true, gamma=0.9)",
            "de(weight=[0.5, 0.75], crossover=0.25)",
            "embedding(dimension=5, rounds=3, algorithm=cma-es(population=9, sigma=0.1))",
            "auto(noise=yes)",
        ];
        for text in texts {
            assert_eq!(text.parse::<Algorithm>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_list_what_is_allowed() {
        let error = |text: &str| text.parse::<Algorithm>().unwrap_err().to_string();
        assert!(error("magic").starts_with("algorithm `magic` is not one of auto, race-cars, "));
        assert_eq!(
            error("cma-es(population"),
            "algorithm `cma-es(population` has a `(` without a `)`"
        );
        assert_eq!(
            error("auto(noise=maybe)"),
            "setting `noise` of auto is `maybe`, not detect, yes or no"
        );
        assert_eq!(error("random(x=1)"), "random has no setting `x`; it has none");
        let nested = "embedding(algorithm=cma-es(sigma=x))".parse::<Algorithm>().unwrap_err();
        assert!(nested.to_string().ends_with(": setting `sigma` of cma-es is `x`, not a number"));
        assert!(std::error::Error::source(&nested).is_some());
    }

    #[test]
    fn the_error_of_a_refused_space_lists_the_algorithms_that_take_it() {
        let space = Space::builder().real("x", 0.0, 1.0).integers("layer", 2, 0, 3);
        let space = space.categorical("c", ["a", "b", "c"]).build().unwrap();
        let error = |algorithm: Algorithm| algorithm.takes(&space).unwrap_err().to_string();
        let takers = "auto, race-cars, sracos, racos, de, de-rand, l-shade, evolution, local-search, gp, relay, \
                      quasi-random, random \
                      take this space";
        assert_eq!(
            error(Algorithm::zo_adam()),
            format!("zo-adam takes continuous coordinates, and `layer[0]` is discrete; {takers}")
        );
        assert_eq!(
            error(Algorithm::cma_es()),
            format!(
                "cma-es takes coordinates with an order, and the values of `c` have none; {takers}"
            )
        );
        let large = Space::cube(5000, 0.0, 1.0).unwrap();
        let error = Algorithm::cma_es().takes(&large).unwrap_err().to_string();
        assert!(
            error.starts_with("cma-es takes at most 4096 coordinates, the space has 5000; auto, ")
        );
    }
}
