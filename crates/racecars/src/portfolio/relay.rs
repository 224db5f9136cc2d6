//! `relay`: a custom portfolio, in which algorithms run one after the other.

use super::referee::Referee;
use super::{Origin, PortfolioSearch, Rule, Team};
use crate::error::{Result, ensure};
use crate::optimizers::Algorithm;
use crate::optimizers::settings::{Parsed, SettingValue, settings};
use crate::optimizers::shell::{Setup, Tools};
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of a custom portfolio.
    ///
    /// ```
    /// use racecars::{Algorithm, CmaEs, Relay, Space, minimize};
    ///
    /// let space = Space::cube(10, -5.0, 5.0)?;
    /// let relay = Relay::default()
    ///     .then(Algorithm::race_cars(), 1.0)
    ///     .then(Algorithm::CmaEs(CmaEs::default().sigma(0.05)), 2.0);
    /// let solution = minimize(&space)
    ///     .algorithm(Algorithm::Relay(relay))
    ///     .budget(3000)
    ///     .run(|x| x.coordinates().iter().map(|x| x * x).sum::<f64>())?;
    /// assert!(solution.value().unwrap() < 1e-3);
    /// assert_eq!(solution.portfolio().unwrap().members.len(), 2);
    /// # Ok::<(), racecars::Error>(())
    /// ```
    pub struct Relay {
        /// The algorithms in order, each with its share of the budget: [race-cars 1, cma-es 2] gives
        /// CMA-ES twice the evaluations of RACE-CARS, and starts it from the best point found. Default:
        /// [race-cars 1, l-shade 1].
        legs: Legs,
        /// Whether the objective is noisy. Then points that may look better only by chance are
        /// re-evaluated, and the best value is a mean. Default: false.
        noisy: bool,
    }
}

impl Relay {
    pub(crate) fn algorithms(&self) -> impl Iterator<Item = &Algorithm> {
        self.legs.0.iter().map(|leg| &leg.algorithm)
    }

    /// Adds an algorithm with its share of the budget.
    pub fn then(mut self, algorithm: Algorithm, share: f64) -> Self {
        self.legs.0.push(RelayLeg { algorithm, share });
        self
    }
}

/// Algorithms in order, each with its share of the budget: see [`Relay::then`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Legs(Vec<RelayLeg>);

#[derive(Debug, Clone, PartialEq)]
struct RelayLeg {
    algorithm: Algorithm,
    share: f64,
}

impl SettingValue for Legs {
    fn expected() -> String {
        "algorithms with their shares, such as [race-cars 1, cma-es 2]".into()
    }

    fn parse(text: &str) -> Parsed<Self> {
        let inner = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let leg = |text: &str| {
            let (algorithm, share) = text.rsplit_once(' ').ok_or(None)?;
            let algorithm = algorithm.trim().parse().map_err(Some)?;
            Ok(RelayLeg { algorithm, share: f64::parse(share)? })
        };
        let legs = crate::optimizers::split_outside_brackets(inner.ok_or(None)?);
        legs.into_iter().map(leg).collect::<Parsed<_>>().map(Legs)
    }

    fn text(&self) -> String {
        let legs: Vec<String> =
            self.0.iter().map(|leg| format!("{} {:?}", leg.algorithm, leg.share)).collect();
        format!("[{}]", legs.join(", "))
    }
}

/// The rule of `relay`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RelayRule {
    noisy: bool,
    legs: Vec<PlannedLeg>,
    /// The number of legs begun.
    begun: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct PlannedLeg {
    algorithm: Algorithm,
    /// The number of points asked at its end.
    until: u64,
}

impl RelayRule {
    pub(crate) fn portfolio(
        settings: &Relay,
        setup: Setup<'_>,
    ) -> Result<PortfolioSearch<RelayRule>> {
        let mut legs = settings.legs.0.clone();
        if legs.is_empty() {
            let default = [Algorithm::race_cars(), Algorithm::l_shade()];
            legs = default.map(|algorithm| RelayLeg { algorithm, share: 1.0 }).into();
        }
        let whole: f64 = legs.iter().map(|leg| leg.share).sum();
        let is_share = |share: f64| share > 0.0 && share.is_finite();
        ensure!(
            legs.iter().all(|leg| is_share(leg.share)) && whole.is_finite(),
            setting,
            "shares {} of relay are not all above 0 and finite",
            settings.legs.text()
        );
        let Setup { space, budget, .. } = setup;
        let horizon = budget.unwrap_or(100 * space.dimension() as u64).max(1) as f64;
        let (mut share_so_far, mut planned) = (0.0, Vec::new());
        for RelayLeg { algorithm, share } in legs {
            // Invalid settings are refused now instead of later. The optimizer itself is discarded.
            algorithm.optimizer(space, budget, 0)?;
            share_so_far += share;
            let until = (horizon * share_so_far / whole).round().max(1.0) as u64;
            planned.push(PlannedLeg { algorithm, until });
        }
        let rule = RelayRule { noisy: settings.noisy, legs: planned, begun: 0 };
        Ok(PortfolioSearch::new(rule, budget))
    }

    fn begin(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        let asked = tools.ledger.next_id();
        let PlannedLeg { algorithm, until } = &self.legs[self.begun];
        let own = team.budget.map(|_| until.saturating_sub(asked).max(1));
        let optimizer = algorithm.optimizer(tools.space, own, tools.random.bits())?;
        let place = team.add(optimizer, false, tools);
        if self.begun == 0 {
            team.referee = self.noisy.then(|| Referee::new(None, team.budget, false));
            team.tell_early(place)?;
        } else {
            team.tell_best(place)?;
        }
        team.activate(place, asked, *until);
        self.begun += 1;
        Ok(())
    }
}

impl Rule for RelayRule {
    fn advance(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        let asked = tools.ledger.next_id();
        while self.begun < self.legs.len()
            && (self.begun == 0 || asked >= self.legs[self.begun - 1].until)
        {
            self.begin(team, tools)?;
        }
        Ok(())
    }

    fn is_noisy(&self) -> Option<bool> {
        Some(self.noisy)
    }

    fn is_sound(&self, team: &Team, space: &Space) -> bool {
        !self.legs.is_empty()
            && self.begun <= self.legs.len()
            && team.has_active_member() == (self.begun > 0)
            && self.legs.iter().all(|leg| leg.algorithm.optimizer(space, None, 0).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::{Optimizer, load};
    use crate::outcome::Outcome;

    fn relay(text: &str) -> Box<dyn Optimizer> {
        let space = Space::cube(4, -5.0, 5.0).unwrap();
        text.parse::<Algorithm>().unwrap().optimizer(&space, Some(300), 1).unwrap()
    }

    #[test]
    fn members_run_one_after_the_other_and_can_be_saved() {
        let mut optimizer = relay("relay(legs=[quasi-random 1, race-cars 1, cma-es(sigma=0.1) 4])");
        for _ in 0..300 {
            let candidate = optimizer.ask().unwrap();
            let value: f64 = candidate.point().iter().map(|x| (x - 1.0) * (x - 1.0)).sum();
            optimizer.tell(candidate, Outcome::from(value)).unwrap();
            optimizer = load(&optimizer.save()).unwrap();
        }
        let portfolio = optimizer.portfolio().unwrap();
        let members: Vec<(&str, u64)> =
            portfolio.members.iter().map(|m| (m.name.as_str(), m.evaluations)).collect();
        assert_eq!(members, [("quasi-random", 50), ("race-cars", 50), ("cma-es", 200)]);
        assert_eq!(portfolio.decisions[1].what, "evaluations 51 to 100: race-cars");
        assert!(optimizer.best().unwrap().rank.value().unwrap() < 0.1);
    }

    #[test]
    fn invalid_settings_are_refused_at_construction() {
        let error = |text: &str| text.parse::<Algorithm>().unwrap_err().to_string();
        assert_eq!(
            error("relay(legs=[race-cars])"),
            "setting `legs` of relay is `[race-cars]`, not algorithms with their shares, such as \
             [race-cars 1, cma-es 2]"
        );
        let space = Space::cube(4, -5.0, 5.0).unwrap();
        let refused = |text: &str| {
            let algorithm: Algorithm = text.parse().unwrap();
            algorithm.optimizer(&space, Some(300), 1).unwrap_err().to_string()
        };
        assert!(
            refused("relay(legs=[race-cars 0])").starts_with("shares [race-cars 0.0] of relay")
        );
        assert!(refused("relay(legs=[race-cars 1, cma-es(sigma=7) 1])").contains("sigma = 7"));
    }
}
