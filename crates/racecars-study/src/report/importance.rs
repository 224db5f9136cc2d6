//! How much each parameter matters: the share of the variation of the outcomes that comes from it, alone or
//! together with others.
//!
//! A forest of small trees is boosted on the trials, and each parameter is credited with its total effect
//! (the total index of Sobol', by the estimator of Jansen): by how much the forest's prediction changes when
//! only that parameter is drawn anew. Unlike marginal effects, this also sees what parameters do only
//! together. The shares add up to the part of the variation that the forest predicts in trials that
//! it was not grown on, so noise explains nothing.
//!
//! What is special about the trials of a search:
//! - Outcomes are replaced by their ranks, so that a few huge values do not decide.
//! - All parameters move together towards the optimum, so that over time each seems to explain the
//!   progress. Only differences between trials of about the same time are fitted: from outcomes and
//!   predictions, the mean of each block of consecutive trials is taken off.
//! - A search that has converged goes on among points that hardly differ. Outcomes that are as good as the
//!   best but for a small part of what was gained count as equal, and blocks of such outcomes are left out.
//! - Most trials are near the optimum, where the forest is exact; elsewhere it is rough. Half of the draws
//!   are therefore from the trials' own values, half from the whole range.

use racecars::random::Random;
use racecars::{Axis, Rank};

/// With fewer outcomes nothing is said.
const LEAST: usize = 40;
/// The number of consecutive trials that are compared with each other.
const BLOCK: usize = 16;
/// At most this many outcomes are used, whole blocks evenly over time.
const ROWS: usize = 8192;
/// Each tree looks at no more parameters than this.
const COLUMNS: usize = 64;
/// The most bins of a parameter, and how many of its values each is to have.
const BINS: usize = 32;
const BIN_VALUES: usize = 5;
/// Outcomes are as good as the best if they differ from it by less than this part of what was gained since
/// the first block.
const CONVERGED: f64 = 0.01;
/// The forest is grown this many times, each time without another part of the outcomes.
const FOLDS: usize = 4;
/// The depth of a tree, and the share of a fit that each takes.
const DEPTH: usize = 3;
const RATE: f64 = 0.2;
/// A forest grows until this many trees in a row have not improved it, or to the limits of trees and work.
const PATIENCE: usize = 30;
const TREES: usize = 200;
const WORK: usize = 1 << 29;
/// The number of draws for each of the forests.
const DRAWS: usize = 200;
/// What is explained by less than this, or by what a few outcomes could explain, is chance.
const CHANCE: f64 = 0.005;
const CHANCE_ROWS: f64 = 12.0;
/// What a parameter explains is measured by what each would explain if all mattered the same. From this part
/// of it on, a parameter has weight.
const WEIGHTY: f64 = 0.25;
/// Below this part of it a parameter has little effect or none, if such an effect would have explained this
/// many times the noise of an outcome.
const IDLE: f64 = 0.1;
const VISIBLE: f64 = 20.0;

/// What the parameters explain.
#[derive(Debug, Clone, Default)]
pub(super) struct Importance {
    /// For each parameter, the share of the variation that it explains. Empty if there were too few
    /// outcomes.
    pub(super) shares: Vec<f64>,
    /// For each parameter, whether it can be said to have little effect or none.
    pub(super) is_idle: Vec<bool>,
    /// How many outcomes were used.
    pub(super) used: usize,
}

impl Importance {
    /// Whether a parameter is known to matter.
    pub(super) fn has_weight(&self, parameter: usize) -> bool {
        let bar = WEIGHTY * self.explained() / self.shares.len() as f64;
        self.shares.get(parameter).is_some_and(|share| *share > 0.0 && *share >= bar)
    }

    /// The share that all explain together.
    pub(super) fn explained(&self) -> f64 {
        self.shares.iter().sum()
    }
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// A range.
    Range,
    /// This many, in order.
    Ordered(usize),
    /// This many, without an order.
    Unordered(usize),
}

impl Values {
    pub(super) fn of(axis: Axis) -> Values {
        match (axis, axis.count().and_then(|count| usize::try_from(count).ok())) {
            (Axis::Unordered { .. }, Some(count)) => Values::Unordered(count),
            // On a log scale their cells are not of one width.
            (Axis::Ordered { log_from: Some(_), .. }, _) | (_, None) => Values::Range,
            (_, Some(count)) => Values::Ordered(count),
        }
    }
}

/// Measures the importance of `parameters`, from outcomes in the order they came: `cost` says how good
/// each is (less is better), `place(i, j)` where parameter `j` stood at outcome `i`, from 0 to 1.
pub(super) fn importance(
    cost: &[Rank],
    parameters: usize,
    place: impl Fn(usize, usize) -> f32,
    values: impl Fn(usize) -> Values,
) -> Importance {
    let cost = level_converged(cost);
    let rows = sample(&cost);
    let used = rows.len();
    if used < LEAST {
        return Importance { used, ..Importance::default() };
    }
    let columns: Vec<Column> = (0..parameters)
        .map(|j| Column::new(&rows.iter().map(|&i| place(i, j)).collect::<Vec<_>>(), values(j)))
        .collect();
    let mut random = Random::stream(0, used as u64);
    let target = differences(&ranks(&rows.iter().map(|&i| cost[i]).collect::<Vec<_>>()));
    let mut folds: Vec<usize> = (0..used).map(|i| i % FOLDS).collect();
    random.shuffle(&mut folds);
    let mut forests: Vec<Forest> =
        (0..FOLDS).map(|fold| Forest::new(&folds, fold, &target)).collect();
    let error = |forests: &[Forest]| forests.iter().map(Forest::error).sum::<f64>();
    let total = error(&forests);
    let (mut least, mut trees) = (total, 0);
    let work = FOLDS * DEPTH * used * parameters.min(COLUMNS);
    for grown in 1..=TREES.min(WORK / work.max(1)) {
        let mut choice: Vec<usize> = (0..parameters).collect();
        if parameters > COLUMNS {
            random.shuffle(&mut choice);
            choice.truncate(COLUMNS);
        }
        forests.iter_mut().for_each(|forest| forest.grow(&columns, &choice, &target));
        let error = error(&forests);
        if error < least {
            (least, trees) = (error, grown);
        } else if grown - trees >= PATIENCE {
            break;
        }
    }
    let explained = if total > 0.0 { 1.0 - least / total } else { 0.0 };
    let mut effects = vec![0.0; parameters];
    if explained > CHANCE.max(CHANCE_ROWS / used as f64) {
        for forest in &forests {
            forest.add_effects(trees, &columns, &mut random, &mut effects);
        }
    }
    let sum: f64 = effects.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let faint = IDLE / parameters as f64;
    let is_visible = used as f64 * faint * explained > VISIBLE * (1.0 - explained);
    let is_idle: Vec<bool> = effects.iter().map(|e| is_visible && *e < faint * sum).collect();
    let shares = effects.iter().map(|effect| explained * effect / sum).collect();
    Importance { shares, is_idle, used }
}

/// The outcomes, where those that are as good as the best are equal to it.
fn level_converged(cost: &[Rank]) -> Vec<Rank> {
    let Some(&best) = cost.iter().min() else { return Vec::new() };
    let mut first: Vec<f64> = cost.iter().take(BLOCK).filter_map(|rank| rank.value()).collect();
    first.sort_by(f64::total_cmp);
    let (Some(least), Some(&start)) = (best.value(), first.get(first.len() / 2)) else {
        return cost.to_vec();
    };
    let limit = least + CONVERGED * (start - least);
    let is_level = |rank: &Rank| rank.value().is_some_and(|value| value <= limit);
    cost.iter().map(|rank| if is_level(rank) { best } else { *rank }).collect()
}

/// The outcomes to use: blocks in which they differ, if there are enough.
fn sample(cost: &[Rank]) -> Vec<usize> {
    let differs = |block: &&[Rank]| block.iter().any(|rank| *rank != block[0]);
    let differing: usize = cost.chunks(BLOCK).filter(differs).map(<[_]>::len).sum();
    let is_enough = differing >= LEAST;
    let stride = if is_enough { differing } else { cost.len() }.div_ceil(ROWS).max(1);
    let blocks = cost.chunks(BLOCK).enumerate();
    (blocks.filter(|(_, block)| !is_enough || differs(block)).step_by(stride))
        .flat_map(|(b, block)| b * BLOCK..b * BLOCK + block.len())
        .collect()
}

/// Takes off the mean of each block.
fn differences(numbers: &[f64]) -> Vec<f64> {
    let mut differences = numbers.to_vec();
    for block in differences.chunks_mut(BLOCK) {
        let mean = block.iter().sum::<f64>() / block.len() as f64;
        block.iter_mut().for_each(|number| *number -= mean);
    }
    differences
}

/// Ranks from -1 to 1; those of equal outcomes are the same.
fn ranks(cost: &[Rank]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..cost.len()).collect();
    order.sort_by_key(|&i| cost[i]);
    let mut ranks = vec![0.0; cost.len()];
    let mut start = 0;
    for group in order.chunk_by(|&a, &b| cost[a] == cost[b]) {
        let middle = start as f64 + (group.len() as f64 - 1.0) / 2.0;
        let rank = 2.0 * (middle + 0.5) / cost.len() as f64 - 1.0;
        group.iter().for_each(|&i| ranks[i] = rank);
        start += group.len();
    }
    ranks
}

/// A parameter cut into bins.
struct Column {
    /// The bin of each outcome.
    bins: Vec<u8>,
    /// How much of the range is up to the end of each bin.
    ends: Vec<f64>,
    is_ordered: bool,
}

impl Column {
    /// One bin per value where there are few, or about as many distinct values in each.
    fn new(places: &[f32], values: Values) -> Self {
        let mut cuts: Vec<f32> = match values {
            Values::Ordered(count) | Values::Unordered(count) if count <= BINS => {
                (1..count).map(|i| i as f32 / count as f32).collect()
            }
            _ => {
                let mut sorted = places.to_vec();
                sorted.sort_by(f32::total_cmp);
                sorted.dedup();
                let wanted = (sorted.len() / BIN_VALUES).clamp(2, BINS);
                (1..wanted).map(|i| sorted[i * sorted.len() / wanted]).collect()
            }
        };
        cuts.dedup();
        let bins = places.iter().map(|place| cuts.partition_point(|cut| cut <= place) as u8);
        let is_ordered = !matches!(values, Values::Unordered(_));
        let ends = cuts.iter().map(|&cut| f64::from(cut)).chain([1.0]).collect();
        Column { bins: bins.collect(), ends, is_ordered }
    }

    /// The bin of an outcome, or of a place in the range.
    fn draw(&self, random: &mut Random) -> u8 {
        match random.unit() {
            u if u < 0.5 => self.bins[random.index(self.bins.len())],
            u => {
                let place = 2.0 * u - 1.0;
                self.ends.partition_point(|end| *end <= place).min(self.ends.len() - 1) as u8
            }
        }
    }
}

/// A question about a parameter.
#[derive(Clone, Copy)]
struct Split {
    column: usize,
    bin: u8,
    /// Whether it is about this bin and all before it, or about this one alone.
    is_ordered: bool,
}

impl Split {
    fn is_left(&self, bin: u8) -> bool {
        if self.is_ordered { bin <= self.bin } else { bin == self.bin }
    }
}

const NODES: usize = (2 << DEPTH) - 1;

/// A tree. The children of node `i` are `2 i + 1` and `2 i + 2`; `None` is a leaf.
struct Tree {
    splits: [Option<Split>; NODES],
    values: [f64; NODES],
}

impl Tree {
    fn predict(&self, bin: impl Fn(usize) -> u8) -> f64 {
        let mut node = 0;
        while let Some(split) = &self.splits[node] {
            node = 2 * node + if split.is_left(bin(split.column)) { 1 } else { 2 };
        }
        self.values[node]
    }

    /// Grows a node and what is below it on these outcomes.
    fn grow(&mut self, node: usize, rows: &mut [u32], soil: &Soil<'_>) {
        let whole = Part {
            sum: rows.iter().map(|&row| soil.residual[row as usize]).sum(),
            count: rows.len() as f64,
        };
        self.values[node] = RATE * whole.sum / (whole.count + soil.support);
        if 2 * node + 2 >= NODES {
            return;
        }
        let Some(split) = soil.best_split(rows, whole) else { return };
        self.splits[node] = Some(split);
        let bins = &soil.columns[split.column].bins;
        rows.sort_by_key(|&row| !split.is_left(bins[row as usize]));
        let left = rows.partition_point(|&row| split.is_left(bins[row as usize]));
        let (left, right) = rows.split_at_mut(left);
        self.grow(2 * node + 1, left, soil);
        self.grow(2 * node + 2, right, soil);
    }
}

/// Some outcomes.
#[derive(Clone, Copy, Default)]
struct Part {
    sum: f64,
    count: f64,
}

/// What a tree grows on.
struct Soil<'a> {
    columns: &'a [Column],
    /// The parameters that it looks at.
    choice: &'a [usize],
    /// What is left to explain.
    residual: &'a [f64],
    /// The fewest outcomes in a leaf; as many more are thought to be there that say 0.
    support: f64,
}

impl Soil<'_> {
    /// The split that lowers the sum of squares most, if one does.
    fn best_split(&self, rows: &[u32], whole: Part) -> Option<Split> {
        let lowered = |part: Part| part.sum * part.sum / (part.count + self.support);
        let (mut most, mut best) = (lowered(whole) + 1e-12, None);
        for &column in self.choice {
            let Column { bins, ends, is_ordered } = &self.columns[column];
            let mut parts = [Part::default(); BINS];
            for &row in rows {
                let part = &mut parts[usize::from(bins[row as usize])];
                part.sum += self.residual[row as usize];
                part.count += 1.0;
            }
            let mut left = Part::default();
            for (bin, part) in parts[..ends.len()].iter().enumerate() {
                left = match is_ordered {
                    true => Part { sum: left.sum + part.sum, count: left.count + part.count },
                    false => *part,
                };
                let right = Part { sum: whole.sum - left.sum, count: whole.count - left.count };
                let gain = lowered(left) + lowered(right);
                if left.count.min(right.count) >= self.support && gain > most {
                    let is_ordered = *is_ordered;
                    (most, best) = (gain, Some(Split { column, bin: bin as u8, is_ordered }));
                }
            }
        }
        best
    }
}

/// Trees that were grown without some of the outcomes.
struct Forest {
    trees: Vec<Tree>,
    /// The outcomes that it was grown on, and the others.
    rows: Vec<u32>,
    others: Vec<u32>,
    predictions: Vec<f64>,
    /// What is left to explain of each outcome.
    residual: Vec<f64>,
}

impl Forest {
    fn new(folds: &[usize], fold: usize, target: &[f64]) -> Forest {
        let (others, rows) = (0..folds.len() as u32).partition(|&row| folds[row as usize] == fold);
        let (predictions, residual) = (vec![0.0; target.len()], target.to_vec());
        Forest { trees: Vec::new(), rows, others, predictions, residual }
    }

    /// Grows one more tree.
    fn grow(&mut self, columns: &[Column], choice: &[usize], target: &[f64]) {
        // Of many parameters some fit a few outcomes by chance.
        let support = (columns.len() / 4).clamp(3, 20) as f64;
        let mut tree = Tree { splits: [None; NODES], values: [0.0; NODES] };
        let soil = Soil { columns, choice, residual: &self.residual, support };
        tree.grow(0, &mut self.rows, &soil);
        for (row, prediction) in self.predictions.iter_mut().enumerate() {
            *prediction += tree.predict(|column| columns[column].bins[row]);
        }
        self.trees.push(tree);
        let predicted = differences(&self.predictions);
        self.residual = target.iter().zip(predicted).map(|(t, p)| t - p).collect();
    }

    /// The sum of squares that is left in the outcomes it was not grown on.
    fn error(&self) -> f64 {
        self.others.iter().map(|&row| self.residual[row as usize].powi(2)).sum()
    }

    /// Adds the total effect of each parameter on the first of the trees.
    fn add_effects(
        &self,
        trees: usize,
        columns: &[Column],
        random: &mut Random,
        effects: &mut [f64],
    ) {
        let used: Vec<Vec<usize>> = (self.trees[..trees].iter())
            .map(|tree| {
                let mut used: Vec<usize> = tree.splits.iter().flatten().map(|s| s.column).collect();
                used.sort_unstable();
                used.dedup();
                used
            })
            .collect();
        for _ in 0..DRAWS {
            let mut draw = || columns.iter().map(|column| column.draw(random)).collect::<Vec<u8>>();
            let (here, there) = (draw(), draw());
            let mut changes = vec![0.0; columns.len()];
            for (tree, used) in self.trees.iter().zip(&used) {
                let before = tree.predict(|column| here[column]);
                for &moved in used {
                    let bin = |column| if column == moved { there[column] } else { here[column] };
                    changes[moved] += tree.predict(bin) - before;
                }
            }
            effects
                .iter_mut()
                .zip(&changes)
                .for_each(|(effect, change)| *effect += change * change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::places;
    use racecars::{Outcome, Space};

    /// The importance of the coordinates of a space, from a run of an algorithm in it.
    fn measured(
        space: &Space,
        algorithm: &str,
        evaluations: usize,
        seed: u64,
        objective: &dyn Fn(&[f64]) -> f64,
    ) -> Importance {
        let algorithm: racecars::Algorithm = algorithm.parse().unwrap();
        let mut optimizer = algorithm.optimizer(space, Some(evaluations as u64), seed).unwrap();
        let (mut cost, mut points) = (Vec::new(), Vec::new());
        for _ in 0..evaluations {
            let candidate = optimizer.ask().unwrap();
            let outcome = Outcome::from(objective(candidate.point()));
            cost.push(outcome.rank());
            points.push(candidate.point().to_vec());
            optimizer.tell(candidate, outcome).unwrap();
        }
        let place = |i: usize, j: usize| places::place(space.axis(j), points[i][j]) as f32;
        importance(&cost, space.dimension(), place, |j| Values::of(space.axis(j)))
    }

    fn cube(dimension: usize) -> Space {
        Space::cube(dimension, 0.0, 1.0).unwrap()
    }

    /// Checks the shares found from runs of several algorithms and lengths: searches that move all at once,
    /// some at a time, and not at all. In 200 evaluations `auto` converges along lines on which all
    /// parameters move together, which do not tell them apart.
    fn check(space: &Space, objective: &dyn Fn(&[f64]) -> f64, is_right: &dyn Fn(&[f64]) -> bool) {
        for algorithm in ["auto", "race-cars", "random"] {
            let cases = [(1000, 1), (1000, 2), (200, 1), (200, 2)];
            for (evaluations, seed) in
                cases.into_iter().take(if algorithm == "auto" { 2 } else { 4 })
            {
                let Importance { shares, .. } =
                    measured(space, algorithm, evaluations, seed, objective);
                let what = format!("{algorithm}, {evaluations} evaluations, seed {seed}");
                assert!(is_right(&shares), "{what}: {shares:.3?}");
            }
        }
    }

    #[test]
    fn weights_are_ranked_whatever_the_search() {
        let weights = [4.0, 2.0, 0.0, 0.5, 0.0];
        let objective = |x: &[f64]| x.iter().zip(weights).map(|(x, w)| w * (x - 0.3).abs()).sum();
        check(&cube(5), &objective, &|s| {
            let idle = s[2].max(s[4]);
            s[0] > 0.15 && s[1] > 0.1 && s[0] > 0.8 * s[1] && s[3] > 0.003 && idle < 0.4 * s[1]
        });
    }

    #[test]
    fn what_only_matters_together_is_seen() {
        let objective = |x: &[f64]| (x[0] - 0.5) * (x[1] - 0.5);
        check(&cube(4), &objective, &|s| s[0].min(s[1]) > 0.2 && s[2].max(s[3]) < 0.1 * s[0]);
    }

    #[test]
    fn parameters_of_all_kinds_are_seen() {
        let space = Space::builder()
            .real("x", 0.0, 10.0)
            .integer("n", 1, 64)
            .log_real("lr", 1e-5, 1e-1)
            .categorical("mode", ["a", "b", "c"])
            .build();
        let objective = |p: &[f64]| {
            let mode = [0.5, 0.0, 1.0][p[3] as usize];
            let decades = p[2] / std::f64::consts::LN_10;
            (p[0] - 3.0).powi(2) / 10.0
                + (p[1] - 20.0).abs() / 20.0
                + (decades + 3.0).powi(2)
                + mode
        };
        check(&space.unwrap(), &objective, &|s| s.iter().all(|share| *share > 0.03));
    }

    #[test]
    fn a_choice_is_told_from_one_without_effect() {
        let space = Space::builder()
            .categorical("mode", ["a", "b", "c", "d", "e"])
            .categorical("idle", ["a", "b", "c"])
            .real("x", 0.0, 1.0)
            .build();
        let mode = |p: &[f64]| [3.0, 1.0, 2.0, 0.0, 1.5][p[0] as usize];
        let objective = |p: &[f64]| mode(p) + (p[2] - 0.4).abs();
        check(&space.unwrap(), &objective, &|s| s[0] > 0.5 && s[1] < 0.02 && s[2] > 0.02);
    }

    #[test]
    fn a_log_scale_is_that_of_the_search() {
        let space = Space::builder()
            .log_real("rate", 1e-5, 1e-1)
            .real("x", 0.0, 1.0)
            .real("idle", 0.0, 1.0)
            .build();
        let objective = |p: &[f64]| (p[0] + 7.0).abs() + 1.4 * (p[1] - 0.5).abs();
        check(&space.unwrap(), &objective, &|s| {
            s[0] > 0.1 && s[0] > s[1] && s[1] > 0.01 && s[2] < 0.6 * s[1]
        });
    }

    #[test]
    fn noise_alone_explains_nothing() {
        // Also of points as close together as a search with differences has them.
        let noise = |x: &[f64]| {
            let bits = x.iter().fold(0, |bits: u64, x| bits.rotate_left(7) ^ x.to_bits());
            Random::new(bits).unit()
        };
        let (mut searches, mut by_chance) = (0, 0);
        for algorithm in ["auto", "race-cars", "cma-es", "random"] {
            for (evaluations, seed) in [40, 60, 200, 1000]
                .into_iter()
                .flat_map(|evaluations| (1..=8).map(move |seed| (evaluations, seed)))
            {
                let found = measured(&cube(4), algorithm, evaluations, seed, &noise);
                let explained: f64 = found.shares.iter().sum();
                let what = format!("{algorithm}, {evaluations} evaluations, seed {seed}");
                searches += 1;
                if explained == 0.0 {
                    let is_said = |j: usize| found.is_idle[j] || found.has_weight(j);
                    assert!(!(0..4).any(is_said), "{what}");
                } else {
                    by_chance += 1;
                }
            }
        }
        // In 640 searches with 60 to 1000 evaluations, 8 explained a part.
        assert!(40 * by_chance <= searches, "{by_chance} of {searches}");
    }

    #[test]
    fn what_has_weight_is_named_and_what_has_none_is_not() {
        let objective = |x: &[f64]| 3.0 * (x[0] - 0.7).abs() + x[2];
        let found = measured(&cube(4), "race-cars", 1000, 1, &objective);
        let of = |is: &dyn Fn(usize) -> bool| (0..4).filter(|&j| is(j)).collect::<Vec<_>>();
        assert_eq!(of(&|j| found.has_weight(j)), [0, 2], "{:?}", found.shares);
        assert_eq!(of(&|j| found.is_idle[j]), [1, 3], "{:?}", found.shares);
    }

    #[test]
    fn few_that_matter_are_found_among_many() {
        let objective = |x: &[f64]| 3.0 * (x[7] - 0.5).abs() + (x[123] - 0.2).powi(2);
        let found = measured(&cube(300), "race-cars", 12_000, 1, &objective);
        let shares = &found.shares;
        let mut order: Vec<usize> = (0..300).collect();
        order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
        let first: Vec<_> = order[..8].iter().map(|&j| (j, shares[j])).collect();
        assert_eq!(order[..2], [7, 123], "{first:?}");
        let others: f64 = order[2..].iter().map(|&j| shares[j]).sum();
        assert!(others < 0.2 * found.explained(), "{others} of {}", found.explained());
    }

    #[test]
    fn many_that_matter_are_ranked_about_right() {
        let objective = |x: &[f64]| {
            x.iter().enumerate().map(|(i, x)| (x - 0.4).powi(2) / (1.0 + i as f64 / 5.0)).sum()
        };
        let found = measured(&cube(100), "race-cars", 8000, 1, &objective);
        let mean = |range: std::ops::Range<usize>| {
            found.shares[range.clone()].iter().sum::<f64>() / range.len() as f64
        };
        assert!(mean(0..10) > mean(10..30) && mean(10..30) > mean(30..100), "{:?}", found.shares);
        assert!((0..100).all(|j| !found.is_idle[j]), "all matter");
    }

    #[test]
    fn too_few_outcomes_or_equal_ones_say_nothing() {
        assert!(measured(&cube(3), "race-cars", 30, 1, &|x| x[0]).shares.is_empty());
        assert_eq!(measured(&cube(3), "race-cars", 200, 1, &|_| 1.0).shares, [0.0; 3]);
    }
}
