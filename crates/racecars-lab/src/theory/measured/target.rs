//! Points drawn uniformly from the target Omega_eps = { x : f(x) - f* <= eps }, and its measure.
//!
//! Points are drawn by rejection from a box that holds the target. If f lies above its slices
//! ([`Problem::is_above_its_slices`]), such a box is found along the axes through the minimizer: from each
//! end of the domain inward, in steps of 1/4096 of the width, to the first place where the slice is at
//! most eps, and then by bisection. This can miss a separate part of the target that is thinner than a
//! step. Otherwise no box is known, and draws are from the whole domain, of which few or none hit. In both
//! cases the share of draws that hit falls with the dimension (for Sphere: 0.16 at n = 5, 0.0025 at
//! n = 10), so the method is for small dimensions.

use racecars::random::Random;
use racecars::{Interval, Space};
use racecars_problems::Problem;

/// The steps of the search for the box, per coordinate.
const BOX_STEPS: usize = 4096;
/// The maximum number of draws.
const MAX_DRAWS: u64 = 20_000_000;
/// The maximum number of shrinks of the interval on a line of the walk; the present point is kept after that.
const MAX_SHRINKS: usize = 200;
/// The maximum number of draws without a single hit.
const MAX_MISSES: u64 = 1_000_000;

/// A target and points drawn from it.
#[derive(Debug, Clone)]
pub struct Target {
    /// A box that holds it.
    pub frame: Vec<Interval>,
    /// Whether the box was found along the axes, rather than being the whole domain.
    pub is_framed: bool,
    /// The points, concatenated.
    points: Vec<f64>,
    /// The number of draws from the box.
    pub draws: u64,
    /// The logarithm of its measure relative to the domain; `None` if no draw hit.
    pub ln_measure: Option<f64>,
}

impl Target {
    /// The target of a problem on a continuous space, with up to `samples` points.
    pub fn of(problem: &Problem, epsilon: f64, samples: usize, random: &mut Random) -> Target {
        let space = problem.space();
        let is_framed = problem.is_above_its_slices();
        let frame: Vec<Interval> = (0..space.dimension())
            .map(
                |index| {
                    if is_framed { slice(problem, index, epsilon) } else { extent(space, index) }
                },
            )
            .collect();
        let mut points = Vec::new();
        let mut point = vec![0.0; frame.len()];
        let (mut draws, mut hits) = (0u64, 0usize);
        let gives_up =
            |draws: u64, hits: usize| draws >= MAX_DRAWS || (hits == 0 && draws >= MAX_MISSES);
        while hits < samples && !gives_up(draws, hits) {
            for (x, part) in point.iter_mut().zip(&frame) {
                *x = random.between(part.low, part.high);
            }
            draws += 1;
            if problem.value_at(&point) - problem.optimum() <= epsilon {
                hits += 1;
                points.extend_from_slice(&point);
            }
        }
        let ln_frame = ln_measure(space, &frame);
        let ln_measure = (hits > 0).then(|| ln_frame + (hits as f64 / draws as f64).ln());
        Target { frame, is_framed, points, draws, ln_measure }
    }

    /// The part of the target around the minimizer, for dimensions in which rejection is hopeless: points of a
    /// random walk in it. Each move is along a random direction, to a uniform point of the line within the
    /// target, found by shrinking an interval towards the present point (as in slice sampling, Neal 2003), which
    /// leaves the uniform distribution as it is. Parts of the target that lie apart are hardly ever reached.
    pub fn walked(problem: &Problem, epsilon: f64, samples: usize, random: &mut Random) -> Target {
        let space = problem.space();
        let frame: Vec<Interval> = (0..space.dimension()).map(|i| extent(space, i)).collect();
        let mut at = problem.minimizer();
        let (mut direction, mut next) = (vec![0.0; at.len()], at.clone());
        let (mut points, mut draws) = (Vec::new(), 0);
        for sample in 0..=samples {
            // The first moves lead away from the minimizer and are not kept.
            let moves = if sample == 0 { 20 * at.len() } else { 2 * at.len() };
            for _ in 0..moves {
                random.fill_normal(&mut direction);
                // The part of the line that lies in the domain.
                let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
                for ((x, step), part) in at.iter().zip(&direction).zip(&frame) {
                    let (a, b) = ((part.low - x) / step, (part.high - x) / step);
                    (low, high) = (low.max(a.min(b)), high.min(a.max(b)));
                }
                for _ in 0..MAX_SHRINKS {
                    let along = random.between(low, high);
                    for ((next, x), step) in next.iter_mut().zip(&at).zip(&direction) {
                        *next = x + along * step;
                    }
                    draws += 1;
                    if problem.value_at(&next) - problem.optimum() <= epsilon {
                        std::mem::swap(&mut at, &mut next);
                        break;
                    }
                    if along < 0.0 { low = along } else { high = along }
                }
            }
            if sample > 0 {
                points.extend_from_slice(&at);
            }
        }
        Target { frame, is_framed: false, points, draws, ln_measure: None }
    }

    /// The share of the first `count` points that a box holds; `None` if there are none.
    pub fn share_of_first(&self, count: usize, part: &[Interval]) -> Option<f64> {
        let count = count.min(self.len());
        let points = self.points.chunks_exact(self.frame.len()).take(count);
        let is_inside = |point: &&[f64]| {
            point.iter().zip(part).all(|(x, part)| part.low <= *x && *x <= part.high)
        };
        (count > 0).then(|| points.filter(is_inside).count() as f64 / count as f64)
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.points.len() / self.frame.len()
    }

    /// Whether no draw hit it.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The share of the target that a box holds; `None` if no draw hit the target.
    pub fn share_in(&self, part: &[Interval]) -> Option<f64> {
        self.share_of_first(self.len(), part)
    }

    /// The target's reach from the minimizer in each coordinate: that of the box or, if there is none,
    /// of the points drawn, which may be too small. `None` if there is neither.
    pub fn reach(&self, minimizer: &[f64]) -> Option<Vec<f64>> {
        let farthest = |index: usize| -> f64 {
            let center = minimizer[index];
            if self.is_framed {
                let Interval { low, high } = self.frame[index];
                return (center - low).max(high - center);
            }
            let points = self.points.chunks_exact(self.frame.len());
            points.map(|point| (point[index] - center).abs()).fold(0.0, f64::max)
        };
        let is_known = self.is_framed || !self.is_empty();
        is_known.then(|| (0..self.frame.len()).map(farthest).collect())
    }
}

/// The logarithm of a box's measure relative to the space.
pub fn ln_measure(space: &Space, part: &[Interval]) -> f64 {
    let share = |(index, part): (usize, &Interval)| {
        let whole = extent(space, index);
        ((part.high - part.low) / (whole.high - whole.low)).ln()
    };
    part.iter().enumerate().map(share).sum()
}

fn extent(space: &Space, index: usize) -> Interval {
    space.axis(index).extent()
}

/// The smallest interval outside of which the slice along coordinate `index` through the minimizer exceeds
/// `epsilon`.
fn slice(problem: &Problem, index: usize, epsilon: f64) -> Interval {
    let Interval { low, high } = extent(problem.space(), index);
    let mut point = problem.minimizer();
    let center = point[index];
    let mut is_inside = |x: f64| {
        point[index] = x;
        problem.value_at(&point) - problem.optimum() <= epsilon
    };
    let mut from_end = |end: f64| {
        if is_inside(end) {
            return end;
        }
        let at = |step: usize| end + (center - end) * step as f64 / BOX_STEPS as f64;
        let first = (1..BOX_STEPS).find(|&step| is_inside(at(step))).unwrap_or(BOX_STEPS);
        let (mut outside, mut inside) = (at(first - 1), at(first));
        for _ in 0..60 {
            let middle = 0.5 * (outside + inside);
            if is_inside(middle) { inside = middle } else { outside = middle }
        }
        // The outer end, so that the box holds the target.
        outside
    };
    Interval { low: from_end(low), high: from_end(high) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::bounds::ln_ball;

    fn target(name: &str, dim: usize, epsilon: f64, samples: usize) -> (Problem, Target) {
        let problem = Problem::named(name, dim, 1).unwrap();
        let target = Target::of(&problem, epsilon, samples, &mut Random::new(1));
        (problem, target)
    }

    #[test]
    fn the_target_of_sphere_is_a_ball() {
        for name in ["sphere", "shifted-sphere"] {
            let (problem, target) = target(name, 4, 0.25, 4000);
            let minimizer = problem.minimizer();
            for (reach, part) in target.reach(&minimizer).unwrap().iter().zip(&target.frame) {
                assert!((reach - 0.5).abs() < 1e-9 && part.high > part.low);
            }
            let exact = ln_ball(4, 0.5 / 20.0);
            assert!((target.ln_measure.unwrap() - exact).abs() < 0.05, "{name}");
            assert_eq!(target.len(), 4000);
            // A box through the middle holds half of it.
            let mut half = target.frame.clone();
            half[2].high = minimizer[2];
            assert!((target.share_in(&half).unwrap() - 0.5).abs() < 0.04);
        }
    }

    #[test]
    fn a_walk_in_a_ball_has_the_shares_of_the_ball() {
        use crate::theory::bounds::geometry::ln_share_of_ball;
        let problem = Problem::named("sphere", 20, 1).unwrap();
        let target = Target::walked(&problem, 1.0, 2000, &mut Random::new(2));
        assert_eq!(target.len(), 2000);
        let cube: Vec<Interval> = (problem.minimizer().iter())
            .map(|x| Interval { low: x - 0.4, high: x + 0.4 })
            .collect();
        let (found, exact) = (target.share_in(&cube).unwrap(), ln_share_of_ball(20, 0.4).exp());
        // 2000 points, which are not quite independent.
        assert!((found - exact).abs() < 0.05, "{found} {exact}");
        let mut half = target.frame.clone();
        half[7].high = problem.minimizer()[7];
        assert!((target.share_in(&half).unwrap() - 0.5).abs() < 0.05);
    }

    #[test]
    fn the_box_holds_the_parts_that_lie_apart() {
        // Rastrigin is about 1 at its neighbouring minima, ±1.
        let (_, target) = target("rastrigin", 1, 1.5, 3000);
        assert!(target.frame[0].low < -1.0 && target.frame[0].high > 1.0);
        let apart = [Interval { low: 0.9, high: 1.1 }];
        assert!(target.share_in(&apart).unwrap() > 0.1);
    }

    #[test]
    fn the_box_and_the_whole_domain_give_the_same_measure() {
        let (problem, framed) = target("ackley", 2, 3.0, 3000);
        let whole: Vec<Interval> = (0..2).map(|index| extent(problem.space(), index)).collect();
        let mut random = Random::new(3);
        let mut point = vec![0.0; 2];
        let hits = (0..300_000).filter(|_| {
            problem.space().draw(&mut random, &mut point);
            problem.value_at(&point) <= 3.0
        });
        let direct = (hits.count() as f64 / 3e5).ln();
        assert!((framed.ln_measure.unwrap() - direct).abs() < 0.1);
        assert_eq!(ln_measure(problem.space(), &whole), 0.0);
    }

    #[test]
    fn a_rotated_problem_is_drawn_from_the_whole_domain() {
        let (problem, target) = target("rotated-ellipsoid", 2, 1000.0, 200);
        assert!(!target.is_framed && target.ln_measure.unwrap() < 0.0);
        let reach = target.reach(&problem.minimizer()).unwrap();
        assert!(reach.iter().all(|reach| *reach > 0.0 && *reach < 20.0));
    }
}
