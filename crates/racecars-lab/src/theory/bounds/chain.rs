//! The mean, over the random shrinks, of the probability of missing the target: the proof of Theorem 3
//! needs it and replaces it by something smaller.
//!
//! The number of shrinks K is a Markov chain that goes up by one with probability rho. With v_k a bound on
//! the probability of having shrunk k times and missed so far, a step is
//! v_k <- exp(-h_k) ((1 - rho) v_k + rho v_(k-1)). From some k on h_k is constant, since a draw cannot do
//! better than hit, so the chain is finite, and its last state is absorbing.
//!
//! If there are too many steps, they are taken in blocks. The shrinks of a block count only at its end, at
//! most `BLOCK_SHRINKS` of them. More shrinks are never worse, so the result is still a bound, off by
//! about a block at most.

use super::queries::{MAX_EXACT, Queries};
use super::setting::BoundSetting;

/// The maximum number of multiplications.
const MAX_MULTIPLICATIONS: f64 = 1e7;
/// The maximum number of shrinks of a block that count.
const BLOCK_SHRINKS: usize = 6;
/// With fewer blocks the result would be too coarse.
const MIN_BLOCKS: f64 = 200.0;

pub(super) struct Chain {
    /// The number of steps of a block.
    block: f64,
    /// The number of blocks in the given steps.
    blocks: f64,
    /// exp(-h_k) to the power of the block, for each k.
    missing: Vec<f64>,
    /// The probability of 0, 1, ... shrinks in a block; more shrinks count as the last number.
    shrinks: Vec<f64>,
}

impl Chain {
    /// The chain for up to `steps` steps; `None` if it would take too long or has no random shrinks.
    pub(super) fn new(setting: &BoundSetting, steps: f64) -> Option<Chain> {
        let BoundSetting { eta, lambda, gamma, rho, dimension, ln_target, .. } = *setting;
        if lambda * eta == 0.0 || rho == 0.0 || !steps.is_finite() {
            return None;
        }
        let ln_held = eta.ln() + ln_target;
        let ln_shrink = dimension as f64 * gamma.ln();
        let states = (ln_held / ln_shrink).ceil() + 1.0;
        if states > MAX_MULTIPLICATIONS {
            return None;
        }
        let exact_blocks = MAX_MULTIPLICATIONS / (2.0 * states);
        let (block, width) = match MAX_MULTIPLICATIONS / (states * BLOCK_SHRINKS as f64) {
            _ if steps <= exact_blocks => (1.0, 1),
            blocks if blocks < MIN_BLOCKS => return None,
            blocks => ((steps / blocks).ceil(), BLOCK_SHRINKS),
        };
        let missing = |k: usize| (-block * setting.hits_after(k as f64)).exp();
        Some(Chain {
            block,
            blocks: (steps / block).ceil(),
            missing: (0..states as usize).map(missing).collect(),
            shrinks: binomial(block, rho, width),
        })
    }

    /// The least number of steps after which the probability of having missed is at most `delta`; `None`
    /// if it is above the steps of the chain.
    pub(super) fn least_steps(&self, delta: f64) -> Option<Queries> {
        let mut walk = Walk::new(self);
        let mut blocks = 0.0;
        while walk.missed() > delta {
            walk.step();
            blocks += 1.0;
            if blocks > self.blocks {
                return None;
            }
        }
        let steps = blocks * self.block;
        Some(match steps {
            small if small < MAX_EXACT as f64 => Queries::Count(small as u64),
            large => Queries::Log(large.ln()),
        })
    }

    /// The probability of having missed after `steps` steps, rounded down to whole blocks.
    pub(super) fn failure(&self, steps: u64) -> f64 {
        let mut walk = Walk::new(self);
        for _ in 0..(steps as f64 / self.block) as u64 {
            walk.step();
        }
        walk.missed()
    }
}

struct Walk<'a> {
    chain: &'a Chain,
    /// The probability of having shrunk k times and missed.
    v: Vec<f64>,
}

impl Walk<'_> {
    fn new(chain: &Chain) -> Walk<'_> {
        let mut v = vec![0.0; chain.missing.len()];
        v[0] = 1.0;
        Walk { chain, v }
    }

    fn missed(&self) -> f64 {
        self.v.iter().sum()
    }

    fn step(&mut self) {
        // A single step shrinks first and then draws; a block counts its shrinks at its end.
        if self.chain.block == 1.0 {
            self.shrink();
            self.draw();
        } else {
            self.draw();
            self.shrink();
        }
    }

    fn draw(&mut self) {
        self.v.iter_mut().zip(&self.chain.missing).for_each(|(v, missing)| *v *= missing);
    }

    fn shrink(&mut self) {
        let shrinks = &self.chain.shrinks;
        let last = self.v.len() - 1;
        // From the top down, so that the values read are still the old ones. The last state is absorbing.
        let mut tail = 1.0;
        let mut arriving = self.v[last];
        for (up, share) in shrinks.iter().enumerate().take(last + 1) {
            if up > 0 {
                arriving += self.v[last - up] * tail;
            }
            tail -= share;
        }
        self.v[last] = arriving;
        for k in (0..last).rev() {
            let below = self.v[..=k].iter().rev();
            self.v[k] = below.zip(shrinks).map(|(v, share)| v * share).sum();
        }
    }
}

/// The probability of 0, 1, .., `width` successes in `count` trials; more successes count as `width`.
fn binomial(count: f64, rho: f64, width: usize) -> Vec<f64> {
    if rho == 1.0 {
        let sure = width.min(count as usize);
        return (0..=sure).map(|i| f64::from(u8::from(i == sure))).collect();
    }
    let mut shares = vec![(count * (-rho).ln_1p()).exp()];
    for i in 1..width {
        let before = (i - 1) as f64;
        let ratio = (count - before).max(0.0) / i as f64 * rho / (1.0 - rho);
        shares.push(shares[i - 1] * ratio);
    }
    let beyond = 1.0 - shares.iter().sum::<f64>();
    shares.push(beyond.max(0.0));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> BoundSetting {
        let base =
            BoundSetting { eta: 0.4, lambda: 0.9, gamma: 0.7, rho: 0.3, ..BoundSetting::default() };
        BoundSetting { dimension: 2, ln_target: 0.02f64.ln(), ..base }
    }

    /// The mean over every sequence of coins, written out.
    fn brute_force(setting: &BoundSetting, steps: u32) -> f64 {
        let (target, lambda) = (setting.ln_target.exp(), setting.lambda);
        let sequences = 0..1u32 << steps;
        let mean = sequences.map(|coins| {
            let chance = (0..steps).map(|j| match coins >> j & 1 {
                1 => setting.rho,
                _ => 1.0 - setting.rho,
            });
            let hits = (1..=steps).map(|j| {
                let shrinks = (coins & ((1 << j) - 1)).count_ones() as i32;
                let region = setting.gamma.powi(setting.dimension as i32 * shrinks);
                let measure = region.min(setting.p);
                lambda * (setting.eta * target / measure).min(1.0) + (1.0 - lambda) * target
            });
            chance.product::<f64>() * (-hits.sum::<f64>()).exp()
        });
        mean.sum()
    }

    #[test]
    fn the_chain_gives_the_mean_over_all_sequences_of_shrinks() {
        for p in [1.0, 0.3] {
            for rho in [0.3, 1.0, 0.01] {
                let setting = BoundSetting { p, rho, ..setting() };
                for steps in [1, 2, 7, 14] {
                    let chain = Chain::new(&setting, f64::from(steps)).unwrap();
                    let exact = brute_force(&setting, steps);
                    let failure = chain.failure(u64::from(steps));
                    assert!((failure / exact - 1.0).abs() < 1e-12, "{failure} {exact}");
                }
            }
        }
    }

    #[test]
    fn blocks_stay_above_the_truth_and_near_it() {
        let setting = BoundSetting { gamma: 0.9, rho: 0.05, ln_target: -40.0, ..setting() };
        let exact = |chain: Chain, steps| {
            let mut walk = Walk::new(&chain);
            (0..steps).for_each(|_| walk.step());
            walk.missed()
        };
        let fine = Chain::new(&setting, 10.0).unwrap();
        let coarse = Chain { block: 8.0, ..Chain::new(&setting, 10.0).unwrap() };
        let missing = coarse.missing.iter().map(|m| m.powf(8.0)).collect();
        let coarse = Chain { missing, shrinks: binomial(8.0, 0.05, BLOCK_SHRINKS), ..coarse };
        let shorter = exact(coarse, 3600 / 8);
        let (truth, earlier) = (fine.failure(3600), fine.failure(3580));
        assert!(truth < shorter && shorter < earlier, "{truth} {shorter} {earlier}");
        assert!(truth > 0.0 && truth < 0.9);
    }

    #[test]
    fn the_shares_of_shrinks_add_up() {
        for (count, rho) in [(1.0, 0.3), (5.0, 0.2), (1e6, 1e-7), (3.0, 1.0), (1e3, 0.9)] {
            let shares = binomial(count, rho, BLOCK_SHRINKS);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        assert_eq!(binomial(1.0, 1.0, 1), [0.0, 1.0]);
    }
}
