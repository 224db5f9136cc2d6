//! The walk of the number of shrinks K, with the probability of having missed the target so far: what the
//! two terms of the theorem (`theorem.rs`) are computed from.
//!
//! K goes up by one with probability rho at each step. With v_k the probability of having shrunk k times and
//! missed so far, a step is v_k <- (1 - h_k) ((1 - rho) v_k + rho v_(k-1)) for k <= kappa. What leaves kappa
//! is exhausted: nothing is assumed about it but the draws from the whole space.
//!
//! If there are too many steps, they are taken in blocks. The shrinks of a block count only at its end, at
//! most `BLOCK_SHRINKS` of them. While K <= kappa, fewer shrinks mean fewer hits, so the sum of v_k is still a
//! bound, off by about a block at most. The exhausted part is not, and is not used in blocks.

use super::queries::{MAX_EXACT, Queries};
use super::setting::BoundSetting;

/// The maximum number of multiplications of a walk in blocks.
const MAX_BLOCK_WORK: f64 = 1e7;
/// The maximum number of multiplications of an exact walk.
pub(super) const MAX_EXACT_WORK: f64 = 4e7;
/// The maximum number of shrinks of a block that count.
const BLOCK_SHRINKS: usize = 6;
/// With fewer blocks the result would be too coarse.
const MIN_BLOCKS: f64 = 200.0;

pub(super) struct Chain {
    /// The number of steps of a block; 1 if the walk is exact.
    block: f64,
    /// The number of blocks in the given steps.
    blocks: f64,
    /// 1 - h_k to the power of the block, for each k from 0 to kappa.
    missing: Vec<f64>,
    /// The probability that a step misses once the shrinks are exhausted, 1 - (1 - lambda) |Omega_eps|.
    after: f64,
    /// The probability of 0, 1, ... shrinks in a block; more shrinks count as the last number.
    shrinks: Vec<f64>,
}

impl Chain {
    /// The chain up to `kappa` shrinks for up to `steps` steps, exact if that is feasible; `None` if even
    /// blocks would take too long, or there are no random shrinks.
    pub(super) fn new(setting: &BoundSetting, kappa: u64, steps: f64) -> Option<Chain> {
        let BoundSetting { eta, lambda, rho, ln_target, .. } = *setting;
        if lambda * eta == 0.0 || rho == 0.0 || !steps.is_finite() {
            return None;
        }
        let states = kappa as f64 + 1.0;
        if states > MAX_BLOCK_WORK {
            return None;
        }
        let (block, width) = match MAX_BLOCK_WORK / (states * BLOCK_SHRINKS as f64) {
            _ if 2.0 * steps * states <= MAX_EXACT_WORK => (1.0, 1),
            blocks if blocks < MIN_BLOCKS => return None,
            blocks => ((steps / blocks).ceil(), BLOCK_SHRINKS),
        };
        let missing = |k: u64| (block * (-setting.hits_after(k as f64)).ln_1p()).exp();
        Some(Chain {
            block,
            blocks: (steps / block).ceil(),
            missing: (0..=kappa).map(missing).collect(),
            after: 1.0 - (1.0 - lambda) * ln_target.exp(),
            shrinks: binomial(block, rho, width),
        })
    }

    /// Whether every step is taken by itself, so that the exhausted part is exact, too.
    pub(super) fn is_exact(&self) -> bool {
        self.block == 1.0
    }

    /// The least number of steps after which `failure` of the walk is at most `delta`; `None` if it is above
    /// the steps of the chain.
    pub(super) fn least_steps(
        &self,
        delta: f64,
        failure: impl Fn(&Walk<'_>) -> f64,
    ) -> Option<Queries> {
        let mut walk = Walk::new(self);
        let mut blocks = 0.0;
        while failure(&walk) > delta {
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

    /// The walk after `steps` steps, rounded down to whole blocks.
    pub(super) fn walk(&self, steps: u64) -> Walk<'_> {
        let mut walk = Walk::new(self);
        for _ in 0..(steps as f64 / self.block) as u64 {
            walk.step();
        }
        walk
    }
}

/// The state of a walk.
pub(super) struct Walk<'a> {
    chain: &'a Chain,
    /// The probability of having shrunk k <= kappa times and missed.
    v: Vec<f64>,
    /// The probability of having shrunk more than kappa times and missed.
    exhausted: f64,
}

impl Walk<'_> {
    fn new(chain: &Chain) -> Walk<'_> {
        let mut v = vec![0.0; chain.missing.len()];
        v[0] = 1.0;
        Walk { chain, v, exhausted: 0.0 }
    }

    /// The probability of having missed with at most kappa shrinks.
    pub(super) fn held(&self) -> f64 {
        self.v.iter().sum()
    }

    /// The probability of having missed with more than kappa shrinks.
    pub(super) fn exhausted(&self) -> f64 {
        self.exhausted
    }

    fn step(&mut self) {
        // A single step shrinks first and then draws; a block counts its shrinks at its end.
        if self.chain.block == 1.0 {
            self.single();
        } else {
            self.draw();
            self.shrink();
        }
    }

    /// A single step, in one pass: most of the time is spent here.
    fn single(&mut self) {
        let Chain { missing, after, shrinks, .. } = self.chain;
        let (stay, up) = (shrinks[0], shrinks[1]);
        let mut below = 0.0;
        for (v, missing) in self.v.iter_mut().zip(missing) {
            let now = *v;
            *v = missing * (stay * now + up * below);
            below = now;
        }
        self.exhausted = after * (self.exhausted + up * below);
    }

    fn draw(&mut self) {
        self.v.iter_mut().zip(&self.chain.missing).for_each(|(v, missing)| *v *= missing);
        self.exhausted *= self.chain.after;
    }

    fn shrink(&mut self) {
        let shrinks = &self.chain.shrinks;
        let last = self.v.len() - 1;
        let mut tail = 1.0;
        for (up, share) in shrinks.iter().enumerate().take(last + 2) {
            if up > 0 {
                self.exhausted += self.v[last + 1 - up] * tail;
            }
            tail -= share;
        }
        // From the top down, so that the values read are still the old ones.
        for k in (0..=last).rev() {
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

    /// The mean over every sequence of coins, written out: with at most kappa shrinks, and with more.
    fn brute_force(setting: &BoundSetting, kappa: u32, steps: u32) -> (f64, f64) {
        let (target, lambda) = (setting.ln_target.exp(), setting.lambda);
        let (mut held, mut exhausted) = (0.0, 0.0);
        for coins in 0..1u32 << steps {
            let chance = (0..steps).map(|j| match coins >> j & 1 {
                1 => setting.rho,
                _ => 1.0 - setting.rho,
            });
            let missing = (1..=steps).map(|j| {
                let shrinks = (coins & ((1 << j) - 1)).count_ones();
                let region = setting.gamma.powi((setting.dimension as u32 * shrinks) as i32);
                let drawn = (setting.eta * target / region.min(setting.p)).min(1.0);
                let drawn = if shrinks <= kappa { drawn } else { 0.0 };
                1.0 - lambda * drawn - (1.0 - lambda) * target
            });
            let part = chance.product::<f64>() * missing.product::<f64>();
            if coins.count_ones() <= kappa { held += part } else { exhausted += part }
        }
        (held, exhausted)
    }

    #[test]
    fn the_chain_gives_the_mean_over_all_sequences_of_shrinks() {
        for (p, kappa) in [(1.0, 6), (0.3, 6), (1.0, 2), (1.0, 0)] {
            for rho in [0.3, 1.0, 0.01] {
                let setting = BoundSetting { p, rho, ..setting() };
                for steps in [1, 2, 7, 14] {
                    let chain = Chain::new(&setting, kappa, f64::from(steps)).unwrap();
                    let walk = chain.walk(u64::from(steps));
                    let (held, exhausted) = brute_force(&setting, kappa as u32, steps);
                    assert!((walk.held() - held).abs() < 1e-12, "{} {held}", walk.held());
                    let found = walk.exhausted();
                    assert!((found - exhausted).abs() < 1e-12, "{found} {exhausted}");
                }
            }
        }
    }

    #[test]
    fn blocks_stay_above_the_truth_and_near_it() {
        let setting = BoundSetting { gamma: 0.9, rho: 0.05, ln_target: -40.0, ..setting() };
        let kappa = 190;
        let fine = Chain::new(&setting, kappa, 10.0).unwrap();
        let coarse = Chain { block: 8.0, ..Chain::new(&setting, kappa, 10.0).unwrap() };
        let missing = coarse.missing.iter().map(|m| m.powf(8.0)).collect();
        let coarse = Chain { missing, shrinks: binomial(8.0, 0.05, BLOCK_SHRINKS), ..coarse };
        let rough = coarse.walk(3600).held();
        let (truth, earlier) = (fine.walk(3600).held(), fine.walk(3580).held());
        assert!(truth < rough && rough < earlier, "{truth} {rough} {earlier}");
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
