//! How much each parameter matters: the share of the variation of the outcomes that it explains.
//!
//! Outcomes are replaced by their ranks, so that a few huge values do not decide. Each is compared with
//! its nearest relatives only: the best one before it, from which it often descends, or those that share
//! more parameters with it among the evaluations made at about the same time. A search moves everything at once and its points descend from one another, so
//! without this every parameter that it settled would seem to matter. The differences are fitted by an
//! additive model of the parameters that changed, boosted one parameter at a time: each round takes the
//! parameter whose bins explain most of what is still unexplained, and credits it with that. It must
//! explain clearly more than chance would, so parameters without effect get nothing. Interplay of
//! parameters is credited to no one.

/// With fewer outcomes nothing is said.
const LEAST: usize = 40;
/// The share of a fit that each round takes.
const RATE: f64 = 0.5;
/// Boosting ends when the best parameter explains less than this, or at the limits of rounds and work.
const NEGLIGIBLE: f64 = 1e-4;
const ROUNDS: usize = 3000;
const WORK: usize = 1 << 30;
/// The most bins of a parameter, and how many changes each is to have.
const BINS: usize = 32;
const CHANGES: usize = 10;
/// A parameter can be said to have no effect if one of this size would have been seen, in units of what
/// each would explain if all mattered the same.
const TESTED: f64 = 0.1;
/// How many evaluations before and after are looked at for relatives.
const NEAR: usize = 20;

/// What the parameters explain.
#[derive(Debug, Clone, Default)]
pub(super) struct Importance {
    /// For each parameter, the share of the variation that it explains. Empty if there were too few
    /// outcomes.
    pub(super) shares: Vec<f64>,
    /// For each parameter, whether it changed often enough for an effect to show.
    pub(super) is_tested: Vec<bool>,
    /// How many outcomes were used.
    pub(super) used: usize,
}

impl Importance {
    /// Whether a parameter can be said to have no effect.
    pub(super) fn is_idle(&self, parameter: usize) -> bool {
        self.shares.get(parameter) == Some(&0.0)
            && self.is_tested.get(parameter) == Some(&true)
            && self.explained() >= 0.05
    }

    /// The share that all explain together.
    pub(super) fn explained(&self) -> f64 {
        self.shares.iter().sum::<f64>().min(1.0)
    }
}

/// Measures the importance of `parameters`, from outcomes in the order they came: `cost` says how good
/// each is (less is better), `place(i, j)` where parameter `j` stood at outcome `i`, and
/// `values(j)` how many values the parameter has if it has few.
pub(super) fn importance(
    cost: &[f64],
    parameters: usize,
    place: impl Fn(usize, usize) -> f32,
    values: impl Fn(usize) -> Option<usize>,
) -> Importance {
    let used = cost.len();
    if used < LEAST {
        return Importance { used, ..Importance::default() };
    }
    let columns: Vec<Vec<f32>> =
        (0..parameters).map(|j| (0..used).map(|i| place(i, j)).collect()).collect();
    let ranks = ranks(cost);
    let (relatives, descends) = relatives(&columns, cost);
    let mut residual: Vec<f64> = (relatives.iter().zip(&ranks))
        .map(|(near, rank)| rank - near.iter().map(|&k| ranks[k]).sum::<f64>() / near.len() as f64)
        .collect();
    let luck = luck(&columns, &relatives, &descends, &residual);
    residual.iter_mut().zip(&descends).filter(|(_, d)| **d).for_each(|(r, _)| *r -= luck);
    let nearest: Vec<usize> = relatives.iter().map(|near| near[0]).collect();
    let weights = weights(&columns, &nearest);
    let total: f64 = residual.iter().zip(&weights).map(|(r, weight)| weight * r * r).sum();
    let mut shares = vec![0.0; parameters];
    // Where all outcomes are equal, nothing explains them.
    if total <= 1e-9 {
        return Importance { shares, is_tested: vec![false; parameters], used };
    }
    let bins: Vec<Bins> = (columns.iter().enumerate())
        .map(|(j, column)| Bins::new(column, &nearest, &weights, values(j)))
        .collect();
    let work: usize = bins.iter().map(|bins| bins.changes.len()).sum();
    for _ in 0..ROUNDS.min(WORK / work.max(1)) {
        let gains = (bins.iter().enumerate())
            .filter_map(|(j, bins)| Some((j, bins.gain(&residual, &weights)?)));
        let best = gains.max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((j, _)) = best.filter(|(_, gain)| *gain > NEGLIGIBLE * total) else { break };
        shares[j] += bins[j].fit(&mut residual, &weights) / total;
    }
    let faint = TESTED * shares.iter().sum::<f64>() / parameters as f64 * total;
    let is_tested = bins.iter().map(|bins| bins.least(&residual, &weights) < faint).collect();
    Importance { shares, is_tested, used }
}

/// By how much outcomes are worse than the best that they descend from, whatever changed. Where there is
/// noise the best outcome was lucky, and a change of any parameter seems to do harm: as much as that of
/// the tenth of the parameters that do the least.
fn luck(
    columns: &[Vec<f32>],
    relatives: &[Vec<usize>],
    descends: &[bool],
    residual: &[f64],
) -> f64 {
    let medians = columns.iter().filter_map(|column| {
        let is_changed = |&i: &usize| descends[i] && column[i] != column[relatives[i][0]];
        let changed = (0..column.len()).filter(is_changed);
        median(changed.map(|i| residual[i]).collect())
    });
    let mut medians: Vec<f64> = medians.collect();
    medians.sort_by(f64::total_cmp);
    medians.get(medians.len() / 10).copied().unwrap_or(0.0)
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

/// How much each outcome counts: the fewer parameters changed, the clearer it is what did it.
fn weights(columns: &[Vec<f32>], nearest: &[usize]) -> Vec<f64> {
    let changes = |(i, &k): (usize, &usize)| columns.iter().filter(|c| c[i] != c[k]).count();
    nearest.iter().enumerate().map(|pair| 1.0 / changes(pair).max(1) as f64).collect()
}

/// For each outcome, the best one before it, and `true`; or those near it in time that share more
/// parameters with it, and the same ones: the one that came closest before is the first.
fn relatives(columns: &[Vec<f32>], cost: &[f64]) -> (Vec<Vec<usize>>, Vec<bool>) {
    let rows = cost.len();
    let mut shared = Vec::new();
    let mut best: Option<usize> = None;
    (0..rows)
        .map(|i| {
            let parent = best;
            if best.is_none_or(|best| cost[i] <= cost[best]) {
                best = Some(i);
            }
            let start = i.saturating_sub(NEAR);
            let near = start..(i + NEAR + 1).min(rows);
            shared.clear();
            shared.resize(near.len(), 0u32);
            for column in columns {
                for (count, place) in shared.iter_mut().zip(&column[near.clone()]) {
                    *count += u32::from(*place == column[i]);
                }
            }
            shared[i - start] = 0;
            let most = shared.iter().copied().max().unwrap_or(0);
            let with = |k: usize| columns.iter().filter(|c| c[k] == c[i]).count();
            if let Some(parent) = parent.filter(|&k| most > 0 && with(k) >= most as usize) {
                return (vec![parent], true);
            }
            let tied = || near.clone().filter(|&k| k != i && shared[k - start] == most);
            let before = tied().take_while(|&k| k < i).last();
            let Some(first) = before.or_else(|| tied().next()) else { return (vec![i], false) };
            let is_alike = |&k: &usize| {
                let differ = |c: &&Vec<f32>, k: usize| c[k] != c[i];
                k != first
                    && (most == 0 || columns.iter().all(|c| differ(&c, k) == differ(&c, first)))
            };
            (std::iter::once(first).chain(tied().filter(is_alike)).collect(), false)
        })
        .unzip()
}

/// A parameter cut into bins, where it changed.
struct Bins {
    /// The outcomes at which it changed, each with the bin that it changed to. Of many parameters few
    /// change at a time, so this is short.
    changes: Vec<(u32, u8)>,
    /// The weight in each bin.
    masses: Vec<f64>,
}

impl Bins {
    /// One bin per value where there are few, or about as many changes in each.
    fn new(column: &[f32], nearest: &[usize], weights: &[f64], values: Option<usize>) -> Self {
        let changed = || (0..column.len()).filter(|&i| column[i] != column[nearest[i]]);
        let bin: Box<dyn Fn(f32) -> usize> = match values {
            Some(values) if values <= BINS => Box::new(move |place| {
                ((place * values as f32) as usize).min(values.saturating_sub(1))
            }),
            _ => {
                let mut sorted: Vec<f32> = changed().map(|i| column[i]).collect();
                sorted.sort_by(f32::total_cmp);
                let wanted = (sorted.len() / CHANGES).clamp(1, BINS);
                let mut cuts: Vec<f32> =
                    (1..wanted).map(|i| sorted[i * sorted.len() / wanted]).collect();
                cuts.dedup();
                Box::new(move |place| cuts.partition_point(|cut| *cut <= place))
            }
        };
        let mut masses = vec![0.0; BINS];
        let changes = changed()
            .map(|i| {
                let bin = bin(column[i]).min(BINS - 1);
                masses[bin] += weights[i];
                (i as u32, bin as u8)
            })
            .collect();
        Bins { changes, masses }
    }

    /// The sum of each bin, and what chance would gain per bin.
    fn sums(&self, residual: &[f64], weights: &[f64]) -> ([f64; BINS], f64) {
        let (mut sums, mut chance) = ([0.0; BINS], 0.0);
        for &(i, bin) in &self.changes {
            let pull = weights[i as usize] * residual[i as usize];
            sums[usize::from(bin)] += pull;
            chance += pull * pull;
        }
        let mass: f64 = self.masses.iter().sum();
        (sums, chance / mass.max(f64::MIN_POSITIVE))
    }

    /// By how much a whole fit would lower the sum of squares beyond chance, if it clearly would.
    fn gain(&self, residual: &[f64], weights: &[f64]) -> Option<f64> {
        let (sums, chance) = self.sums(residual, weights);
        let (mean, bar) = self.chance(chance);
        let used = sums.iter().zip(&self.masses).filter(|(_, mass)| **mass > 0.0);
        let gain: f64 = used.map(|(sum, mass)| sum * sum / mass).sum();
        (self.changes.len() >= 5 && gain > bar).then_some(gain - mean)
    }

    /// The least gain that is told from chance.
    fn least(&self, residual: &[f64], weights: &[f64]) -> f64 {
        match self.changes.len() {
            0..5 => f64::INFINITY,
            _ => self.chance(self.sums(residual, weights).1).1,
        }
    }

    /// What chance gains on average, and what it hardly ever gains.
    fn chance(&self, per_bin: f64) -> (f64, f64) {
        let freedom = self.masses.iter().filter(|mass| **mass > 0.0).count() as f64;
        (freedom * per_bin, (freedom + 4.0 * (2.0 * freedom).sqrt()) * per_bin)
    }

    /// Takes part of a fit off; returns by how much that lowers the sum of squares.
    fn fit(&self, residual: &mut [f64], weights: &[f64]) -> f64 {
        let (sums, _) = self.sums(residual, weights);
        let mut lowered = 0.0;
        for &(i, bin) in &self.changes {
            let r = &mut residual[i as usize];
            let before = *r;
            *r -= RATE * sums[usize::from(bin)] / self.masses[usize::from(bin)];
            lowered += weights[i as usize] * (before * before - *r * *r);
        }
        lowered
    }
}

/// Ranks from -1 to 1; those of equal outcomes are the same.
fn ranks(cost: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..cost.len()).collect();
    order.sort_by(|&a, &b| cost[a].total_cmp(&cost[b]));
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

#[cfg(test)]
mod tests {
    use super::*;
    use racecars::{Algorithm, Outcome, Space};

    /// The importance of the coordinates of a cube, from a run on it.
    fn measured(
        dimension: usize,
        evaluations: usize,
        objective: impl Fn(&[f64]) -> f64,
    ) -> Importance {
        let space = Space::cube(dimension, 0.0, 1.0).unwrap();
        let mut optimizer =
            Algorithm::race_cars().optimizer(&space, Some(evaluations as u64), 1).unwrap();
        let (mut cost, mut points) = (Vec::new(), Vec::new());
        for _ in 0..evaluations {
            let candidate = optimizer.ask().unwrap();
            cost.push(objective(candidate.point()));
            points.push(candidate.point().to_vec());
            optimizer.tell(candidate, Outcome::from(cost[cost.len() - 1])).unwrap();
        }
        importance(&cost, dimension, |i, j| points[i][j] as f32, |_| None)
    }

    #[test]
    fn what_matters_more_ranks_higher_and_what_does_not_gets_nothing() {
        let weights = [4.0, 2.0, 0.0, 0.5, 0.0];
        let found =
            measured(5, 1000, |x| x.iter().zip(weights).map(|(x, w)| w * (x - 0.3).abs()).sum());
        let shares = &found.shares;
        assert!(shares[0] > shares[1] && shares[1] > shares[3], "{shares:?}");
        assert!(shares[2] < 0.01 && shares[4] < 0.01, "{shares:?}");
        let idle: Vec<usize> = (0..5).filter(|&j| found.is_idle(j)).collect();
        assert!(!idle.contains(&0) && !idle.contains(&1) && !idle.contains(&3), "{idle:?}");
        assert!(found.explained() > 0.5, "{shares:?}");
    }

    #[test]
    fn few_that_matter_are_found_among_many() {
        let found = measured(300, 12_000, |x| 3.0 * (x[7] - 0.5).abs() + (x[123] - 0.2).powi(2));
        let shares = &found.shares;
        let mut order: Vec<usize> = (0..300).collect();
        order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
        assert_eq!(
            order[..2],
            [7, 123],
            "{:?}",
            order[..8].iter().map(|&j| (j, shares[j])).collect::<Vec<_>>()
        );
        let others: f64 = order[2..].iter().map(|&j| shares[j]).sum();
        assert!(others < 0.1 * found.explained(), "{others} of {}", found.explained());
    }

    #[test]
    fn many_that_matter_are_ranked_about_right() {
        let found = measured(100, 8000, |x| {
            x.iter().enumerate().map(|(i, x)| (x - 0.4).powi(2) / (1.0 + i as f64 / 5.0)).sum()
        });
        let mean = |range: std::ops::Range<usize>| {
            found.shares[range.clone()].iter().sum::<f64>() / range.len() as f64
        };
        assert!(mean(0..10) > mean(10..30) && mean(10..30) > mean(30..100), "{:?}", found.shares);
        assert!(found.explained() > 0.15, "{}", found.explained());
        // The others have less than a tenth of the mean effect.
        assert!((0..40).all(|j| !found.is_idle(j)), "these matter");
    }

    #[test]
    fn too_few_outcomes_or_equal_ones_say_nothing() {
        assert!(measured(3, 30, |x| x[0]).shares.is_empty());
        assert_eq!(measured(3, 200, |_| 1.0).shares, [0.0; 3]);
    }

    #[test]
    fn noise_alone_explains_nothing() {
        let noise = |x: &[f64]| (x.iter().sum::<f64>() * 1e9).sin();
        let found = measured(50, 2000, noise);
        assert!(found.explained() < 0.05, "{:?}", found.explained());
    }
}
