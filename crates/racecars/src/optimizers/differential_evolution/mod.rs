//! Differential evolution.
//!
//! One state machine implements three strategies, which differ in the mutation:
//!
//! - **best/1/bin** and **rand/1/bin** (R. Storn & K. Price, "Differential evolution", 1997), with
//!   the defaults of scipy's `differential_evolution`: a population of 15 n that starts as a Latin
//!   hypercube, F drawn from 0.5 to 1 for each generation, CR = 0.7, and a trial that is no worse
//!   replaces its target immediately.
//! - **L-SHADE** (R. Tanabe & A. Fukunaga, CEC 2014): current-to-pbest/1/bin with an archive, F and CR
//!   drawn around successful values, and a population that shrinks over the budget.
//!
//! Departures, to fit ask and tell: a generation is one round of asking, not of telling, so that it does
//! not wait for lost candidates. L-SHADE also replaces targets immediately, where the paper waits for the
//! end of the generation, and restarts when it has converged: see `run`. For small budgets the population is smaller: see the setting `population` of
//! [`DifferentialEvolution`].
//!
//! A trial costs one pass over its coordinates. It is written to the candidate's buffer, which moves into
//! the population if the trial wins, and is reused otherwise.

mod design;
mod population;
mod run;
mod settings;
mod success_history;
mod trial;

pub(crate) use settings::Strategy;
pub use settings::{DifferentialEvolution, LShade};

use super::Best;
use super::ledger::Ledger;
use super::shell::{Evaluated, Proposal, Search, Setup, Tools};
use crate::error::Result;
use crate::random::Random;
use crate::sample::Sample;
use crate::space::Space;
use population::Population;
use run::Run;
use serde::{Deserialize, Serialize};
use settings::Resolved;
use success_history::SuccessHistory;
use trial::{Mutation, Repair};

/// p: the share of the best members that an L-SHADE trial may move towards.
const P_BEST_SHARE: f64 = 0.11;

/// Differential evolution with one of the strategies.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeSearch {
    settings: Resolved,
    /// The seed of the initial points.
    design_seed: u64,
    /// The number of initial points asked.
    designed: usize,
    population: Population,
    run: Run,
    /// F of the current generation, for best/1 and rand/1.
    weight: f64,
    /// The success history of L-SHADE.
    history: Option<SuccessHistory>,
    /// The initial points not yet asked, in reverse order. Computed when first needed.
    #[serde(skip)]
    design: Option<Vec<Box<[f64]>>>,
}

/// The data of a pending candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrialParameters {
    /// The member to be replaced; `None` for initial points, and if the member was dropped.
    target: Option<u32>,
    weight: f64,
    crossover: f64,
}

impl TrialParameters {
    /// A point without a target.
    const UNTARGETED: TrialParameters =
        TrialParameters { target: None, weight: 0.0, crossover: 0.0 };
}

impl DeSearch {
    /// best/1/bin or rand/1/bin.
    pub(crate) fn classic(
        strategy: Strategy,
        settings: &DifferentialEvolution,
        setup: Setup<'_>,
        random: &mut Random,
    ) -> Result<Self> {
        let settings = settings.resolve(strategy, setup.space.dimension(), setup.budget)?;
        Ok(DeSearch::new(settings, setup.space, random))
    }

    /// L-SHADE.
    pub(crate) fn l_shade(
        settings: &LShade,
        setup: Setup<'_>,
        random: &mut Random,
    ) -> Result<Self> {
        let settings = settings.resolve(setup.space.dimension(), setup.budget)?;
        Ok(DeSearch::new(settings, setup.space, random))
    }

    fn new(settings: Resolved, space: &Space, random: &mut Random) -> Self {
        DeSearch {
            run: Run::new(&settings, space.dimension()),
            design_seed: random.bits(),
            designed: 0,
            population: Population::default(),
            weight: settings.weight.0,
            history: (settings.strategy == Strategy::LShade).then(SuccessHistory::new),
            settings,
            design: None,
        }
    }

    /// Proposes the next initial point. If it was seen before, it is replaced by a uniform draw.
    fn propose_designed(
        &mut self,
        tools: &mut Tools<'_, TrialParameters>,
    ) -> Option<Proposal<TrialParameters>> {
        let DeSearch { run, design_seed, designed, design, .. } = self;
        let design = design.get_or_insert_with(|| {
            let count = run.population;
            let mut points = design::latin_hypercube(tools.space, count, *design_seed);
            points.truncate(count - *designed);
            points
        });
        *designed += 1;
        let mut point = design.pop()?;
        let key = tools.unseen(1, &mut point, |tools, _, point| tools.space.key(point))?;
        Some(Proposal { point, key, mark: TrialParameters::UNTARGETED })
    }

    /// Starts the next run, if this one is over.
    fn restart_if_over(&mut self, tools: &mut Tools<'_, TrialParameters>) {
        let (told, next_id) = (tools.ledger.told(), tools.ledger.next_id());
        let DeSearch { settings, population, run, .. } = self;
        if !run.restart(settings, population, tools.space, told, next_id) {
            return;
        }
        tools.ledger.marks_mut().for_each(|trial| trial.target = None);
        (self.design_seed, self.designed, self.design) = (tools.random.bits(), 0, None);
        self.history = Some(SuccessHistory::new());
    }

    /// The next target. After the last member of a round, a new generation begins.
    fn next_target(&mut self, tools: &mut Tools<'_, TrialParameters>) -> usize {
        let DeSearch { settings, population, run, weight, history, .. } = self;
        if let Some(target) = population.next_target() {
            return target;
        }
        if let Some(history) = history {
            history.learn();
            population.shrink(run.population_after(tools.ledger.told()), |places| {
                for trial in tools.ledger.marks_mut() {
                    trial.target = trial.target.and_then(|target| places[target as usize]);
                }
            });
            history.shrink_archive(population.len(), tools.random);
        } else {
            *weight = tools.random.between(settings.weight.0, settings.weight.1);
        }
        population.begin_round(history.is_some())
    }

    /// Proposes a trial for `target`.
    fn propose_trial(
        &mut self,
        target: usize,
        tools: &mut Tools<'_, TrialParameters>,
    ) -> Option<Proposal<TrialParameters>> {
        /// In spaces where points can repeat: attempts before a uniform draw.
        const MAX_TRIES: usize = 8;
        let mut trial =
            TrialParameters { target: Some(target as u32), ..TrialParameters::UNTARGETED };
        let mut point = tools.buffer();
        let key = tools.unseen(MAX_TRIES, &mut point, |tools, attempt, point| {
            (trial.weight, trial.crossover) = self.mix(target, tools.space, tools.random, point);
            // A converged population makes few new points, so each attempt redraws one more coordinate.
            for _ in 0..attempt {
                let i = tools.random.index(point.len());
                point[i] = tools.space.axis(i).draw(tools.random);
            }
            tools.space.key(point)
        })?;
        Some(Proposal { point, key, mark: trial })
    }

    /// Writes a trial for `target` to `point`. Returns its F and CR.
    fn mix(
        &self,
        target: usize,
        space: &Space,
        random: &mut Random,
        point: &mut [f64],
    ) -> (f64, f64) {
        let DeSearch { settings, population, weight, history, .. } = self;
        let members = population.members();
        let at = |index: usize| -> &[f64] { &members[index].point };
        let count = members.len();
        let mutation = if let Some(history) = history {
            let (weight, crossover) = history.draw(random);
            let good = at(population.draw_good(P_BEST_SHARE, random));
            let plus = draw_other(count, &[target], random);
            // The second point of the difference may also be from the archive.
            let minus = draw_other(count + history.archive().len(), &[target, plus], random);
            Mutation {
                target: at(target),
                base: at(target),
                toward: good,
                plus: at(plus),
                minus: if minus < count { at(minus) } else { &history.archive()[minus - count] },
                weight,
                crossover,
                repair: Repair::Halfway,
            }
        } else {
            let base = match settings.strategy {
                Strategy::Random => draw_other(count, &[target], random),
                _ => population.best_index(),
            };
            // rand/1 needs three different members. For best/1, scipy allows the best in the difference.
            let taken = if settings.strategy == Strategy::Random { base } else { target };
            let plus = draw_other(count, &[target, taken], random);
            let minus = draw_other(count, &[target, taken, plus], random);
            Mutation {
                target: at(target),
                base: at(base),
                toward: at(base),
                plus: at(plus),
                minus: at(minus),
                weight: *weight,
                crossover: settings.crossover,
                repair: Repair::Redraw,
            }
        };
        mutation.write_trial(space, random, point);
        (mutation.weight, mutation.crossover)
    }

    /// Replaces the target by the trial if that is no worse. Returns the loser's point, unless it is
    /// archived.
    fn compete(
        &mut self,
        sample: Sample,
        trial: TrialParameters,
        target: usize,
        random: &mut Random,
    ) -> Option<Box<[f64]>> {
        let DeSearch { population, history, .. } = self;
        let (old, new) = (population.members()[target].rank, sample.rank);
        if old.beats(new) {
            return Some(sample.point);
        }
        let replaced = population.replace(target, sample).point;
        match history {
            Some(history) if new.beats(old) => {
                let gain = old.value().zip(new.value()).map(|(old, new)| old - new);
                history.record(trial.weight, trial.crossover, gain);
                history.archive_point(replaced, population.len(), random)
            }
            _ => Some(replaced),
        }
    }
}

/// A random index in `0..count` that is not in `taken`. There must be one.
fn draw_other(count: usize, taken: &[usize], random: &mut Random) -> usize {
    loop {
        let index = random.index(count);
        if !taken.contains(&index) {
            return index;
        }
    }
}

impl Search for DeSearch {
    type Mark = TrialParameters;

    const KEEPS_BEST: bool = true;

    fn propose(
        &mut self,
        tools: &mut Tools<'_, TrialParameters>,
    ) -> Option<Proposal<TrialParameters>> {
        if self.designed >= self.run.population && self.population.is_round_over() {
            self.restart_if_over(tools);
        }
        if self.designed < self.run.population {
            return self.propose_designed(tools);
        }
        self.design = None;
        if self.population.is_ready() {
            let target = self.next_target(tools);
            return self.propose_trial(target, tools);
        }
        // All initial points are pending or lost, and too few outcomes are known: propose more points.
        let mut point = tools.buffer();
        let key = tools.draw(&mut point)?;
        Some(Proposal { point, key, mark: TrialParameters::UNTARGETED })
    }

    fn learn(
        &mut self,
        evaluated: Evaluated<TrialParameters>,
        tools: &mut Tools<'_, TrialParameters>,
    ) -> Result<Option<Box<[f64]>>> {
        let Evaluated { sample, asked, .. } = evaluated;
        // A candidate of an earlier run would draw this one back to where that run converged.
        if asked.as_ref().is_some_and(|asked| asked.id < self.run.first_id) {
            return Ok(self.run.keep(sample));
        }
        let trial = asked.map(|asked| asked.mark);
        let targeted = trial.and_then(|trial| Some((trial, trial.target? as usize)));
        Ok(match targeted {
            Some((trial, target)) => self.compete(sample, trial, target, tools.random),
            None => {
                let capacity = self.run.population_after(tools.ledger.told());
                self.population.join(sample, capacity).map(|sample| sample.point)
            }
        })
    }

    fn is_sound(&self, space: &Space, ledger: &Ledger<TrialParameters>) -> Result<bool> {
        let DeSearch { settings, population, history, weight, .. } = self;
        settings.check()?;
        for point in history.iter().flat_map(SuccessHistory::archive) {
            space.check(point)?;
        }
        let (low, high) = settings.weight;
        let is_trial_sound = |trial: &TrialParameters| {
            trial.target.is_none_or(|target| (target as usize) < population.len())
                && (0.0..=2.0).contains(&trial.weight)
                && (0.0..=1.0).contains(&trial.crossover)
        };
        Ok(self.run.is_sound(settings, space, ledger.next_id())
            && population.is_sound(self.run.population)
            && population.members().iter().all(|member| member.is_sound(space))
            && self.designed <= self.run.population
            && (low..=high).contains(weight)
            && history.is_some() == (settings.strategy == Strategy::LShade)
            && history.as_ref().is_none_or(|history| history.is_sound(self.run.population))
            && ledger.marks().all(is_trial_sound))
    }

    fn best(&self) -> Option<Best<'_>> {
        let found = self.population.best().into_iter().chain(&self.run.record);
        let best = found.min_by_key(|sample| sample.rank)?;
        Some(Best::single(&best.point, best.rank))
    }

    fn restarts(&self) -> u64 {
        self.run.restarts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::shell::Shell;
    use crate::optimizers::{Algorithm, Candidate, Optimizer, load};
    use crate::outcome::Outcome;

    fn strategies() -> [Algorithm; 3] {
        [Algorithm::de(), Algorithm::de_rand(), Algorithm::l_shade()]
    }

    fn sphere(point: &[f64]) -> Outcome {
        Outcome::from(point.iter().map(|x| (x - 1.0) * (x - 1.0)).sum::<f64>())
    }

    fn mixed() -> Space {
        Space::builder()
            .reals("x", 4, -5.0, 5.0)
            .integers("i", 3, 0, 9)
            .log_integer("l", 1, 1000)
            .categorical("c", ["a", "b", "c"])
            .build()
            .unwrap()
    }

    #[test]
    fn a_sphere_is_minimized() {
        let space = Space::cube(10, -10.0, 10.0).unwrap();
        for (algorithm, within) in strategies().iter().zip([1e-5, 2.0, 1e-9]) {
            let mut run = algorithm.optimizer(&space, Some(10_000), 1).unwrap();
            for _ in 0..10_000 {
                let candidate = run.ask().unwrap();
                let outcome = sphere(candidate.point());
                run.tell(candidate, outcome).unwrap();
            }
            let best = run.best().unwrap().rank.value().unwrap();
            assert!(best < within, "{}: {best}", run.name());
        }
    }

    #[test]
    fn categorical_and_numeric_coordinates_are_optimized_together() {
        let space = mixed();
        for algorithm in strategies() {
            let mut run = algorithm.optimizer(&space, Some(6000), 1).unwrap();
            for _ in 0..6000 {
                let candidate = run.ask().unwrap();
                space.check(candidate.point()).unwrap();
                let wrong = if candidate.point()[8] == 2.0 { 0.0 } else { 5.0 };
                let value = sphere(candidate.point()).value().unwrap() + wrong;
                run.tell(candidate, Outcome::from(value)).unwrap();
            }
            let found = &run.best().unwrap().point[4..];
            let is_found = found == [1.0, 1.0, 1.0, 1.0, 2.0];
            assert!(is_found, "{}: {found:?}", run.name());
        }
    }

    #[test]
    fn every_point_of_a_small_space_is_proposed_once() {
        let space = Space::builder().integers("i", 2, 0, 4).boolean("b").build().unwrap();
        for algorithm in strategies() {
            let mut run = algorithm.optimizer(&space, Some(1000), 1).unwrap();
            let mut keys = std::collections::BTreeSet::new();
            while let Some(candidate) = run.ask() {
                assert!(keys.insert(space.key(candidate.point())), "asked twice");
                let outcome = sphere(candidate.point());
                run.tell(candidate, outcome).unwrap();
            }
            assert_eq!(keys.len(), 50);
            assert_eq!(run.best().unwrap().rank.value(), Some(0.0));
        }
    }

    /// A run in which candidates are told in random order, some fail, and some are lost. `half_way` is
    /// called with the optimizer in the middle of the run.
    fn disorderly(run: &mut Box<dyn Optimizer>, half_way: impl Fn(&mut Box<dyn Optimizer>)) {
        let mut random = Random::new(7);
        let mut out = Vec::new();
        for step in 0..4000 {
            if step == 2000 {
                half_way(run);
            }
            if random.chance(0.5) || out.is_empty() {
                out.extend(run.ask());
                continue;
            }
            let candidate: Candidate = out.swap_remove(random.index(out.len()));
            let outcome = match random.index(10) {
                0 => Outcome::failed("late"),
                1 => Outcome::infeasible(1.0),
                2 => continue,
                _ => sphere(candidate.point()),
            };
            run.tell(candidate, outcome).unwrap();
        }
    }

    #[test]
    fn a_restored_run_continues_bit_for_bit() {
        for space in [mixed(), Space::builder().integers("i", 8, 0, 9).build().unwrap()] {
            for algorithm in strategies() {
                let run = || algorithm.optimizer(&space, Some(2000), 3).unwrap();
                let (mut straight, mut broken) = (run(), run());
                disorderly(&mut straight, |_| {});
                disorderly(&mut broken, |run| *run = load(&run.save()).unwrap());
                assert!(straight.save() == broken.save());
                assert_eq!(straight.ask(), broken.ask());
            }
        }
    }

    /// An optimizer with this strategy and population.
    fn shell(space: &Space, strategy: Strategy, population: usize, budget: u64) -> Shell<DeSearch> {
        let setup = Setup { space, budget: Some(budget), seed: 1 };
        let classic = DifferentialEvolution::default().population(population);
        let l_shade = LShade::default().population(population);
        let shell = Shell::new("de", setup, |random| match strategy {
            Strategy::LShade => DeSearch::l_shade(&l_shade, setup, random),
            _ => DeSearch::classic(strategy, &classic, setup, random),
        });
        shell.unwrap()
    }

    #[test]
    fn asking_alone_never_stalls() {
        let space = mixed();
        for strategy in [Strategy::Best, Strategy::Random, Strategy::LShade] {
            let mut run = shell(&space, strategy, 10, 100);
            let mut out: Vec<_> = (0..100).map(|_| run.ask().unwrap()).collect();
            // Four known members are enough for trials, though all initial points are pending.
            for _ in 0..4 {
                run.tell(Candidate::known(out[0].point()), Outcome::from(1.0)).unwrap();
            }
            assert_eq!(run.search().population.len(), 4);
            out.extend((0..100).map(|_| run.ask().unwrap()));
            assert!(run.search().population.turn > 0, "no trial was made");
            for candidate in out.into_iter().rev() {
                run.tell(candidate, Outcome::failed("late")).unwrap();
            }
            assert_eq!((run.told(), run.pending()), (204, 0));
            assert_eq!(run.best().unwrap().rank.value(), Some(1.0));
        }
    }

    #[test]
    fn known_points_become_members() {
        let space = Space::cube(5, -5.0, 5.0).unwrap();
        for algorithm in strategies() {
            let mut run = algorithm.optimizer(&space, Some(1000), 1).unwrap();
            for _ in 0..200 {
                let candidate = run.ask().unwrap();
                run.tell(candidate, Outcome::from(10.0)).unwrap();
            }
            run.tell(Candidate::known([1.0; 5]), Outcome::from(0.0)).unwrap();
            assert_eq!(run.best().unwrap().point, [1.0; 5]);
            assert!(run.tell(Candidate::known([9.0; 5]), Outcome::from(-1.0)).is_err());
            assert_eq!(run.told(), 201);
        }
    }

    #[test]
    fn an_l_shade_population_shrinks_while_trials_are_pending() {
        let space = Space::cube(5, -5.0, 5.0).unwrap();
        let mut run = shell(&space, Strategy::LShade, 50, 2000);
        let mut out = std::collections::VecDeque::new();
        for _ in 0..2000 {
            out.extend(run.ask());
            if out.len() > 30 {
                let candidate: Candidate = out.pop_front().unwrap();
                let outcome = sphere(candidate.point());
                run.tell(candidate, outcome).unwrap();
            }
        }
        let members = run.search().population.len();
        assert!(members <= 6, "{members}");
        assert!(run.best().unwrap().rank.value().unwrap() < 0.1);
    }

    #[test]
    fn l_shade_restarts_when_it_has_converged_and_keeps_the_best() {
        let space = Space::cube(2, -5.0, 5.0).unwrap();
        for budget in [Some(20_000), None] {
            let mut run = Algorithm::l_shade().optimizer(&space, budget, 1).unwrap();
            let mut late = Vec::new();
            for step in 0..20_000 {
                let candidate = run.ask().unwrap();
                if step % 50 == 0 {
                    late.push(candidate);
                    continue;
                }
                let value = 1.0 + sphere(candidate.point()).value().unwrap();
                run.tell(candidate, Outcome::from(value)).unwrap();
            }
            assert!(run.restarts() > 0, "{budget:?}");
            assert!(run.best().unwrap().rank.value().unwrap() < 1.0 + 1e-12);
            // Also candidates of earlier runs can be the best.
            run.tell(late.swap_remove(0), Outcome::from(0.5)).unwrap();
            assert_eq!(run.best().unwrap().rank.value(), Some(0.5));
            assert_eq!(load(&run.save()).unwrap().restarts(), run.restarts());
        }
    }

    #[test]
    fn a_state_with_a_trial_for_a_missing_member_is_invalid() {
        let space = Space::cube(5, -5.0, 5.0).unwrap();
        let setup = Setup { space: &space, budget: None, seed: 1 };
        let de = DifferentialEvolution::default();
        let search = DeSearch::classic(Strategy::Best, &de, setup, &mut Random::new(1)).unwrap();
        let mut ledger = Ledger::default();
        ledger.issue(&space, [0.0; 5].into(), 0, TrialParameters::UNTARGETED);
        assert_eq!(search.is_sound(&space, &ledger), Ok(true));
        ledger.issue(
            &space,
            [0.0; 5].into(),
            0,
            TrialParameters { target: Some(0), ..TrialParameters::UNTARGETED },
        );
        assert_eq!(search.is_sound(&space, &ledger), Ok(false));
    }
}
