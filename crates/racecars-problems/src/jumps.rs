//! Jumps added to a continuous function: the paper's balls, and slabs that optimizers actually cross.

use racecars::random::Random;

/// The radius of a ball, and half the width of a slab.
const RADIUS: f64 = 0.5;
/// Jumps per coordinate.
const PER_COORDINATE: usize = 5;

/// A perturbation that is piecewise constant, nonnegative, and 0 at the optimum.
#[derive(Debug)]
pub(crate) enum Jumps {
    /// "Beyond continuity" in the paper: 5n open balls of radius 0.5 at random places, with heights
    /// in [0, 1]. In high dimensions their measure is negligible: at n = 50 no run enters one.
    Balls { centers: Vec<f64>, heights: Vec<f64> },
    /// The same number of jumps, each a slab |x_i - c| < 0.5 of one coordinate, so that a point on
    /// [-10, 10]^n lies in about n / 4 of them and every move of one coordinate by 1 crosses one or
    /// more edges with probability of about 1/2. Heights are in [0, 10 / n], so that they add up to
    /// the order of 1 in every dimension.
    Slabs(Vec<[Slab; PER_COORDINATE]>),
}

#[derive(Debug)]
pub(crate) struct Slab {
    center: f64,
    height: f64,
}

impl Jumps {
    /// Balls that do not hold `optimum`, on [low, high]^n.
    pub(crate) fn balls(optimum: &[f64], low: f64, high: f64, random: &mut Random) -> Jumps {
        let count = PER_COORDINATE * optimum.len();
        let mut centers = Vec::with_capacity(count * optimum.len());
        for _ in 0..count {
            loop {
                let center: Vec<f64> = optimum.iter().map(|_| random.between(low, high)).collect();
                // For n = 1 the balls may cover the whole domain; the optimum still stays free.
                if !is_in_ball(optimum, &center) {
                    centers.extend(center);
                    break;
                }
            }
        }
        Jumps::Balls { centers, heights: (0..count).map(|_| random.unit()).collect() }
    }

    /// Slabs that do not hold `optimum`, on [low, high]^n.
    pub(crate) fn slabs(optimum: &[f64], low: f64, high: f64, random: &mut Random) -> Jumps {
        let scale = 10.0 / optimum.len() as f64;
        let mut slab = |optimum: f64| loop {
            let center = random.between(low, high);
            if (center - optimum).abs() >= RADIUS {
                break Slab { center, height: scale * random.unit() };
            }
        };
        Jumps::Slabs(optimum.iter().map(|&x| std::array::from_fn(|_| slab(x))).collect())
    }

    pub(crate) fn at(&self, x: &[f64]) -> f64 {
        match self {
            Jumps::Balls { centers, heights } => {
                let balls = centers.chunks_exact(x.len()).zip(heights);
                balls.filter(|(center, _)| is_in_ball(x, center)).map(|(_, height)| height).sum()
            }
            Jumps::Slabs(slabs) => {
                let at = |(x, slabs): (&f64, &[Slab; PER_COORDINATE])| -> f64 {
                    let holds = |slab: &Slab| f64::from(u8::from((x - slab.center).abs() < RADIUS));
                    slabs.iter().map(|slab| holds(slab) * slab.height).sum()
                };
                x.iter().zip(slabs).map(at).sum()
            }
        }
    }
}

/// Whether `x` is in the open ball. It stops as soon as the distance is too large, which in high dimensions
/// is after a coordinate or two.
fn is_in_ball(x: &[f64], center: &[f64]) -> bool {
    let mut square = 0.0;
    x.iter().zip(center).all(|(x, c)| {
        square += (x - c) * (x - c);
        square < RADIUS * RADIUS
    })
}
