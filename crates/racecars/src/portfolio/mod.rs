//! Portfolios: several optimizers share one budget, and points are re-evaluated if the objective is noisy.
//!
//! A rule creates the members and decides which one is active. The rule of [`auto`] surveys the objective
//! first; that of [`relay`] is given by the user. Members that were active before keep their state: late
//! outcomes still reach them, and if the active member has nothing to propose, the previous one proposes
//! a point. If the objective is noisy, a better value alone does not make a point the best: see `referee`.

pub mod auto;
pub(crate) mod held;
pub(crate) mod polish;
mod referee;
pub mod relay;
pub(crate) mod scan;

use crate::error::Result;
use crate::optimizers::incumbent::Incumbent;
use crate::optimizers::ledger::Ledger;
use crate::optimizers::nested::Nested;
use crate::optimizers::saved::{self, ID_HEADROOM};
use crate::optimizers::shell::{Evaluated, Proposal, Search, Tools};
use crate::optimizers::{
    Best, Candidate, Decision, MemberAccount, Optimizer, Portfolio, ShrunkRegion,
};
use crate::outcome::{Measured, Outcome, Rank};
use crate::sample::Sample;
use crate::space::Space;
use referee::{Reevaluation, Referee, Verdict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;

/// Names in reports of evaluations that are not a member's.
const REFEREE: &str = "referee";
const SURVEY: &str = "survey";
/// No member begins with more evaluations than this.
const MAX_KEPT: usize = 1 << 16;

/// Creates the members and decides which one is active.
pub(crate) trait Rule: fmt::Debug + Send + Serialize + DeserializeOwned {
    /// Called before each proposal. May add members and activate another one.
    fn advance(&mut self, team: &mut Team, tools: &mut Tools<'_, Origin>) -> Result<()>;

    /// Writes a probe point and returns its number; `None` for a uniform draw instead. Called while no
    /// member is active.
    fn probe(&mut self, _space: &Space, _point: &mut [f64]) -> Option<usize> {
        None
    }

    /// Learns the value of a probe; `None` if it has none.
    fn learn_probe(&mut self, _number: usize, _value: Option<f64>) {}

    /// Learns that evaluations measure constraints, or have values at infeasible points.
    fn learn_constraints(&mut self) {}

    /// Whether the objective is noisy; `None` while that is not known.
    fn is_noisy(&self) -> Option<bool>;

    /// Checks the invariants of a deserialized state.
    fn is_sound(&self, team: &Team, space: &Space) -> bool;
}

/// The origin of a pending candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// The rule: the number of a probe; `None` for a uniform draw while probes are pending.
    Rule(Option<usize>),
    /// A member's candidate.
    Member(MemberCandidate),
    /// The re-evaluation of a point.
    Reevaluation(Reevaluation),
}

/// A candidate of a member: the member's index in the team, and the candidate's id there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct MemberCandidate {
    member: usize,
    id: u64,
}

/// The evaluations of a part of the portfolio.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Account {
    evaluations: u64,
    improvements: u64,
    best: Option<f64>,
}

impl Account {
    /// Records a value, and whether it is the best of the portfolio.
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
    /// Whether it is told the best point before each ask.
    follows_best: bool,
    account: Account,
}

/// The members, the active one, and the best point.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Team {
    budget: Option<u64>,
    members: Vec<Member>,
    /// The indices of the members that were activated, in order. The last one is active.
    activated: Vec<usize>,
    best: Incumbent,
    /// Present if the objective is noisy.
    referee: Option<Referee>,
    /// Points told before the members were chosen. Members that look for a start of their own begin with
    /// them.
    early: Vec<ToldPoint>,
    /// The latest evaluations, at most `keeps`, with which a member begins that models all values.
    latest: VecDeque<ToldPoint>,
    keeps: usize,
    /// Whether a member is active only until the rule knows enough to choose.
    is_provisional: bool,
    /// Whether known points were told.
    has_known: bool,
    /// The largest violation of each constraint that evaluations measure.
    violations: Vec<f64>,
    survey: Account,
    reevaluations: Account,
    decisions: Vec<Decision>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ToldPoint {
    point: Box<[f64]>,
    rank: Rank,
    measured: Option<Measured>,
}

impl Team {
    /// Whether a member is active yet.
    fn has_active_member(&self) -> bool {
        !self.activated.is_empty()
    }

    /// Adds a member, which will not propose points that were proposed before. Returns its index.
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
        self.members.push(Member { nested: Nested::Open(optimizer), follows_best, account });
        self.members.len() - 1
    }

    fn member(&self, place: usize) -> &dyn Optimizer {
        self.members[place].nested.optimizer()
    }

    /// Activates a member, and records its range of evaluations.
    fn activate(&mut self, place: usize, asked: u64, until: u64) {
        debug_assert!(place < self.members.len(), "only a member can be active");
        self.activated.retain(|&other| other != place);
        self.activated.push(place);
        let name = self.member(place).name();
        self.note(asked, format!("evaluations {} to {until}: {name}", asked + 1));
    }

    /// No member is active until the rule activates one again.
    fn pause(&mut self, asked: u64, why: String) {
        self.activated.clear();
        self.note(asked, why);
    }

    /// The best value that a member found itself.
    fn own_best(&self, place: usize) -> Option<f64> {
        self.members[place].account.best
    }

    /// The best value of the survey.
    fn best_of_survey(&self) -> Option<f64> {
        self.survey.best
    }

    /// The number of evaluations of a member.
    fn evaluations(&self, place: usize) -> u64 {
        self.members[place].account.evaluations
    }

    /// Records a decision after `asked` points.
    fn note(&mut self, asked: u64, what: String) {
        self.decisions.push(Decision { at: asked, what });
    }

    /// Tells a member all points told before a member was active.
    fn tell_early(&mut self, place: usize) -> Result<()> {
        let early = std::mem::take(&mut self.early);
        let told = self.tell_points(place, &early);
        self.early = early;
        told
    }

    /// Tells a member the latest evaluations.
    fn tell_latest(&mut self, place: usize) -> Result<()> {
        let latest = std::mem::take(&mut self.latest);
        let told = self.tell_points(place, &latest);
        self.latest = latest;
        told
    }

    /// Whether two points of the latest evaluations have the same value: the objective has plateaus.
    fn has_plateaus(&self) -> bool {
        let mut latest: Vec<&ToldPoint> = self.latest.iter().collect();
        latest.sort_by_key(|told| told.rank);
        latest.windows(2).any(|pair| {
            pair[0].rank == pair[1].rank
                && !pair[0].rank.is_failure()
                && pair[0].point != pair[1].point
        })
    }

    fn tell_points<'a>(
        &mut self,
        place: usize,
        points: impl IntoIterator<Item = &'a ToldPoint>,
    ) -> Result<()> {
        for ToldPoint { point, rank, measured } in points {
            self.tell_known(place, point.clone(), *rank, measured.as_ref())?;
        }
        Ok(())
    }

    /// Keeps an evaluation, or a known point, for members that begin later.
    fn keep(&mut self, sample: &Sample, measured: Option<&Measured>) {
        if self.keeps == 0 {
            return;
        }
        if self.latest.len() >= self.keeps {
            self.latest.pop_front();
        }
        let (point, rank) = (sample.point.clone(), sample.rank);
        self.latest.push_back(ToldPoint { point, rank, measured: measured.cloned() });
    }

    /// Tells a member the best point.
    fn tell_best(&mut self, place: usize) -> Result<()> {
        let Some(Sample { point, rank, .. }) = self.best.sample() else { return Ok(()) };
        let (point, rank) = (point.clone(), *rank);
        self.tell_known(place, point, rank, None)
    }

    fn tell_known(
        &mut self,
        place: usize,
        point: Box<[f64]>,
        rank: Rank,
        measured: Option<&Measured>,
    ) -> Result<()> {
        self.tell_outcome(place, Candidate::known(point), rank, measured)
    }

    /// Tells a member an outcome.
    fn tell_outcome(
        &mut self,
        place: usize,
        candidate: Candidate,
        rank: Rank,
        measured: Option<&Measured>,
    ) -> Result<()> {
        let rank = measured.map_or(rank, |measured| self.scaled(rank, measured));
        let member = self.members[place].nested.optimizer_mut();
        match measured {
            Some(measured) => member.tell_measured(candidate, rank, measured),
            None => member.tell_rank(candidate, rank),
        }
    }

    /// The rank that members learn of an infeasible point: violations are divided by the largest so far of the same
    /// constraint before they are added, so that none is lost beside others in larger units.
    fn scaled(&self, rank: Rank, measured: &Measured) -> Rank {
        if rank.violation().is_none() || measured.constraints.len() != self.violations.len() {
            return rank;
        }
        let by = measured.constraints.iter().zip(&self.violations);
        let sum = by.filter(|(by, _)| **by > 0.0).map(|(by, most)| by / most).sum();
        Outcome::infeasible(sum).rank()
    }

    /// Learns the scale of constraints.
    fn learn_scale(&mut self, measured: &Measured) {
        if self.violations.len() < measured.constraints.len() {
            self.violations.resize(measured.constraints.len(), 0.0);
        }
        for (most, by) in self.violations.iter_mut().zip(&measured.constraints) {
            *most = most.max(*by);
        }
    }

    /// Proposes a point of the active member, or if it has none, of the previous ones. In spaces where
    /// points can repeat, a member without a proposal has exhausted the space.
    #[expect(clippy::expect_used, reason = "see the message")]
    fn propose(&mut self, space: &Space) -> Option<Proposal<Origin>> {
        for index in (0..self.activated.len()).rev() {
            let place = self.activated[index];
            if self.members[place].follows_best && self.is_behind(place) {
                self.tell_best(place).expect("the best point belongs to the space");
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

    /// Whether the team has a better point than this member.
    fn is_behind(&self, place: usize) -> bool {
        let theirs = self.member(place).best();
        let ours = self.best.sample();
        ours.is_some_and(|ours| theirs.is_none_or(|theirs| ours.rank.beats(theirs.rank)))
    }

    /// If a model leads under noise, its favourite becomes the incumbent.
    fn choose_by_model(&mut self, tools: &Tools<'_, Origin>) {
        let (Some(referee), Some(&leader)) = (&mut self.referee, self.activated.last()) else {
            return;
        };
        let favourite = self.members[leader].nested.optimizer_mut().favourite();
        let Some((point, rank)) = favourite else { return };
        let is_new = self.best.sample().is_none_or(|best| best.point != point);
        if is_new {
            self.best.replace(&point, rank, tools.space.key(&point));
        }
        referee.take_choice(is_new, tools.ledger.next_id());
    }

    /// Proposes a re-evaluation, if one is due, or if members have no other point.
    fn propose_reevaluation(
        &mut self,
        tools: &mut Tools<'_, Origin>,
        is_exhausted: bool,
    ) -> Option<Proposal<Origin>> {
        // A point without a value is not evaluated again.
        self.best.value()?;
        let (asked, referee) = (tools.ledger.next_id(), self.referee.as_mut()?);
        let is_wanted = is_exhausted && referee.is_uncertain();
        if referee.is_model_due(asked) || is_wanted && referee.is_by_model() {
            self.choose_by_model(tools);
        }
        let referee = self.referee.as_mut()?;
        if is_wanted {
            referee.request();
        }
        let reevaluation = referee.next(asked)?;
        let sample = match reevaluation {
            Reevaluation::Incumbent(_) | Reevaluation::Final(_) => self.best.sample()?,
            Reevaluation::Challenger(number) => &self.referee.as_ref()?.challenger(number)?.sample,
        };
        let mut point = tools.buffer();
        point.copy_from_slice(&sample.point);
        Some(Proposal { point, key: sample.key, mark: Origin::Reevaluation(reevaluation) })
    }

    /// Updates the best point. Returns whether this sample is the best.
    fn update_best(&mut self, sample: &Sample) -> bool {
        let is_best = self.best.is_beaten_by(sample.rank);
        if is_best {
            self.best.replace(&sample.point, sample.rank, sample.key);
            if let Some(referee) = &mut self.referee {
                referee.new_incumbent();
            }
        }
        is_best
    }

    /// Learns a point that was not asked.
    fn learn_known(&mut self, sample: Sample, measured: Option<&Measured>) -> Result<()> {
        self.update_best(&sample);
        self.has_known = true;
        if !self.has_active_member() {
            let Sample { point, rank, .. } = sample;
            self.early.push(ToldPoint { point, rank, measured: measured.cloned() });
            return Ok(());
        }
        for place in 0..self.members.len() {
            self.tell_known(place, sample.point.clone(), sample.rank, measured)?;
        }
        Ok(())
    }

    /// Whether a member's outcome is better than the best, but possibly only by chance.
    fn is_challenge(&self, rank: Rank, asked: u64, dimension: usize) -> bool {
        let (Some(referee), Some(value), Some(best)) =
            (&self.referee, rank.value(), self.best.value())
        else {
            return false;
        };
        value < best && !referee.is_clear(value, best, asked, dimension)
    }

    /// Learns the value of a re-evaluation.
    fn learn_reevaluation(
        &mut self,
        reevaluation: Reevaluation,
        value: Option<f64>,
        tools: &Tools<'_, Origin>,
    ) -> Result<()> {
        self.reevaluations.evaluations += 1;
        let Some(referee) = &mut self.referee else { return Ok(()) };
        match reevaluation {
            Reevaluation::Incumbent(number) | Reevaluation::Final(number) => {
                let is_final = matches!(reevaluation, Reevaluation::Final(_));
                if let Some(mean) = referee.tell_incumbent(number, is_final, value)
                    && let Some(latest) = value
                    && let Some(best) = self.best.revise(Outcome::Value(mean).rank())
                {
                    let latest = Outcome::Value(latest).rank();
                    for member in &mut self.members {
                        member.nested.optimizer_mut().revise(&best.point, latest, best.rank);
                    }
                }
                Ok(())
            }
            Reevaluation::Challenger(number) => {
                let limit = self.best.value().unwrap_or(f64::INFINITY);
                match referee.tell_challenger(number, value, limit, tools.ledger.next_id()) {
                    Some(verdict) => self.close(verdict, tools.space),
                    None => Ok(()),
                }
            }
        }
    }

    /// Ends a challenge. The member that proposed the challenger learns the mean of its values.
    fn close(&mut self, verdict: Verdict, space: &Space) -> Result<()> {
        let Verdict { challenger, wins, mean } = verdict;
        // Without a mean, a re-evaluation failed.
        let rank = mean.map_or(Rank::FAILURE, |mean| Outcome::Value(mean).rank());
        let sample = Sample { rank, ..challenger.sample };
        if wins {
            self.best.replace(&sample.point, rank, sample.key);
            self.members[challenger.origin.member].account.credit(rank, true);
        }
        self.tell_member(challenger.origin, sample, None, space)
    }

    /// Tells the outcome to the member that proposed the point.
    fn tell_member(
        &mut self,
        origin: MemberCandidate,
        sample: Sample,
        measured: Option<&Measured>,
        space: &Space,
    ) -> Result<()> {
        let MemberCandidate { member, id } = origin;
        let Sample { point, key, rank } = sample;
        let candidate = Candidate { id, space: space.fingerprint(), key, point };
        self.tell_outcome(member, candidate, rank, measured)
    }

    /// Checks the invariants of a deserialized team.
    fn is_sound(&self, space: &Space, ledger: &Ledger<Origin>) -> bool {
        let is_member = |place: usize| place < self.members.len();
        let is_told = |told: &ToldPoint| {
            space.check(&told.point).is_ok()
                && told.rank.is_sound()
                && told.measured.as_ref().is_none_or(Measured::is_sound)
        };
        let is_origin = |origin: &Origin| match origin {
            Origin::Member(candidate) => is_member(candidate.member),
            Origin::Rule(_) | Origin::Reevaluation(_) => true,
        };
        let mut accounts =
            self.members.iter().map(|m| &m.account).chain([&self.survey, &self.reevaluations]);
        self.best.is_sound(space)
            && self.violations.iter().all(|most| (0.0..f64::INFINITY).contains(most))
            && self.activated.iter().all(|&place| is_member(place))
            && self.early.iter().chain(&self.latest).all(is_told)
            && self.latest.len() <= self.keeps.min(MAX_KEPT)
            && accounts.all(Account::is_sound)
            && ledger.marks().all(is_origin)
            && self.referee.as_ref().is_none_or(|referee| {
                referee.is_sound(space)
                    && referee.challengers().all(|challenger| is_member(challenger.origin.member))
            })
    }
}

/// A portfolio with a rule.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct PortfolioSearch<R: Rule> {
    rule: R,
    team: Team,
}

impl<R: Rule> PortfolioSearch<R> {
    pub(crate) fn new(rule: R, budget: Option<u64>) -> Self {
        PortfolioSearch { rule, team: Team { budget, ..Team::default() } }
    }

    /// Keeps this many of the latest evaluations for members that begin later.
    pub(crate) fn keeping(mut self, keeps: usize) -> Self {
        self.team.keeps = keeps;
        self
    }
}

impl<R: Rule> Search for PortfolioSearch<R> {
    type Mark = Origin;

    const KEEPS_BEST: bool = true;
    const SETTLES: bool = true;

    #[expect(clippy::expect_used, reason = "see the message")]
    fn propose(&mut self, tools: &mut Tools<'_, Origin>) -> Option<Proposal<Origin>> {
        let PortfolioSearch { rule, team } = self;
        rule.advance(team, tools).expect("members have valid settings for the space");
        if let Some(reevaluation) = team.propose_reevaluation(tools, false) {
            return Some(reevaluation);
        }
        if team.has_active_member() {
            let proposal = team.propose(tools.space);
            let proposal = proposal.or_else(|| team.propose_reevaluation(tools, true));
            // In a continuous space, a uniform draw if no member has a point: a polish without members before
            // it, while all its coordinates are out.
            if proposal.is_some() || tools.space.can_repeat() {
                return proposal;
            }
        }
        let mut point = tools.buffer();
        let number = rule.probe(tools.space, &mut point);
        let key = match number {
            Some(_) => tools.space.key(&point),
            None => tools.draw(&mut point)?,
        };
        Some(Proposal { point, key, mark: Origin::Rule(number) })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<Origin>,
        tools: &mut Tools<'_, Origin>,
    ) -> Result<Option<Box<[f64]>>> {
        let PortfolioSearch { rule, team } = self;
        let Evaluated { sample, asked, .. } = evaluated;
        team.keep(&sample, tools.measured);
        if let Some(measured) = tools.measured {
            rule.learn_constraints();
            team.learn_scale(measured);
        }
        let Some(origin) = asked.map(|asked| asked.mark) else {
            team.learn_known(sample, tools.measured)?;
            return Ok(None);
        };
        if let Some(referee) = &mut team.referee {
            referee.count_evaluation();
        }
        let (asked, n) = (tools.ledger.next_id(), tools.space.dimension());
        match origin {
            Origin::Reevaluation(reevaluation) => {
                team.learn_reevaluation(reevaluation, sample.rank.value(), tools)?;
                Ok(Some(sample.point))
            }
            Origin::Member(candidate) => {
                let is_challenge = team.is_challenge(sample.rank, asked, n);
                if is_challenge
                    && let Some(referee) = &mut team.referee
                    && !referee.is_by_model()
                {
                    team.members[candidate.member].account.evaluations += 1;
                    referee.challenge(candidate, sample);
                    return Ok(None);
                }
                let is_best = !is_challenge && team.update_best(&sample);
                let account = &mut team.members[candidate.member].account;
                account.evaluations += 1;
                account.credit(sample.rank, is_best);
                team.tell_member(candidate, sample, tools.measured, tools.space)?;
                Ok(None)
            }
            Origin::Rule(number) => {
                // A late probe that may be better only by chance has no member to challenge for.
                let is_best =
                    !team.is_challenge(sample.rank, asked, n) && team.update_best(&sample);
                team.survey.evaluations += 1;
                team.survey.credit(sample.rank, is_best);
                if let Some(number) = number {
                    let measured = tools.measured.and_then(|measured| measured.value);
                    rule.learn_probe(number, measured.or(sample.rank.value()));
                }
                if team.has_active_member() && !team.is_provisional {
                    return Ok(Some(sample.point));
                }
                let Sample { point, rank, .. } = sample;
                team.early.push(ToldPoint { point, rank, measured: tools.measured.cloned() });
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
        let evaluations = self.team.referee.as_ref().map_or(1, Referee::incumbent_evaluations);
        Some(Best { evaluations, ..self.team.best.best()? })
    }

    /// Members avoid repeats themselves, and the referee repeats points on purpose.
    fn repeats(&self) -> bool {
        true
    }

    /// The region of the first member that has one.
    fn region(&self) -> Option<ShrunkRegion<'_>> {
        self.team.members.iter().find_map(|member| member.nested.optimizer().region())
    }

    fn is_heavy(&self, _: &Space) -> bool {
        self.team.members.iter().any(|member| member.nested.optimizer().is_heavy())
    }

    fn is_noisy(&self) -> Option<bool> {
        self.rule.is_noisy()
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
            noisy: self.is_noisy() == Some(true),
            decisions: decisions.clone(),
            members: accounts.into_iter().map(account).collect(),
        })
    }
}
