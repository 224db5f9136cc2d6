//! Portfolios: members behind the optimizer's interface, who leads and why, and re-evaluation where the
//! objective is noisy.
//!
//! A [`Rule`] makes the members and says who leads: `auto`'s looks at the objective first, `relay`'s is
//! the user's own. The members that led stay alive with their state: late outcomes still reach them, and
//! when the leader has nothing to propose, the one before it goes on. Where the objective is noisy, a
//! lucky value does not make a point lead ([`referee`]).

pub mod auto;
pub(crate) mod polish;
mod referee;
pub mod relay;

use crate::error::Result;
use crate::optimizers::incumbent::Incumbent;
use crate::optimizers::ledger::Ledger;
use crate::optimizers::nested::Nested;
use crate::optimizers::saved::{self, ID_HEADROOM};
use crate::optimizers::shell::{Evaluated, Proposal, Search, Tools};
use crate::optimizers::{
    Best, Candidate, Decision, MemberAccount, Optimizer, Portfolio, ShrunkRegion,
};
use crate::outcome::{Outcome, Rank};
use crate::sample::Sample;
use crate::space::Space;
use referee::{Reevaluation, Referee, Verdict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The names of what proposes points besides the members.
const REFEREE: &str = "referee";
const SURVEY: &str = "survey";

/// Decides who leads.
pub(crate) trait Rule: fmt::Debug + Send + Serialize + DeserializeOwned {
    /// Called before each proposal: may add members and change who leads.
    fn advance(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()>;

    /// Writes a point of the rule's own to decide by, and returns its number. Called while nobody
    /// leads; without a number the point is a uniform draw.
    fn probe(&mut self, _space: &Space, _point: &mut [f64]) -> Option<usize> {
        None
    }

    /// Learns the value of a probe, `None` where there was none.
    fn learn_probe(&mut self, _number: usize, _value: Option<f64>) {}

    /// Whether the objective was said to be noisy.
    fn expects_noise(&self) -> bool;

    /// Checks the invariants of a deserialized state.
    fn is_sound(&self, team: &Team, space: &Space) -> bool;
}

/// Where a candidate that is out came from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// The rule: a probe by its number, or a uniform draw while probes are awaited.
    Rule(Option<usize>),
    /// A member's candidate.
    Member(MemberCandidate),
    /// A point that was evaluated before.
    Reevaluation(Reevaluation),
}

/// A candidate by its member's place in the team and its id there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct MemberCandidate {
    member: usize,
    id: u64,
}

/// What a part of the portfolio did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Account {
    evaluations: u64,
    improvements: u64,
    best: Option<f64>,
}

impl Account {
    /// Enters a value, and whether it was the best of all.
    fn credit(&mut self, rank: Rank, is_best: bool) {
        self.improvements += u64::from(is_best);
        if let Some(value) = rank.value() {
            self.best = Some(self.best.map_or(value, |best| best.min(value)));
        }
    }

    fn add(&mut self, other: Account) {
        self.evaluations += other.evaluations;
        self.improvements += other.improvements;
        self.best = match (self.best, other.best) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    fn is_sound(&self) -> bool {
        self.evaluations < ID_HEADROOM
            && self.improvements < ID_HEADROOM
            && self.best.is_none_or(f64::is_finite)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Member {
    nested: Nested,
    /// Whether it is told of every new best point before it is asked.
    follows_best: bool,
    account: Account,
}

/// The members, who leads, and what is known.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Team {
    budget: Option<u64>,
    members: Vec<Member>,
    /// The places of those who led, in order; the last one leads.
    leaders: Vec<usize>,
    best: Incumbent,
    /// Where the objective is noisy.
    referee: Option<Referee>,
    /// What was told before anybody led: the first member begins with it.
    early: Vec<(Box<[f64]>, Rank)>,
    /// Whether points were told that were not asked.
    has_known: bool,
    survey: Account,
    reevaluations: Account,
    decisions: Vec<(u64, String)>,
}

impl Team {
    pub(crate) fn new(budget: Option<u64>) -> Self {
        Team {
            budget,
            members: Vec::new(),
            leaders: Vec::new(),
            best: Incumbent::default(),
            referee: None,
            early: Vec::new(),
            has_known: false,
            survey: Account::default(),
            reevaluations: Account::default(),
            decisions: Vec::new(),
        }
    }

    /// Whether anybody leads yet.
    fn has_leader(&self) -> bool {
        !self.leaders.is_empty()
    }

    /// Adds a member, which will not propose what others have; returns its place.
    fn add(
        &mut self,
        mut optimizer: Box<dyn Optimizer>,
        follows_best: bool,
        tools: &Tools<'_, Origin>,
    ) -> usize {
        if tools.space.can_repeat() {
            optimizer.mark_seen(&tools.ledger.seen_keys());
        }
        let account = Account::default();
        self.members.push(Member { nested: Nested::new(optimizer), follows_best, account });
        self.members.len() - 1
    }

    fn member(&self, place: usize) -> &dyn Optimizer {
        self.members[place].nested.optimizer()
    }

    /// Makes a member the leader. Which evaluations it has is noted.
    fn lead(&mut self, place: usize, asked: u64, until: u64) {
        self.leaders.push(place);
        let name = self.member(place).name();
        self.note(asked, format!("evaluations {} to {until}: {name}", asked + 1));
    }

    /// Notes a decision, and how many points were asked before it.
    fn note(&mut self, asked: u64, what: String) {
        self.decisions.push((asked, what));
    }

    /// Tells a member everything that was told before anybody led.
    fn tell_early(&mut self, place: usize) -> Result<()> {
        for (point, rank) in std::mem::take(&mut self.early) {
            self.tell_known(place, point, rank)?;
        }
        Ok(())
    }

    /// Tells a member of the best point.
    fn tell_best(&mut self, place: usize) -> Result<()> {
        let Some(Sample { point, rank, .. }) = self.best.sample() else { return Ok(()) };
        let (point, rank) = (point.clone(), *rank);
        self.tell_known(place, point, rank)
    }

    fn tell_known(&mut self, place: usize, point: Box<[f64]>, rank: Rank) -> Result<()> {
        let member = self.members[place].nested.optimizer_mut();
        member.tell(Candidate::known(point), outcome_of(rank))
    }

    /// The point of the leader, or if it has none, of who led before. Where points can repeat, a leader
    /// without a point has seen them all.
    fn propose(&mut self, space: &Space) -> Option<Proposal<Origin>> {
        for turn in (0..self.leaders.len()).rev() {
            let place = self.leaders[turn];
            if self.members[place].follows_best && self.is_behind(place) {
                // Impossible: the best point is of this space.
                self.tell_best(place).ok()?;
            }
            let asked = self.members[place].nested.optimizer_mut().ask();
            if let Some(Candidate { id, key, point, .. }) = asked {
                let mark = Origin::Member(MemberCandidate { member: place, id });
                return Some(Proposal { point, key, mark });
            }
            if space.can_repeat() {
                break;
            }
        }
        None
    }

    /// Whether the team knows a better point than this member.
    fn is_behind(&self, place: usize) -> bool {
        let theirs = self.member(place).best();
        let ours = self.best.sample();
        ours.is_some_and(|ours| theirs.is_none_or(|theirs| ours.rank.beats(theirs.rank)))
    }

    /// A point that is to be evaluated again.
    fn propose_again(&mut self, tools: &mut Tools<'_, Origin>) -> Option<Proposal<Origin>> {
        let reevaluation = self.referee.as_mut()?.next()?;
        let sample = match reevaluation {
            Reevaluation::Leader(_) => self.best.sample()?,
            Reevaluation::Challenger(number) => &self.referee.as_ref()?.challenger(number)?.sample,
        };
        let mut point = tools.buffer();
        point.copy_from_slice(&sample.point);
        Some(Proposal { point, key: sample.key, mark: Origin::Reevaluation(reevaluation) })
    }

    /// Takes in an outcome as it is. Returns whether it is the best.
    fn enter(&mut self, sample: &Sample) -> bool {
        let is_best = self.best.is_beaten_by(sample.rank);
        if is_best {
            self.best.replace(&sample.point, sample.rank, sample.key);
            if let Some(referee) = &mut self.referee {
                referee.new_leader();
            }
        }
        is_best
    }

    /// Takes in a point that nobody asked for.
    fn learn_known(&mut self, sample: Sample) -> Result<()> {
        self.enter(&sample);
        self.has_known = true;
        if !self.has_leader() {
            self.early.push((sample.point, sample.rank));
            return Ok(());
        }
        for place in 0..self.members.len() {
            self.tell_known(place, sample.point.clone(), sample.rank)?;
        }
        Ok(())
    }

    /// Whether a member's outcome is better than the best, but perhaps only by chance.
    fn is_challenge(&self, rank: Rank, told: u64, dimension: usize) -> bool {
        let (Some(referee), Some(value), Some(best)) =
            (&self.referee, rank.value(), self.best.value())
        else {
            return false;
        };
        value < best && !referee.is_clear(value, best, told, dimension)
    }

    /// Takes in the value of a point that was evaluated again.
    fn learn_again(
        &mut self,
        reevaluation: Reevaluation,
        value: Option<f64>,
        space: &Space,
    ) -> Result<()> {
        self.reevaluations.evaluations += 1;
        let Some(referee) = &mut self.referee else { return Ok(()) };
        match reevaluation {
            Reevaluation::Leader(reign) => {
                if let Some(mean) = referee.tell_leader(reign, value)
                    && let Some(best) = self.best.revise(Outcome::Value(mean).rank())
                {
                    for member in &mut self.members {
                        member.nested.optimizer_mut().revise(&best.point, best.rank);
                    }
                }
                Ok(())
            }
            Reevaluation::Challenger(number) => {
                let limit = self.best.value().unwrap_or(f64::INFINITY);
                match referee.tell_challenger(number, value, limit) {
                    Some(verdict) => self.close(verdict, space),
                    None => Ok(()),
                }
            }
        }
    }

    /// Ends a challenge: the member that asked for the challenger learns the mean of its values.
    fn close(&mut self, verdict: Verdict, space: &Space) -> Result<()> {
        let Verdict { challenger, leads, mean } = verdict;
        let outcome = match mean {
            Some(mean) => Outcome::Value(mean),
            None => Outcome::failed("no value when it was re-evaluated"),
        };
        let sample = challenger.sample;
        if leads {
            self.best.replace(&sample.point, outcome.rank(), sample.key);
            let account = &mut self.members[challenger.origin.member].account;
            account.credit(outcome.rank(), true);
        }
        self.pass_on(challenger.origin, sample, outcome, space)
    }

    /// Tells the member that asked for it.
    fn pass_on(
        &mut self,
        origin: MemberCandidate,
        sample: Sample,
        outcome: Outcome,
        space: &Space,
    ) -> Result<()> {
        let MemberCandidate { member, id } = origin;
        let Sample { point, key, .. } = sample;
        let candidate = Candidate { id, space: space.fingerprint(), key, point };
        self.members[member].nested.optimizer_mut().tell(candidate, outcome)
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<Origin>) -> bool {
        let is_member = |place: usize| place < self.members.len();
        let is_early =
            |(point, rank): &(Box<[f64]>, Rank)| space.check(point).is_ok() && rank.is_sound();
        let is_origin = |origin: &Origin| match origin {
            Origin::Member(candidate) => is_member(candidate.member),
            Origin::Rule(_) | Origin::Reevaluation(_) => true,
        };
        let mut accounts =
            self.members.iter().map(|m| &m.account).chain([&self.survey, &self.reevaluations]);
        self.best.is_sound(space)
            && self.leaders.iter().all(|&place| is_member(place))
            && self.early.iter().all(is_early)
            && accounts.all(Account::is_sound)
            && ledger.marks().all(is_origin)
            && self.referee.as_ref().is_none_or(|referee| {
                referee.is_sound(space)
                    && referee.challengers().all(|challenger| is_member(challenger.origin.member))
            })
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

/// A portfolio whose members are led by a rule.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct PortfolioSearch<R: Rule> {
    rule: R,
    team: Team,
}

impl<R: Rule> PortfolioSearch<R> {
    pub(crate) fn new(rule: R, budget: Option<u64>) -> Self {
        PortfolioSearch { rule, team: Team::new(budget) }
    }
}

impl<R: Rule> Search for PortfolioSearch<R> {
    type Mark = Origin;

    const KEEPS_BEST: bool = true;

    fn propose(&mut self, tools: &mut Tools<'_, Origin>) -> Option<Proposal<Origin>> {
        let PortfolioSearch { rule, team } = self;
        if let Err(error) = rule.advance(team, tools) {
            // Members are made with valid settings for a space that they take.
            debug_assert!(false, "a member could not be made: {error}");
            return None;
        }
        if let Some(again) = team.propose_again(tools) {
            return Some(again);
        }
        if team.has_leader() {
            return team.propose(tools.space);
        }
        let mut point = tools.buffer();
        let number = rule.probe(tools.space, &mut point);
        if number.is_none() {
            tools.space.draw(tools.random, &mut point);
        }
        let key = tools.space.key(&point);
        Some(Proposal { point, key, mark: Origin::Rule(number) })
    }

    fn learn(
        &mut self,
        told: Evaluated<Origin>,
        tools: &mut Tools<'_, Origin>,
    ) -> Result<Option<Box<[f64]>>> {
        let PortfolioSearch { rule, team } = self;
        let Evaluated { sample, asked, .. } = told;
        let Some((_, origin)) = asked else {
            team.learn_known(sample)?;
            return Ok(None);
        };
        if let Some(referee) = &mut team.referee {
            referee.note_evaluation(tools.ledger.next_id(), team.budget);
        }
        match origin {
            Origin::Reevaluation(reevaluation) => {
                team.learn_again(reevaluation, sample.rank.value(), tools.space)?;
                Ok(Some(sample.point))
            }
            Origin::Member(candidate) => {
                let (told, n) = (tools.ledger.told(), tools.space.dimension());
                if team.is_challenge(sample.rank, told, n)
                    && let Some(referee) = &mut team.referee
                {
                    team.members[candidate.member].account.evaluations += 1;
                    referee.challenge(candidate, sample);
                    return Ok(None);
                }
                let is_best = team.enter(&sample);
                let account = &mut team.members[candidate.member].account;
                account.evaluations += 1;
                account.credit(sample.rank, is_best);
                let outcome = outcome_of(sample.rank);
                team.pass_on(candidate, sample, outcome, tools.space)?;
                Ok(None)
            }
            Origin::Rule(number) => {
                let is_best = team.enter(&sample);
                team.survey.evaluations += 1;
                team.survey.credit(sample.rank, is_best);
                if let Some(number) = number {
                    rule.learn_probe(number, sample.rank.value());
                }
                if team.has_leader() {
                    return Ok(Some(sample.point));
                }
                team.early.push((sample.point, sample.rank));
                Ok(None)
            }
        }
    }

    fn prepare(&mut self, space: &Space, depth: usize) -> Result<()> {
        for member in &mut self.team.members {
            member.nested.open(space, depth)?;
        }
        if self.rule.is_sound(&self.team, space) { Ok(()) } else { Err(saved::unsound()) }
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<Origin>) -> Result<bool> {
        Ok(self.team.is_sound(space, ledger))
    }

    fn best(&self) -> Option<Best<'_>> {
        let evaluations = self.team.referee.as_ref().map_or(1, Referee::leader_evaluations);
        Some(Best { evaluations, ..self.team.best.best()? })
    }

    /// Members know what they have proposed, and the referee asks again on purpose.
    fn repeats(&self) -> bool {
        true
    }

    /// Of the first member that has one.
    fn region(&self) -> Option<ShrunkRegion<'_>> {
        self.team.members.iter().find_map(|member| member.nested.optimizer().region())
    }

    fn is_heavy(&self, _: &Space) -> bool {
        self.team.members.iter().any(|member| member.nested.optimizer().is_heavy())
    }

    fn is_noisy(&self) -> bool {
        self.team.referee.is_some() || self.rule.expects_noise()
    }

    fn portfolio(&self) -> Option<Portfolio> {
        let Team { members, survey, reevaluations, decisions, .. } = &self.team;
        let mut accounts: Vec<(&str, Account)> = vec![(SURVEY, *survey)];
        for member in members {
            let name = member.nested.optimizer().name();
            match accounts.iter_mut().find(|(other, _)| *other == name) {
                Some((_, account)) => account.add(member.account),
                None => accounts.push((name, member.account)),
            }
        }
        accounts.push((REFEREE, *reevaluations));
        accounts.retain(|(_, account)| account.evaluations > 0);
        let account = |(name, Account { evaluations, improvements, best }): (&str, Account)| {
            MemberAccount { name: name.to_string(), evaluations, improvements, best }
        };
        Some(Portfolio {
            noisy: self.is_noisy(),
            decisions: decisions
                .iter()
                .map(|(at, what)| Decision { at: *at, what: what.clone() })
                .collect(),
            members: accounts.into_iter().map(account).collect(),
        })
    }
}
