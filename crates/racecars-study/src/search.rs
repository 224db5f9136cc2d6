//! The search of a study: a [`Session`] with the study's settings, and the trials that are out.
//!
//! The runner drives it, and a journal replays into it: the optimizer is a function of its seed, the asks
//! and the tells.

use crate::error::{Error, Result};
use crate::journal::KnownTold;
use crate::noise::Recommended;
use crate::plan::Plan;
use racecars::{Best, Next, Order, Outcome, Session, StopReason, StopRules, Trial};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a study does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A trial was asked, to be evaluated.
    Asked(u64),
    /// The outcomes of trials that are out are awaited.
    Wait,
    /// Every trial has been told, and there will be no other.
    Stop(StopReason),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Search {
    session: Session,
    /// Asked, and the outcome has not come in: by number.
    out: BTreeMap<u64, Trial>,
}

impl Search {
    /// The search of a study that has just begun, without stop rules. The algorithm plans with this
    /// plan's budget, also when the study is extended.
    pub(crate) fn new(plan: &Plan) -> Result<Search> {
        let space = &plan.space;
        let budget = rules(plan).planned(plan.start.len());
        let optimizer = plan.algorithm.optimizer(space, budget, plan.seed)?;
        let mut session = Session::new(optimizer, plan.direction);
        // What counts as an improvement is noted all along, also in a replay.
        let mut tolerance = StopRules::default();
        tolerance.patience_tolerance = plan.patience_tolerance;
        session.set_rules(tolerance)?;
        if plan.deterministic {
            session.set_order(Order::InOrder { lookahead: plan.lookahead })?;
        }
        for known in &plan.known {
            session.known(known.point.encode(space)?, known.outcome.clone())?;
        }
        for point in &plan.start {
            session.start(point.encode(space)?)?;
        }
        Ok(Search { session, out: BTreeMap::new() })
    }

    /// Applies the stop rules of a plan. The time limit is not among them: it is the runner's, since in
    /// deterministic studies it must not be seen in what is asked.
    pub(crate) fn apply_rules(&mut self, plan: &Plan) -> Result<()> {
        Ok(self.session.set_rules(rules(plan))?)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The session, and the trials that are out, oldest first.
    pub(crate) fn into_parts(self) -> (Session, Vec<Trial>) {
        (self.session, self.out.into_values().collect())
    }

    /// Whether outcomes are told in the order asked.
    pub(crate) fn is_in_order(&self) -> bool {
        self.session.order() != Order::AsTheyCome
    }

    /// Asks for no more trials.
    pub(crate) fn stop(&mut self, reason: StopReason) {
        self.session.stop(reason);
    }

    /// Tells the optimizer what there is to tell, and asks for a trial if the rules allow it.
    pub(crate) fn step(&mut self) -> Result<Step> {
        loop {
            match self.session.next(Duration::ZERO)? {
                Next::Evaluate(trial) => return Ok(Step::Asked(self.issue(trial))),
                Next::Told => {}
                Next::Wait => return Ok(Step::Wait),
                Next::Stop(reason) => return Ok(Step::Stop(reason)),
            }
        }
    }

    /// Asks for the trial that a journal has next, when `told` outcomes had been told if that is given.
    /// Returns its point; `Err` says why it cannot be.
    pub(crate) fn replay_ask(&mut self, number: u64, told: Option<u64>) -> Result<&[f64]> {
        let Some(trial) = self.session.replay_ask(told)? else {
            return Err(Error::setting("the space was exhausted before it"));
        };
        if trial.number() != number {
            let next = trial.number();
            return Err(Error::setting(format!("it asks trial {number} where {next} is next")));
        }
        let number = self.issue(trial);
        Ok(self.out[&number].point())
    }

    /// Tells the optimizer of a point that was not proposed.
    pub(crate) fn replay_known(&mut self, known: &KnownTold) -> Result<()> {
        let point = known.params.encode(self.session.space())?;
        self.session.replay_tells(known.told)?;
        Ok(self.session.known(point, known.outcome.clone())?)
    }

    fn issue(&mut self, trial: Trial) -> u64 {
        let number = trial.number();
        self.out.insert(number, trial);
        number
    }

    /// The numbers of the trials that are out, oldest first.
    pub(crate) fn out(&self) -> impl Iterator<Item = u64> {
        self.out.keys().copied()
    }

    /// The point of a trial that is out, or why it is not.
    pub(crate) fn point(&self, trial: u64) -> Result<&[f64]> {
        self.out.get(&trial).map(Trial::point).ok_or_else(|| self.not_out(trial))
    }

    fn not_out(&self, trial: u64) -> Error {
        Error::setting(match self.session.asked() {
            asked if trial >= asked => format!("trial {trial} was never asked; {asked} have been"),
            _ => format!("trial {trial} has been told before"),
        })
    }

    /// Takes the outcome of a trial that is out.
    pub(crate) fn tell(&mut self, trial: u64, outcome: Outcome) -> Result<()> {
        let trial = self.out.remove(&trial).ok_or_else(|| self.not_out(trial))?;
        Ok(self.session.tell(trial, outcome)?)
    }

    /// Tells the optimizer all outcomes whose turn has come.
    pub(crate) fn settle(&mut self) -> Result<()> {
        Ok(self.session.settle()?)
    }

    /// The best point and value, if these are known without an evaluation and no trial is better.
    pub(crate) fn best_known(&self) -> Option<(&[f64], f64)> {
        if self.session.best_trial().is_some() {
            return None;
        }
        Some((self.session.optimizer().best()?.point, self.session.value()?))
    }

    /// Where the algorithm knows of noise and re-evaluates points: the point it recommends.
    pub(crate) fn recommended(&self) -> Option<Recommended> {
        let optimizer = self.session.optimizer();
        let trial = self.session.best_trial().filter(|_| optimizer.is_noisy() == Some(true))?;
        let Best { point, evaluations, .. } = optimizer.best()?;
        let point = point.to_vec();
        Some(Recommended { trial, point, value: self.session.value()?, evaluations })
    }
}

/// The stop rules of a plan, but for the time limit.
fn rules(plan: &Plan) -> StopRules {
    let mut rules = StopRules::default();
    (rules.evaluations, rules.target) = (plan.limit(), plan.target);
    (rules.patience, rules.patience_tolerance) = (plan.patience, plan.patience_tolerance);
    rules
}
