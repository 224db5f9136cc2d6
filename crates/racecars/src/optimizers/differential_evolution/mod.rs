//! Differential evolution.
//!
//! One state machine carries three strategies, which differ in how a trial is mixed from members:
//!
//! - **best/1/bin** and **rand/1/bin** (R. Storn & K. Price, "Differential evolution", 1997), with
//!   the defaults of scipy's `differential_evolution`: a population of 15 n, which starts as a Latin
//!   hypercube, F drawn from 0.5 to 1 for each generation, CR = 0.7, and a trial that is no worse
//!   replaces its target at once.
//! - **L-SHADE** (R. Tanabe & A. Fukunaga, CEC 2014): current-to-pbest/1/bin with an archive, F and CR
//!   drawn around those that had success, and a population that shrinks over the budget.
//!
//! Departures, to fit ask and tell: a generation is one round of asking, not of telling, so that
//! lost candidates hold up nothing; L-SHADE too replaces at once, where the paper waits for the end
//! of the generation. And for small budgets the population is smaller: see
//! [`DifferentialEvolution::population`].
//!
//! A trial costs one pass over its coordinates: it is made in the candidate's buffer, which moves into
//! the population if it wins, and otherwise becomes the buffer of a trial to come.

mod design;
mod history;
mod population;
mod settings;
mod trial;

pub use settings::{DifferentialEvolution, Strategy};

use super::ledger::Ledger;
use super::{Best, Candidate, Optimizer, saved};
use crate::classify::Sample;
use crate::error::Result;
use crate::outcome::Outcome;
use crate::random::Random;
use crate::space::Space;
use history::History;
use population::Population;
use serde::{Deserialize, Serialize};
use settings::Resolved;
use trial::{Recipe, Repair};

/// p: L-SHADE's trials go towards one of this share of the members.
const GOOD_SHARE: f64 = 0.11;

/// An optimizer by differential evolution.
pub struct Evolution {
    space: Space,
    state: State,
    scratch: Scratch,
}

/// Everything that a resumed run needs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    settings: Resolved,
    random: Random,
    ledger: Ledger,
    /// The seed of the first points, and how many of them have been asked for.
    design_seed: u64,
    designed: usize,
    population: Population,
    /// F of the generation under way.
    weight: f64,
    /// L-SHADE's memory.
    history: Option<History>,
    /// What is to be remembered of the candidates out, by ascending id.
    trials: Vec<Trial>,
}

/// A candidate that is out.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Trial {
    id: u64,
    /// The member to be replaced; `None` for first points, and where the member is gone.
    target: Option<u32>,
    weight: f64,
    crossover: f64,
}

/// What is rebuilt at will.
#[derive(Default)]
struct Scratch {
    /// The first points that have not been asked for, in reverse, once they are needed.
    design: Option<Vec<Box<[f64]>>>,
    /// Buffers for points to come.
    spare: Vec<Box<[f64]>>,
}

impl Evolution {
    /// A run that is a function of its arguments.
    pub fn new(
        space: &Space,
        settings: &DifferentialEvolution,
        budget: Option<u64>,
        seed: u64,
    ) -> Result<Self> {
        let settings = settings.resolve(space, budget)?;
        let mut random = Random::new(seed);
        Ok(Evolution {
            space: space.clone(),
            state: State {
                design_seed: random.bits(),
                designed: 0,
                random,
                ledger: Ledger::default(),
                population: Population::default(),
                weight: settings.weight.0,
                history: (settings.strategy == Strategy::LShade).then(History::new),
                trials: Vec::new(),
                settings,
            },
            scratch: Scratch::default(),
        })
    }

    /// Takes a saved state back, if it is one that this code could have written.
    pub(super) fn restore(space: Space, state: State) -> Result<Self> {
        let State { settings, population, history, trials, weight, .. } = &state;
        settings.check()?;
        for point in history.iter().flat_map(History::archive) {
            space.check(point)?;
        }
        let (low, high) = settings.weight;
        let count = population.len();
        let is_sound = state.random.is_alive()
            && state.ledger.is_sound(&space)
            && population.is_sound(settings.population)
            && population.members().iter().all(|member| member.is_sound(&space))
            && state.designed <= settings.population
            && (low..=high).contains(weight)
            && history.is_some() == (settings.strategy == Strategy::LShade)
            && history.as_ref().is_none_or(|history| history.is_sound(settings.population))
            && trials.iter().map(|trial| &trial.id).eq(state.ledger.pending_ids())
            && trials.iter().all(|trial| {
                trial.target.is_none_or(|target| (target as usize) < count)
                    && (0.0..=2.0).contains(&trial.weight)
                    && (0.0..=1.0).contains(&trial.crossover)
            });
        if !is_sound {
            return Err(saved::unsound());
        }
        Ok(Evolution { space, state, scratch: Scratch::default() })
    }

    /// The next of the first points. In a discrete space one that was seen is drawn anew.
    fn next_designed(&mut self) -> Option<(Box<[f64]>, u64)> {
        let State { settings, design_seed, designed, ledger, random, .. } = &mut self.state;
        let space = &self.space;
        let design = self.scratch.design.get_or_insert_with(|| {
            let mut points = design::latin_hypercube(space, settings.population, *design_seed);
            points.truncate(settings.population - *designed);
            points
        });
        *designed += 1;
        let mut point = design.pop()?;
        let mut key = space.key(&point);
        if ledger.has_seen(key) {
            key = ledger.draw(space, random, &mut point)?;
        }
        Some((point, key))
    }

    /// Whose turn it is. When all have had theirs, a generation begins.
    fn next_target(&mut self) -> usize {
        let State { settings, random, ledger, population, weight, history, trials, .. } =
            &mut self.state;
        if let Some(target) = population.next_target() {
            return target;
        }
        if let Some(history) = history {
            history.learn();
            population.shrink(settings.population_after(ledger.told()), |places| {
                for trial in trials.iter_mut() {
                    trial.target = trial.target.and_then(|target| places[target as usize]);
                }
            });
            history.shrink_archive(population.len(), random);
        } else {
            *weight = random.between(settings.weight.0, settings.weight.1);
        }
        population.begin_round(history.is_some())
    }

    /// Makes a trial against `target` in `point`; returns its F and CR, and its key.
    fn make_trial(&mut self, target: usize, point: &mut [f64]) -> Option<(f64, f64, u64)> {
        /// In a discrete space: trials before giving up on one that was not seen before.
        const TRIES: usize = 8;
        let (mut weight, mut crossover) = (0.0, 0.0);
        let tries = if self.space.can_repeat() { TRIES } else { 1 };
        for attempt in 0..tries {
            (weight, crossover) = self.mix(target, point);
            // Members that have gathered make few new points: help them by some coordinates more
            // with each attempt.
            let State { random, ledger, .. } = &mut self.state;
            for _ in 0..attempt {
                let i = random.index(point.len());
                point[i] = self.space.axis(i).draw(random);
            }
            let key = self.space.key(point);
            if !ledger.has_seen(key) {
                return Some((weight, crossover, key));
            }
        }
        let State { random, ledger, .. } = &mut self.state;
        let key = ledger.draw(&self.space, random, point)?;
        Some((weight, crossover, key))
    }

    /// Mixes a trial against `target` from members, by the strategy; returns its F and CR.
    fn mix(&mut self, target: usize, point: &mut [f64]) -> (f64, f64) {
        let State { settings, random, population, weight, history, .. } = &mut self.state;
        let members = population.members();
        let at = |index: usize| -> &[f64] { &members[index].point };
        let count = members.len();
        let recipe = if let Some(history) = history {
            let (weight, crossover) = history.draw(random);
            let good = at(population.draw_good(GOOD_SHARE, random));
            let plus = draw_other(count, &[target], random);
            // The subtrahend may also be one that made way.
            let minus = draw_other(count + history.archive().len(), &[target, plus], random);
            Recipe {
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
            // rand/1 wants three different members; for best/1, scipy lets the best take part in the
            // difference.
            let taken = if settings.strategy == Strategy::Random { base } else { target };
            let plus = draw_other(count, &[target, taken], random);
            let minus = draw_other(count, &[target, taken, plus], random);
            Recipe {
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
        recipe.make(&self.space, random, point);
        (recipe.weight, recipe.crossover)
    }

    /// Enters a candidate, with what is to be remembered of it.
    fn issue(
        &mut self,
        point: Box<[f64]>,
        key: u64,
        target: Option<usize>,
        (weight, crossover): (f64, f64),
    ) -> Candidate {
        let candidate = self.state.ledger.issue(&self.space, point, key);
        let target = target.map(|target| target as u32);
        self.state.trials.push(Trial { id: candidate.id, target, weight, crossover });
        candidate
    }

    fn buffer(&mut self) -> Box<[f64]> {
        (self.scratch.spare.pop())
            .unwrap_or_else(|| vec![0.0; self.space.dimension()].into_boxed_slice())
    }

    /// Keeps a buffer for a point to come; points told from elsewhere could otherwise pile up.
    fn keep_buffer(&mut self, buffer: Option<Box<[f64]>>) {
        if self.scratch.spare.len() <= self.state.ledger.pending() {
            self.scratch.spare.extend(buffer);
        }
    }

    /// Lets a trial compete with its target; returns the loser's point, if it is of no more use.
    fn compete(&mut self, sample: Sample, trial: Trial, target: usize) -> Option<Box<[f64]>> {
        let State { population, history, random, .. } = &mut self.state;
        let (old, new) = (population.rank(target), sample.rank);
        if old.beats(new) {
            return Some(sample.point);
        }
        let left = population.replace(target, sample).point;
        match history {
            Some(history) if new.beats(old) => {
                let gain = old.value().zip(new.value()).map(|(old, new)| old - new);
                history.succeed(trial.weight, trial.crossover, gain);
                history.keep(left, population.len(), random)
            }
            _ => Some(left),
        }
    }
}

/// A random index in `0..count` that is none of those taken; there must be one.
fn draw_other(count: usize, taken: &[usize], random: &mut Random) -> usize {
    loop {
        let index = random.index(count);
        if !taken.contains(&index) {
            return index;
        }
    }
}

impl Optimizer for Evolution {
    fn space(&self) -> &Space {
        &self.space
    }

    fn name(&self) -> &'static str {
        self.state.settings.strategy.name()
    }

    fn ask(&mut self) -> Option<Candidate> {
        if self.state.ledger.is_exhausted(&self.space) {
            return None;
        }
        if self.state.designed < self.state.settings.population {
            let (point, key) = self.next_designed()?;
            return Some(self.issue(point, key, None, (0.0, 0.0)));
        }
        self.scratch.design = None;
        let mut point = self.buffer();
        if !self.state.population.is_ready() {
            // All first points are out or lost, and hardly any is known: have more of them.
            let State { ledger, random, .. } = &mut self.state;
            let key = ledger.draw(&self.space, random, &mut point)?;
            return Some(self.issue(point, key, None, (0.0, 0.0)));
        }
        let target = self.next_target();
        let (weight, crossover, key) = self.make_trial(target, &mut point)?;
        Some(self.issue(point, key, Some(target), (weight, crossover)))
    }

    fn tell(&mut self, candidate: Candidate, outcome: Outcome) -> Result<()> {
        let id = candidate.id;
        let (point, key) = self.state.ledger.settle(&self.space, candidate)?;
        let sample = Sample { point, rank: outcome.rank(), key };
        let trials = &mut self.state.trials;
        // The common case, and any other; a known point is not among them.
        let place = match trials.last() {
            Some(last) if last.id == id => Some(trials.len() - 1),
            _ => trials.binary_search_by_key(&id, |trial| trial.id).ok(),
        };
        let trial = place.map(|place| trials.remove(place));
        let target = trial.and_then(|trial| Some((trial, trial.target? as usize)));
        let left = match target {
            Some((trial, target)) => self.compete(sample, trial, target),
            None => {
                let capacity = self.state.settings.population_after(self.state.ledger.told());
                self.state.population.join(sample, capacity).map(|sample| sample.point)
            }
        };
        self.keep_buffer(left);
        Ok(())
    }

    fn told(&self) -> u64 {
        self.state.ledger.told()
    }

    fn pending(&self) -> usize {
        self.state.ledger.pending()
    }

    fn best(&self) -> Option<Best<'_>> {
        let Sample { point, rank, .. } = self.state.population.best()?;
        Some(Best { point, rank: *rank, evaluations: 1 })
    }

    fn save(&self) -> Vec<u8> {
        saved::save(self.name(), &self.space, &self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizers::load;

    const STRATEGIES: [DifferentialEvolution; 3] = [
        DifferentialEvolution {
            strategy: Strategy::Best,
            population: None,
            weight: None,
            crossover: None,
        },
        DifferentialEvolution {
            strategy: Strategy::Random,
            population: None,
            weight: None,
            crossover: None,
        },
        DifferentialEvolution {
            strategy: Strategy::LShade,
            population: None,
            weight: None,
            crossover: None,
        },
    ];

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
    fn the_sphere_is_solved() {
        let space = Space::cube(10, -10.0, 10.0).unwrap();
        for (settings, within) in STRATEGIES.iter().zip([1e-5, 2.0, 1e-9]) {
            let mut run = Evolution::new(&space, settings, Some(10_000), 1).unwrap();
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
    fn categories_are_found_with_numbers() {
        let space = mixed();
        for settings in STRATEGIES {
            let mut run = Evolution::new(&space, &settings, Some(6000), 1).unwrap();
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
    fn a_small_space_is_seen_once_and_to_the_end() {
        let space = Space::builder().integers("i", 2, 0, 4).boolean("b").build().unwrap();
        for settings in STRATEGIES {
            let mut run = Evolution::new(&space, &settings, Some(1000), 1).unwrap();
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

    /// A run in which candidates come back in any order, some failed or never: `half_way` sees the
    /// optimizer in the middle.
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
    fn a_restored_run_goes_on_to_the_bit() {
        for space in [mixed(), Space::builder().integers("i", 8, 0, 9).build().unwrap()] {
            for settings in STRATEGIES {
                let run = || -> Box<dyn Optimizer> {
                    Box::new(Evolution::new(&space, &settings, Some(2000), 3).unwrap())
                };
                let (mut straight, mut broken) = (run(), run());
                disorderly(&mut straight, |_| {});
                disorderly(&mut broken, |run| *run = load(&run.save()).unwrap());
                assert!(straight.save() == broken.save());
                assert_eq!(straight.ask(), broken.ask());
            }
        }
    }

    #[test]
    fn asking_alone_never_stalls() {
        let space = mixed();
        for settings in STRATEGIES {
            let settings = DifferentialEvolution { population: Some(10), ..settings };
            let mut run = Evolution::new(&space, &settings, Some(100), 1).unwrap();
            let mut out: Vec<_> = (0..100).map(|_| run.ask().unwrap()).collect();
            // Four known members are enough for trials, though all first points are out.
            for _ in 0..4 {
                run.tell(Candidate::known(out[0].point()), Outcome::from(1.0)).unwrap();
            }
            out.extend((0..100).map(|_| run.ask().unwrap()));
            assert!(run.state.trials.iter().any(|trial| trial.target.is_some()));
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
        for settings in STRATEGIES {
            let mut run = Evolution::new(&space, &settings, Some(1000), 1).unwrap();
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
    fn an_l_shade_population_shrinks_while_trials_are_out() {
        let space = Space::cube(5, -5.0, 5.0).unwrap();
        let settings = DifferentialEvolution { population: Some(50), ..STRATEGIES[2] };
        let mut run = Evolution::new(&space, &settings, Some(2000), 1).unwrap();
        let mut out = std::collections::VecDeque::new();
        for _ in 0..2000 {
            out.extend(run.ask());
            if out.len() > 30 {
                let candidate: Candidate = out.pop_front().unwrap();
                let outcome = sphere(candidate.point());
                run.tell(candidate, outcome).unwrap();
            }
        }
        assert!(run.state.population.len() <= 6, "{}", run.state.population.len());
        assert!(run.best().unwrap().rank.value().unwrap() < 0.1);
    }
}
