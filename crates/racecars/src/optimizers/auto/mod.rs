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
//! Where coordinates are discrete, RACE-CARS has the whole budget: it is what is fit for them.

mod plan;
mod polish;
mod survey;

use super::cma_es::{Cma, CmaEs};
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

/// An optimizer by a portfolio.
pub struct Auto {
    space: Space,
    state: State,
    race_cars: Option<Box<dyn Optimizer>>,
    cma_es: Option<Box<dyn Optimizer>>,
    /// The buffer of a point told, for one to come.
    spare: Option<Box<[f64]>>,
}

/// Everything that a resumed run needs, but for the two members that are optimizers themselves.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct State {
    seed: u64,
    random: Random,
    ledger: Ledger,
    budget: Option<u64>,
    best: Option<Sample>,
    survey: Option<Survey>,
    /// What is known before there is a plan: RACE-CARS begins with it.
    early: Vec<(Box<[f64]>, Rank)>,
    legs: Vec<Leg>,
    leg: usize,
    is_full: bool,
    /// Whether points were told that were not asked: CMA-ES then begins at the best one.
    has_known: bool,
    polish: Option<Polish>,
    /// Where each candidate that is out came from, by its number, ascending.
    origins: Vec<(u64, Origin)>,
    accounts: [Account; 4],
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
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Account {
    evaluations: u64,
    improvements: u64,
    best: Option<f64>,
}

impl Origin {
    fn member(self) -> Member {
        match self {
            Origin::Drawn | Origin::Survey(_) => Member::Survey,
            Origin::RaceCars(_) => Member::RaceCars,
            Origin::CmaEs(_) => Member::CmaEs,
            Origin::Polish(_) => Member::Polish,
        }
    }
}

impl Auto {
    /// A search that is a function of the seed.
    pub fn new(space: &Space, budget: Option<u64>, seed: u64) -> Result<Self> {
        let mut random = Random::new(seed);
        let horizon = plan::horizon(budget, space.dimension());
        let coordinates = plan::surveyed(horizon).filter(|_| !space.can_repeat());
        let survey = coordinates.map(|coordinates| Survey::new(coordinates, random.bits()));
        let is_surveyed = survey.is_some();
        let state = State {
            seed,
            random,
            ledger: Ledger::default(),
            budget,
            best: None,
            survey,
            early: Vec::new(),
            legs: Vec::new(),
            leg: 0,
            is_full: false,
            has_known: false,
            polish: None,
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
        let member = |bytes: Option<Vec<u8>>, names: &[&str]| match bytes {
            None => Ok(None),
            Some(bytes) => match saved::load_member(&bytes, names)? {
                member if member.space() == &space => Ok(Some(member)),
                _ => Err(saved::unsound()),
            },
        };
        let race_cars = member(race_cars, &["race-cars"])?;
        let cma_es = member(cma_es, &["cma-es", "sep-cma-es"])?;
        let is_best = |best: &Sample| best.is_sound(&space) && !best.rank.is_failure();
        let is_early =
            |(point, rank): &(Box<[f64]>, Rank)| space.check(point).is_ok() && rank.is_sound();
        let out = own.origins.iter().map(|(id, _)| *id);
        let is_sound = own.random.is_alive()
            && own.ledger.is_sound(&space)
            && own.best.as_ref().is_none_or(is_best)
            && own.survey.as_ref().is_none_or(Survey::is_sound)
            && own.early.iter().all(is_early)
            && own.leg < own.legs.len().max(1)
            && own.legs.is_sorted_by(|a, b| a.until < b.until)
            && (own.legs.is_empty() || race_cars.is_some())
            && !(own.legs.is_empty() && (own.survey.is_none() || space.can_repeat()))
            && !(space.can_repeat() && own.legs.iter().any(|leg| leg.member != Member::RaceCars))
            && own.polish.as_ref().is_none_or(|polish| polish.is_sound(&space))
            && out.eq(own.ledger.pending_ids().iter().copied())
            && own
                .accounts
                .iter()
                .all(|account| account.evaluations < ROOM && account.improvements < ROOM);
        if !is_sound {
            return Err(saved::unsound());
        }
        Ok(Auto { space, state: own, race_cars, cma_es, spare: None })
    }

    /// Makes the plan, from what the survey found, and RACE-CARS, which has a part in most.
    fn decide(&mut self) -> Result<()> {
        let State { seed, ledger, budget, survey, early, .. } = &mut self.state;
        let n = self.space.dimension();
        let horizon = plan::horizon(*budget, n);
        let mut plan = if self.space.can_repeat() {
            plan::Plan {
                legs: vec![Leg { member: Member::RaceCars, until: horizon }],
                is_full: false,
                reason: "some coordinates are discrete".to_string(),
            }
        } else {
            let nothing = Findings { shape: None, is_noisy: false };
            plan::plan(survey.as_ref().map_or(nothing, Survey::findings), horizon, n)
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
                    && let Some(Sample { point, rank, .. }) = &self.state.best
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
            Member::RaceCars | Member::Survey => {}
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
        let (leader, make): (_, fn(u64) -> Origin) = match leader.map(|leg| leg.member) {
            Some(Member::CmaEs) => (self.cma_es.as_mut(), Origin::CmaEs),
            _ => (self.race_cars.as_mut(), Origin::RaceCars),
        };
        let Candidate { id, key, point, .. } = leader?.ask()?;
        Some((point, key, make(id)))
    }

    fn propose_polish(&mut self) -> Option<(Box<[f64]>, u64, Origin)> {
        let mut point = self.buffer();
        let State { polish, best, random, .. } = &mut self.state;
        let best = best.as_ref()?;
        let value = best.rank.value()?;
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

    fn enter(&mut self, member: Option<Member>, point: &[f64], key: u64, rank: Rank) {
        let State { best, accounts, .. } = &mut self.state;
        let is_better =
            !rank.is_failure() && best.as_ref().is_none_or(|best| rank.beats(best.rank));
        if let Some(member) = member {
            let account = &mut accounts[member as usize];
            account.evaluations += 1;
            account.improvements += u64::from(is_better);
            if let Some(value) = rank.value() {
                account.best = Some(account.best.map_or(value, |best| best.min(value)));
            }
        }
        if !is_better {
            return;
        }
        match best {
            Some(best) => {
                best.point.copy_from_slice(point);
                (best.rank, best.key) = (rank, key);
            }
            None => *best = Some(Sample { point: point.into(), rank, key }),
        }
    }
}

/// An outcome of this rank.
fn outcome_of(rank: Rank) -> Outcome {
    match (rank.value(), rank.violation()) {
        (Some(value), _) => Outcome::Value(value),
        (_, Some(violation)) => Outcome::Infeasible(violation),
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
        let (point, key, origin) = self.propose()?;
        let candidate = self.state.ledger.issue(&self.space, point, key);
        self.state.origins.push((candidate.id, origin));
        Some(candidate)
    }

    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let (id, space) = (candidate.id, self.space.fingerprint());
        let (point, key) = self.state.ledger.settle(&self.space, candidate)?;
        let rank = outcome.rank();
        if id == Candidate::KNOWN {
            self.enter(None, &point, key, rank);
            self.state.has_known = true;
            if self.state.legs.is_empty() {
                self.state.early.push((point, rank));
                return Ok(());
            }
            for member in [&mut self.race_cars, &mut self.cma_es].into_iter().flatten() {
                member.tell(Candidate::known(point.clone()), outcome.clone())?;
            }
            return Ok(());
        }
        let Ok(place) = self.state.origins.binary_search_by_key(&id, |(id, _)| *id) else {
            return Err(saved::unsound());
        };
        let (_, origin) = self.state.origins.remove(place);
        self.enter(Some(origin.member()), &point, key, rank);
        match origin {
            Origin::RaceCars(id) | Origin::CmaEs(id) => {
                let member = match origin {
                    Origin::RaceCars(_) => &mut self.race_cars,
                    _ => &mut self.cma_es,
                };
                if let Some(member) = member {
                    member.tell(Candidate { id, space, key, point }, outcome)?;
                }
            }
            Origin::Polish(probe) => {
                if let Some(polish) = &mut self.state.polish {
                    polish.tell(probe, rank.value().unwrap_or(f64::INFINITY));
                }
                self.spare = Some(point);
            }
            Origin::Drawn | Origin::Survey(_) => {
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
        let Sample { point, rank, .. } = self.state.best.as_ref()?;
        Some(Best { point, rank: *rank })
    }

    fn region(&self) -> Option<(&[f64], f64)> {
        self.race_cars.as_ref()?.region()
    }

    fn portfolio(&self) -> Option<Portfolio> {
        let decisions = self.state.decisions.iter();
        let members = [Member::Survey, Member::RaceCars, Member::CmaEs, Member::Polish];
        let account = |member: Member| {
            let Account { evaluations, improvements, best } = self.state.accounts[member as usize];
            let name = self.member_name(member).to_string();
            MemberAccount { name, evaluations, improvements, best }
        };
        Some(Portfolio {
            decisions: decisions
                .map(|(at, what)| Decision { at: *at, what: what.clone() })
                .collect(),
            members: members.map(account).into_iter().filter(|m| m.evaluations > 0).collect(),
        })
    }

    fn save(&self) -> Vec<u8> {
        let bytes =
            |member: &Option<Box<dyn Optimizer>>| member.as_ref().map(|member| member.save());
        let state = SavedState {
            own: self.state.clone(),
            race_cars: bytes(&self.race_cars),
            cma_es: bytes(&self.cma_es),
        };
        saved::save(self.name(), &self.space, &state)
    }
}
