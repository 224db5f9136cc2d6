//! `relay`: a portfolio of one's own, in which algorithms lead one after the other.

use super::referee::Referee;
use super::{Origin, PortfolioSearch, Rule, Team};
use crate::error::{Error, Result};
use crate::optimizers::Algorithm;
use crate::optimizers::settings::{SettingValue, settings};
use crate::optimizers::shell::{Setup, Tools};
use crate::random::Random;
use crate::space::Space;
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of a portfolio of one's own.
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
        /// CMA-ES twice the evaluations of RACE-CARS, and starts it from the best point found. [race-cars
        /// 1, l-shade 1] if there are none.
        legs: Legs,
        /// Whether the objective is noisy. Then points that may look better only by chance are
        /// re-evaluated, and the best value is a mean. false.
        noisy: bool,
    }
}

impl Relay {
    pub(crate) fn algorithms(&self) -> impl Iterator<Item = &Algorithm> {
        self.legs.0.iter().map(|(algorithm, _)| algorithm)
    }

    /// Adds an algorithm with its share of the budget.
    pub fn then(mut self, algorithm: Algorithm, share: f64) -> Self {
        self.legs.0.push((algorithm, share));
        self
    }
}

/// Algorithms in order, each with its share of the budget.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Legs(Vec<(Algorithm, f64)>);

impl SettingValue for Legs {
    fn expected() -> String {
        "algorithms with their shares, such as [race-cars 1, cma-es 2]".into()
    }

    fn parse(text: &str) -> Option<Self> {
        let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
        let leg = |text: &str| {
            let (algorithm, share) = text.rsplit_once(' ')?;
            Some((algorithm.trim().parse().ok()?, f64::parse(share)?))
        };
        crate::optimizers::split_outside_brackets(inner)
            .into_iter()
            .map(leg)
            .collect::<Option<_>>()
            .map(Legs)
    }

    fn text(&self) -> String {
        let legs: Vec<String> =
            self.0.iter().map(|(algorithm, share)| format!("{algorithm} {share:?}")).collect();
        format!("[{}]", legs.join(", "))
    }
}

/// The rule of `relay`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RelayRule {
    noisy: bool,
    /// Each algorithm, and the number of points asked at which it is over.
    legs: Vec<(Algorithm, u64)>,
    /// How many legs have begun.
    begun: usize,
}

impl RelayRule {
    pub(crate) fn portfolio(
        settings: &Relay,
        setup: Setup<'_>,
        _: &mut Random,
    ) -> Result<PortfolioSearch<RelayRule>> {
        let mut legs = settings.legs.0.clone();
        if legs.is_empty() {
            legs = vec![(Algorithm::race_cars(), 1.0), (Algorithm::l_shade(), 1.0)];
        }
        let whole: f64 = legs.iter().map(|(_, share)| share).sum();
        let is_share = |share: f64| share > 0.0 && share.is_finite();
        if !(legs.iter().all(|(_, share)| is_share(*share)) && whole.is_finite()) {
            return Err(Error::setting(format!(
                "shares {} of relay are not all above 0 and finite",
                settings.legs.text()
            )));
        }
        let Setup { space, budget, .. } = setup;
        let horizon = budget.unwrap_or(100 * space.dimension() as u64).max(1) as f64;
        let (mut share_so_far, mut planned) = (0.0, Vec::new());
        for (algorithm, share) in legs {
            algorithm.takes(space)?;
            // A trial that is thrown away: settings that do not fit are refused now and not later.
            algorithm.optimizer(space, budget, 0)?;
            share_so_far += share;
            planned.push((algorithm, (horizon * share_so_far / whole).round().max(1.0) as u64));
        }
        let rule = RelayRule { noisy: settings.noisy, legs: planned, begun: 0 };
        Ok(PortfolioSearch::new(rule, budget))
    }

    fn begin(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        let asked = tools.ledger.next_id();
        let (algorithm, until) = &self.legs[self.begun];
        let own = team.budget.map(|_| until.saturating_sub(asked).max(1));
        let optimizer = algorithm.optimizer(tools.space, own, tools.random.bits())?;
        let place = team.add(optimizer, false, tools);
        if self.begun == 0 {
            team.referee = self.noisy.then(|| Referee::of_noise(None));
            team.tell_early(place)?;
        } else {
            team.tell_best(place)?;
        }
        team.lead(place, asked, *until);
        self.begun += 1;
        Ok(())
    }
}

impl Rule for RelayRule {
    fn advance(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()> {
        let asked = tools.ledger.next_id();
        while self.begun < self.legs.len()
            && (self.begun == 0 || asked >= self.legs[self.begun - 1].1)
        {
            self.begin(team, tools)?;
        }
        Ok(())
    }

    fn expects_noise(&self) -> bool {
        self.noisy
    }

    fn is_sound(&self, team: &Team, space: &Space) -> bool {
        !self.legs.is_empty()
            && self.begun <= self.legs.len()
            && team.has_leader() == (self.begun > 0)
            && self.legs.iter().all(|(algorithm, _)| algorithm.optimizer(space, None, 0).is_ok())
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
    fn members_lead_in_turn_and_survive_a_save() {
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
    fn mistakes_are_refused_when_it_is_made() {
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
