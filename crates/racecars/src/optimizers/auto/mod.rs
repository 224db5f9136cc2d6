//! `auto`: a portfolio that looks at the objective first.
//!
//! A few dozen evaluations tell whether coordinates interact and whether the objective is wavy
//! (`survey`). From that, the dimension and the budget follows who leads when (`plan`): adaptive RACE-CARS
//! where coordinates can be set one by one or the budget is small, CMA-ES where they have to move
//! together. Whoever leads starts from the best point known where that helps, and parabolas along the
//! coordinates take the last steps into the valley (`polish`). A leader stays alive with its state when
//! its leg is over: late outcomes still reach it, and when nothing is left to polish, or the budget is
//! exceeded, it goes on.
//!
//! Where the objective is noisy, a lucky value does not make a point lead (`referee`).
//!
//! Where coordinates are discrete, RACE-CARS has the whole budget: it is what is fit for them.

mod plan;
mod polish;
mod referee;
mod survey;

use super::cma_es::{Cma, CmaEs};
use super::incumbent::Incumbent;
use super::ledger::Ledger;
use super::racos::{Classification, Racos, Shrinking};
use super::saved::ROOM;
use super::{Best, Candidate, Decision, MemberAccount, Optimizer, Portfolio, saved};
use crate::classify::Sample;
use crate::error::Result;
use crate::outcome::{Outcome, Rank};
use crate::random::Random;
use crate::space::Space;
use plan::{Leg, Member};
use polish::{Polish, Probe};
use referee::{Again, Referee, Verdict};
use serde::{Deserialize, Serialize};
use survey::{Findings, Survey};

/// The first deviation of CMA-ES, as a share of each axis: where it begins anew, and where it goes on
/// from RACE-CARS' region among interacting coordinates.
const SIGMA: f64 = 0.2;
const FINE_SIGMA: [f64; 2] = [0.01, 0.05];
/// The first step of a polish, as a share of each axis: after CMA-ES, and within what bounds after
/// RACE-CARS, which knows its region.
const STEP: f64 = 1e-3;
const STEPS: [f64; 2] = [1e-4, 0.037];

/// Whether the same point has other values each time.
///
/// Then what is better by luck does not lead: see [the module](self).
///
/// ```
/// use racecars::{Algorithm, Noise, Space, minimize};
///
/// let space = Space::cube(5, -5.0, 5.0)?;
/// let mut calls = 0;
/// let solution = minimize(&space).algorithm(Algorithm::Auto(Noise::Yes)).budget(500).run(|x| {
///     calls += 1;
///     let noise = f64::from(calls * 7919 % 1000) / 1000.0 - 0.5;
///     x.coordinates().iter().map(|x| x * x).sum::<f64>() + noise
/// })?;
/// assert!(solution.portfolio().is_some_and(|portfolio| portfolio.noisy));
/// assert!(solution.value().is_some_and(|mean| mean < 1.0));
/// # Ok::<(), racecars::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// To be found out, by evaluating the first point twice. Not where coordinates are discrete, as
    /// there no point is asked twice unless noise is known of.
    #[default]
    Detect,
    /// It has.
    Yes,
    /// It has not.
    No,
}

/// An optimizer by a portfolio.
pub struct Auto {
    space: Space,
    state: State,
    race_cars: Option<Box<Racos>>,
    cma_es: Option<Box<Cma>>,
    /// The buffer of a point told, for one to come.
    spare: Option<Box<[f64]>>,
}

/// Everything that a resumed run needs, but for the two members that are optimizers themselves.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct State {
    seed: u64,
    random: Random,
    ledger: Ledger,
    noise: Noise,
    budget: Option<u64>,
    best: Incumbent,
    survey: Option<Survey>,
    /// What is known before there is a plan: RACE-CARS begins with it.
    early: Vec<(Box<[f64]>, Rank)>,
    legs: Vec<Leg>,
    leg: usize,
    is_full: bool,
    /// Whether points were told that were not asked: CMA-ES then begins at the best one.
    has_known: bool,
    polish: Option<Polish>,
    /// Where the objective is noisy.
    referee: Option<Referee>,
    /// Where each candidate that is out came from, by its number, ascending.
    origins: Vec<(u64, Origin)>,
    accounts: [Account; 5],
    decisions: Vec<(u64, String)>,
}

/// The saved form: the members are saved optimizers.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedState {
    own: State,
    race_cars: Option<Vec<u8>>,
    cma_es: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Origin {
    /// A uniform draw, while the survey's last outcomes are awaited.
    Drawn,
    Survey(usize),
    /// A member's candidate, by its number there.
    RaceCars(u64),
    CmaEs(u64),
    Polish(Probe),
    /// A point that was evaluated before.
    Again(Again),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Account {
    evaluations: u64,
    improvements: u64,
    best: Option<f64>,
}

impl Account {
    /// Enters a value, and whether it was the best of all.
    fn credit(&mut self, rank: Rank, is_better: bool) {
        self.improvements += u64::from(is_better);
        if let Some(value) = rank.value() {
            self.best = Some(self.best.map_or(value, |best| best.min(value)));
        }
    }
}

impl Origin {
    fn member(self) -> Member {
        match self {
            Origin::Drawn | Origin::Survey(_) => Member::Survey,
            Origin::RaceCars(_) => Member::RaceCars,
            Origin::CmaEs(_) => Member::CmaEs,
            Origin::Polish(_) => Member::Polish,
            Origin::Again(_) => Member::Referee,
        }
    }
}

impl Auto {
    /// A search that is a function of the seed.
    pub fn new(space: &Space, noise: Noise, budget: Option<u64>, seed: u64) -> Result<Self> {
        let mut random = Random::new(seed);
        let horizon = plan::horizon(budget, space.dimension());
        let coordinates =
            plan::surveyed(horizon, space.dimension()).filter(|_| !space.can_repeat());
        let survey = coordinates.map(|coordinates| Survey::new(coordinates, random.bits()));
        let is_surveyed = survey.is_some();
        let state = State {
            seed,
            random,
            ledger: Ledger::default(),
            noise,
            budget,
            best: Incumbent::default(),
            survey,
            early: Vec::new(),
            legs: Vec::new(),
            leg: 0,
            is_full: false,
            has_known: false,
            polish: None,
            referee: None,
            origins: Vec::new(),
            accounts: Default::default(),
            decisions: Vec::new(),
        };
        let mut auto =
            Auto { space: space.clone(), state, race_cars: None, cma_es: None, spare: None };
        if !is_surveyed {
            auto.decide()?;
        }
        Ok(auto)
    }

    /// Takes a saved state back, if it is one that this code could have written.
    pub(super) fn restore(space: Space, saved: SavedState) -> Result<Self> {
        let SavedState { own, race_cars, cma_es } = saved;
        let race_cars = race_cars.map(|bytes| saved::load_race_cars(&bytes, &space)).transpose()?;
        let cma_es = cma_es.map(|bytes| saved::load_cma_es(&bytes, &space)).transpose()?;
        let is_early =
            |(point, rank): &(Box<[f64]>, Rank)| space.check(point).is_ok() && rank.is_sound();
        let out = own.origins.iter().map(|(id, _)| *id);
        let is_sound = own.random.is_alive()
            && own.ledger.is_sound(&space)
            && own.best.is_sound(&space)
            && own.survey.as_ref().is_none_or(Survey::is_sound)
            && own.early.iter().all(is_early)
            && own.leg < own.legs.len().max(1)
            && own.legs.is_sorted_by(|a, b| a.until < b.until)
            && (own.legs.is_empty() || race_cars.is_some())
            && !(own.legs.is_empty() && (own.survey.is_none() || space.can_repeat()))
            && !(space.can_repeat() && own.legs.iter().any(|leg| leg.member != Member::RaceCars))
            && own.polish.as_ref().is_none_or(|polish| polish.is_sound(&space))
            && own.referee.as_ref().is_none_or(|referee| referee.is_sound(&space))
            && out.eq(own.ledger.pending_ids().iter().copied())
            && own
                .accounts
                .iter()
                .all(|account| account.evaluations < ROOM && account.improvements < ROOM);
        if !is_sound {
            return Err(saved::unsound());
        }
        let (race_cars, cma_es) = (race_cars.map(Box::new), cma_es.map(Box::new));
        Ok(Auto { space, state: own, race_cars, cma_es, spare: None })
    }

    /// Makes the plan, from what the survey found, and RACE-CARS, which has a part in most.
    fn decide(&mut self) -> Result<()> {
        let State { seed, ledger, noise, budget, survey, early, .. } = &mut self.state;
        let n = self.space.dimension();
        let horizon = plan::horizon(*budget, n);
        let nothing = Findings { shape: None, noise: None };
        let findings = survey.as_ref().map_or(nothing, Survey::findings);
        let is_noisy = match noise {
            Noise::Detect => findings.noise.is_some(),
            Noise::Yes => true,
            Noise::No => false,
        };
        let mut plan = if self.space.can_repeat() {
            plan::Plan {
                legs: vec![Leg { member: Member::RaceCars, until: horizon }],
                is_full: false,
                reason: format!("some coordinates are discrete{}", plan::noise(is_noisy)),
            }
        } else {
            plan::plan(findings.shape, is_noisy, horizon, n)
        };
        // A plan for less than was used already leaves its last leg.
        let used = ledger.next_id();
        plan.legs.retain(|leg| leg.until > used);
        if plan.legs.is_empty() {
            plan.legs.push(Leg { member: Member::RaceCars, until: horizon.max(used + 1) });
        }
        let part = plan.legs.iter().find(|leg| leg.member == Member::RaceCars);
        // Without a budget, it plans none of its own unless its leg is one of several.
        let own = match (budget, part, plan.legs.len()) {
            (None, _, 0 | 1) => None,
            (_, Some(leg), _) => Some(leg.until),
            (_, None, _) => Some(horizon),
        };
        let (settings, shrinking) = (Classification::default(), Shrinking::default());
        let mut race_cars = Racos::race_cars(&self.space, &settings, &shrinking, own, *seed)?;
        for (point, rank) in std::mem::take(early) {
            race_cars.tell(Candidate::known(point), outcome_of(rank))?;
        }
        self.race_cars = Some(Box::new(race_cars));
        self.state.referee = is_noisy.then(|| Referee::of_noise(findings.noise));
        self.state.is_full = plan.is_full;
        self.state.legs = plan.legs;
        self.note(plan.reason);
        self.begin_leg()
    }

    /// Prepares what the leg that is on needs.
    fn begin_leg(&mut self) -> Result<()> {
        let n = self.space.dimension();
        let Leg { member, until } = self.state.legs[self.state.leg];
        let region = self.race_cars.as_ref().and_then(|member| member.region());
        // A region says something only where RACE-CARS has led.
        let has_led =
            self.state.legs[..self.state.leg].iter().any(|leg| leg.member == Member::RaceCars);
        let share = region.filter(|_| has_led).map(|(_, share)| share);
        match member {
            Member::CmaEs => {
                let is_after_polish = self.state.polish.is_some();
                let sigma = match share {
                    Some(share) if !is_after_polish => {
                        let [least, most] = FINE_SIGMA;
                        share.clamp(least, most)
                    }
                    _ => SIGMA,
                };
                let settings = CmaEs {
                    separable: !self.state.is_full,
                    sigma: Some(sigma),
                    ..CmaEs::default()
                };
                let mut cma_es = Cma::new(&self.space, &settings, self.state.random.bits())?;
                if (has_led || self.state.has_known)
                    && let Some(Sample { point, rank, .. }) = self.state.best.sample()
                {
                    cma_es.tell(Candidate::known(point.clone()), outcome_of(*rank))?;
                }
                self.cma_es = Some(Box::new(cma_es));
            }
            Member::Polish => {
                let [least, most] = STEPS;
                let is_after_cma = self.cma_es.is_some();
                let step = share.filter(|_| !is_after_cma);
                let step = step.map_or(STEP, |share| share.clamp(least, most));
                self.state.polish = Some(Polish::new(&self.space, step));
            }
            Member::RaceCars | Member::Survey | Member::Referee => {}
        }
        let name = self.member_name(member);
        let per_coordinate = until as f64 / n as f64;
        self.note(format!(
            "{name} leads until evaluation {until} ({per_coordinate:.1} per coordinate)"
        ));
        Ok(())
    }

    fn note(&mut self, what: String) {
        self.state.decisions.push((self.state.ledger.next_id(), what));
    }

    fn member_name(&self, member: Member) -> &'static str {
        match member {
            Member::Survey => "survey",
            Member::RaceCars => "race-cars",
            Member::CmaEs => self.cma_es.as_ref().map_or("cma-es", |member| member.name()),
            Member::Polish => "polish",
            Member::Referee => "referee",
        }
    }

    /// The leg's point, if the member whose leg it is has one.
    fn propose(&mut self) -> Option<(Box<[f64]>, u64, Origin)> {
        if self.state.legs.is_empty() {
            let mut point = self.buffer();
            let State { survey, random, .. } = &mut self.state;
            let slot = survey.as_mut().and_then(|survey| survey.next(&self.space, &mut point));
            let origin = slot.map_or(Origin::Drawn, Origin::Survey);
            if origin == Origin::Drawn {
                self.space.draw(random, &mut point);
            }
            let key = self.space.key(&point);
            return Some((point, key, origin));
        }
        if self.state.legs[self.state.leg].member == Member::Polish
            && let Some(found) = self.propose_polish()
        {
            return Some(found);
        }
        // Who led last goes on where there is nothing to polish.
        let is_leader = |leg: &&Leg| leg.member != Member::Polish;
        let leader = self.state.legs[..=self.state.leg].iter().rev().find(is_leader);
        let is_cma_es = leader.is_some_and(|leg| leg.member == Member::CmaEs);
        let asked =
            if is_cma_es { self.cma_es.as_mut()?.ask() } else { self.race_cars.as_mut()?.ask() };
        let Candidate { id, key, point, .. } = asked?;
        Some((point, key, if is_cma_es { Origin::CmaEs(id) } else { Origin::RaceCars(id) }))
    }

    /// A point that is to be evaluated again.
    fn propose_again(&mut self) -> Option<(Box<[f64]>, u64, Origin)> {
        let again = self.state.referee.as_mut()?.next()?;
        let mut buffer = self.buffer();
        let sample = match again {
            Again::Leader(_) => self.state.best.sample()?,
            Again::Challenger(number) => &self.state.referee.as_ref()?.challenger(number)?.sample,
        };
        buffer.copy_from_slice(&sample.point);
        Some((buffer, sample.key, Origin::Again(again)))
    }

    fn propose_polish(&mut self) -> Option<(Box<[f64]>, u64, Origin)> {
        let mut point = self.buffer();
        let State { polish, best, random, .. } = &mut self.state;
        let (best, value) = (best.sample()?, best.value()?);
        let probe = polish.as_mut()?.next(&self.space, &best.point, value, random, &mut point);
        let Some(probe) = probe else {
            self.spare = Some(point);
            return None;
        };
        let key = self.space.key(&point);
        Some((point, key, Origin::Polish(probe)))
    }

    fn buffer(&mut self) -> Box<[f64]> {
        let spare = self.spare.take();
        spare.unwrap_or_else(|| vec![0.0; self.space.dimension()].into_boxed_slice())
    }

    /// Goes on to the leg that so many points asked have reached.
    fn move_on(&mut self) -> Result<()> {
        let asked = self.state.ledger.next_id();
        while self.state.leg + 1 < self.state.legs.len()
            && asked >= self.state.legs[self.state.leg].until
        {
            self.state.leg += 1;
            self.begin_leg()?;
        }
        Ok(())
    }

    /// Whether the survey has what it needs, or has waited long enough for it.
    fn is_surveyed(&self) -> bool {
        let Some(survey) = &self.state.survey else { return true };
        let patience = 2 * survey.len() as u64;
        survey.is_complete() || self.state.ledger.told() >= patience
    }

    /// Enters an outcome that is taken as it is, of a member's or of a known point.
    fn enter(&mut self, member: Option<Member>, point: &[f64], key: u64, rank: Rank) {
        let is_better = self.state.best.is_beaten_by(rank);
        if let Some(member) = member {
            let account = &mut self.state.accounts[member as usize];
            account.evaluations += 1;
            account.credit(rank, is_better);
        }
        if is_better {
            self.state.best.replace(point, rank, key);
            if let Some(referee) = &mut self.state.referee {
                referee.new_leader();
            }
        }
    }

    /// Takes in a point that nobody asked for.
    fn tell_known(&mut self, point: Box<[f64]>, key: u64, outcome: Outcome) -> Result<()> {
        self.enter(None, &point, key, outcome.rank());
        self.state.has_known = true;
        if self.state.legs.is_empty() {
            self.state.early.push((point, outcome.rank()));
            return Ok(());
        }
        if let Some(race_cars) = &mut self.race_cars {
            race_cars.tell(Candidate::known(point.clone()), outcome.clone())?;
        }
        if let Some(cma_es) = &mut self.cma_es {
            cma_es.tell(Candidate::known(point), outcome)?;
        }
        Ok(())
    }

    /// Whether a member's outcome is better than the best, but perhaps only by luck.
    fn is_challenge(&self, rank: Rank) -> bool {
        let State { referee, best, ledger, .. } = &self.state;
        let (Some(referee), Some(value), Some(best)) = (referee, rank.value(), best.value()) else {
            return false;
        };
        value < best && !referee.is_clear(value, best, ledger.told(), self.space.dimension())
    }

    /// Takes in what came of evaluating a point again.
    fn hear(&mut self, again: Again, value: Option<f64>) -> Result<()> {
        self.state.accounts[Member::Referee as usize].evaluations += 1;
        let State { best, referee, .. } = &mut self.state;
        let Some(referee) = referee else { return Ok(()) };
        match again {
            Again::Leader(reign) => {
                if let Some(mean) = referee.tell_leader(reign, value)
                    && let Some(best) = best.revise(Outcome::Value(mean).rank())
                    && let Some(race_cars) = &mut self.race_cars
                {
                    race_cars.revise_best(&best.point, best.rank);
                }
                Ok(())
            }
            Again::Challenger(number) => {
                let limit = best.value().unwrap_or(f64::INFINITY);
                match referee.tell_challenger(number, value, limit) {
                    Some(verdict) => self.close(verdict),
                    None => Ok(()),
                }
            }
        }
    }

    /// Ends a challenge: the member that asked for the challenger learns what it is worth.
    fn close(&mut self, verdict: Verdict) -> Result<()> {
        let Verdict { challenger, leads, mean } = verdict;
        let Sample { point, key, .. } = challenger.sample;
        let outcome = match mean {
            Some(mean) => Outcome::Value(mean),
            None => Outcome::failed("no value when it was evaluated again"),
        };
        if leads {
            self.state.best.replace(&point, outcome.rank(), key);
            let account = &mut self.state.accounts[challenger.origin.member() as usize];
            account.credit(outcome.rank(), true);
        }
        self.pass_on(challenger.origin, point, key, outcome)
    }

    /// Tells the member that asked for it.
    fn pass_on(
        &mut self,
        origin: Origin,
        point: Box<[f64]>,
        key: u64,
        outcome: Outcome,
    ) -> Result<()> {
        let space = self.space.fingerprint();
        match (origin, &mut self.race_cars, &mut self.cma_es) {
            (Origin::RaceCars(id), Some(race_cars), _) => {
                race_cars.tell(Candidate { id, space, key, point }, outcome)
            }
            (Origin::CmaEs(id), _, Some(cma_es)) => {
                cma_es.tell(Candidate { id, space, key, point }, outcome)
            }
            _ => Ok(()),
        }
    }
}

/// An outcome of this rank.
fn outcome_of(rank: Rank) -> Outcome {
    match (rank.value(), rank.violation()) {
        (Some(value), _) => Outcome::Value(value),
        (_, Some(violation)) => Outcome::infeasible(violation),
        _ => Outcome::failed("failed"),
    }
}

impl Optimizer for Auto {
    fn space(&self) -> &Space {
        &self.space
    }

    fn name(&self) -> &'static str {
        "auto"
    }

    fn ask(&mut self) -> Option<Candidate> {
        // Members of a continuous space are made of valid settings: making them cannot fail.
        if self.state.legs.is_empty() && self.is_surveyed() {
            self.decide().ok()?;
        }
        self.move_on().ok()?;
        let (point, key, origin) = self.propose_again().or_else(|| self.propose())?;
        let candidate = self.state.ledger.issue(&self.space, point, key);
        self.state.origins.push((candidate.id, origin));
        Some(candidate)
    }

    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let id = candidate.id;
        let (point, key) = self.state.ledger.settle(&self.space, candidate)?;
        let rank = outcome.rank();
        if id == Candidate::KNOWN {
            return self.tell_known(point, key, outcome);
        }
        let Ok(place) = self.state.origins.binary_search_by_key(&id, |(id, _)| *id) else {
            return Err(saved::unsound());
        };
        let (_, origin) = self.state.origins.remove(place);
        let State { referee, ledger, budget, .. } = &mut self.state;
        if let Some(referee) = referee {
            referee.note_evaluation(ledger.next_id(), *budget);
        }
        match origin {
            Origin::Again(again) => {
                self.spare = Some(point);
                return self.hear(again, rank.value());
            }
            Origin::RaceCars(_) | Origin::CmaEs(_) => {
                if self.is_challenge(rank) {
                    self.state.accounts[origin.member() as usize].evaluations += 1;
                    if let Some(referee) = &mut self.state.referee {
                        referee.challenge(origin, Sample { point, rank, key });
                    }
                    return Ok(());
                }
                self.enter(Some(origin.member()), &point, key, rank);
                return self.pass_on(origin, point, key, outcome);
            }
            Origin::Polish(probe) => {
                self.enter(Some(Member::Polish), &point, key, rank);
                if let Some(polish) = &mut self.state.polish {
                    polish.tell(probe, rank.value().unwrap_or(f64::INFINITY));
                }
                self.spare = Some(point);
            }
            Origin::Drawn | Origin::Survey(_) => {
                self.enter(Some(Member::Survey), &point, key, rank);
                if let (Origin::Survey(slot), Some(survey)) = (origin, &mut self.state.survey) {
                    survey.tell(slot, rank.value());
                }
                if self.state.legs.is_empty() {
                    self.state.early.push((point, rank));
                }
            }
        }
        Ok(())
    }

    fn told(&self) -> u64 {
        self.state.ledger.told()
    }

    fn pending(&self) -> usize {
        self.state.ledger.pending()
    }

    fn best(&self) -> Option<Best<'_>> {
        let evaluations = self.state.referee.as_ref().map_or(1, Referee::leader_evaluations);
        Some(Best { evaluations, ..self.state.best.best()? })
    }

    fn is_noisy(&self) -> bool {
        self.state.noise == Noise::Yes || self.state.referee.is_some()
    }

    fn region(&self) -> Option<(&[f64], f64)> {
        self.race_cars.as_ref()?.region()
    }

    fn portfolio(&self) -> Option<Portfolio> {
        let decisions = self.state.decisions.iter();
        use Member::{CmaEs, Polish, RaceCars, Referee, Survey};
        let members = [Survey, RaceCars, CmaEs, Polish, Referee];
        let account = |member: Member| {
            let Account { evaluations, improvements, best } = self.state.accounts[member as usize];
            let name = self.member_name(member).to_string();
            MemberAccount { name, evaluations, improvements, best }
        };
        Some(Portfolio {
            noisy: self.is_noisy(),
            decisions: decisions
                .map(|(at, what)| Decision { at: *at, what: what.clone() })
                .collect(),
            members: members.map(account).into_iter().filter(|m| m.evaluations > 0).collect(),
        })
    }

    fn save(&self) -> Vec<u8> {
        let state = SavedState {
            own: self.state.clone(),
            race_cars: self.race_cars.as_ref().map(|member| member.save()),
            cma_es: self.cma_es.as_ref().map(|member| member.save()),
        };
        saved::save(self.name(), &self.space, &state)
    }
}
