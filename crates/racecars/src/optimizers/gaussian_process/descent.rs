//! Minimization of a smooth function in a box: L-BFGS (Nocedal and Wright, "Numerical Optimization",
//! algorithm 7.4) on the coordinates that are not held at a bound, with projected steps and backtracking.
//!
//! It serves both the fit of the model and the maximization of the acquisition function. The number of
//! evaluations is limited, and values that are not finite only shorten a step, so it always ends.

use crate::linalg::product::{add_scaled, dot};
use std::collections::VecDeque;

/// The number of pairs of steps and gradient differences that approximate the curvature.
const MAX_PAIRS: usize = 6;

/// A step is accepted if it realizes this share of the decrease that the slope predicts.
const SUFFICIENT_DECREASE: f64 = 1e-4;

/// The length of the first step, as a share of the box.
const FIRST_STEP: f64 = 0.1;

/// A step, the difference of the gradients at its ends, and their product.
struct Pair {
    step: Vec<f64>,
    difference: Vec<f64>,
    product: f64,
}

/// Moves `x` to lower values of `function` inside the box of `low` and `high`, by at most `evaluations`
/// evaluations, until a step gains less than `tolerance` of the value. The function writes its gradient to the second argument. Returns the value at the end.
pub(super) fn minimize(
    x: &mut [f64],
    low: &[f64],
    high: &[f64],
    (evaluations, tolerance): (usize, f64),
    mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> f64 {
    let n = x.len();
    let mut gradient = vec![0.0; n];
    let mut value = function(x, &mut gradient);
    let mut left = evaluations.saturating_sub(1);
    if !value.is_finite() || gradient.iter().any(|g| !g.is_finite()) {
        return value;
    }
    let mut pairs: VecDeque<Pair> = VecDeque::with_capacity(MAX_PAIRS);
    let (mut next, mut next_gradient) = (vec![0.0; n], vec![0.0; n]);
    while left > 0 {
        let is_held = |i: usize| {
            (x[i] <= low[i] && gradient[i] > 0.0) || (x[i] >= high[i] && gradient[i] < 0.0)
        };
        let free: Vec<f64> = (0..n).map(|i| if is_held(i) { 0.0 } else { gradient[i] }).collect();
        let steepest = free.iter().fold(0.0f64, |most, g| most.max(g.abs()));
        if steepest == 0.0 {
            break;
        }
        let mut direction = quasi_newton(&free, &pairs);
        (0..n).filter(|&i| is_held(i)).for_each(|i| direction[i] = 0.0);
        let is_descent = dot(&direction, &free) < 0.0 && direction.iter().all(|d| d.is_finite());
        let mut length = 1.0;
        if pairs.is_empty() || !is_descent {
            pairs.clear();
            let width = low.iter().zip(high).fold(0.0f64, |most, (low, high)| most.max(high - low));
            direction = free.iter().map(|g| -g / steepest).collect();
            length = FIRST_STEP * width;
        }
        let mut accepted = None;
        while left > 0 {
            for i in 0..n {
                next[i] = (x[i] + length * direction[i]).clamp(low[i], high[i]);
            }
            let slope: f64 = (0..n).map(|i| gradient[i] * (next[i] - x[i])).sum();
            if slope >= 0.0 {
                break;
            }
            let next_value = function(&next, &mut next_gradient);
            left -= 1;
            let is_finite = next_value.is_finite() && next_gradient.iter().all(|g| g.is_finite());
            if is_finite && next_value <= value + SUFFICIENT_DECREASE * slope {
                accepted = Some(next_value);
                break;
            }
            length *= 0.3;
        }
        let Some(next_value) = accepted else {
            // The curvature was misleading: try once more along the gradient.
            if pairs.is_empty() {
                break;
            }
            pairs.clear();
            continue;
        };
        let step: Vec<f64> = next.iter().zip(x.iter()).map(|(new, old)| new - old).collect();
        let difference: Vec<f64> =
            next_gradient.iter().zip(&gradient).map(|(new, old)| new - old).collect();
        let product = dot(&step, &difference);
        if product > 1e-10 * (dot(&step, &step) * dot(&difference, &difference)).sqrt() {
            if pairs.len() == MAX_PAIRS {
                pairs.pop_front();
            }
            pairs.push_back(Pair { step, difference, product });
        }
        let gain = value - next_value;
        x.copy_from_slice(&next);
        gradient.copy_from_slice(&next_gradient);
        value = next_value;
        if gain <= tolerance * (1.0 + value.abs()) {
            break;
        }
    }
    value
}

/// -H g, with the approximation H of the inverse Hessian that the pairs give.
fn quasi_newton(gradient: &[f64], pairs: &VecDeque<Pair>) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut shares = [0.0; MAX_PAIRS];
    for (pair, share) in pairs.iter().zip(&mut shares).rev() {
        *share = dot(&pair.step, &direction) / pair.product;
        add_scaled(&mut direction, -*share, &pair.difference);
    }
    if let Some(last) = pairs.back() {
        let scale = last.product / dot(&last.difference, &last.difference);
        direction.iter_mut().for_each(|d| *d *= scale);
    }
    for (pair, share) in pairs.iter().zip(&shares) {
        let other = dot(&pair.difference, &direction) / pair.product;
        add_scaled(&mut direction, share - other, &pair.step);
    }
    direction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rosenbrock(x: &[f64], gradient: &mut [f64]) -> f64 {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        gradient[0] = -2.0 * a - 400.0 * x[0] * b;
        gradient[1] = 200.0 * b;
        a * a + 100.0 * b * b
    }

    #[test]
    fn the_minimum_inside_the_box_is_found() {
        let mut x = vec![-1.2, 1.0];
        let value = minimize(&mut x, &[-2.0; 2], &[2.0; 2], (200, 1e-12), rosenbrock);
        assert!(value < 1e-8 && (x[0] - 1.0).abs() < 1e-3, "{value} {x:?}");
    }

    #[test]
    fn the_minimum_at_the_border_is_found() {
        let mut x = vec![-1.2, 1.0];
        let value = minimize(&mut x, &[-2.0; 2], &[0.5, 2.0], (200, 1e-12), rosenbrock);
        // At x = 0.5 the least value is that of y = 0.25.
        assert!((value - 0.25).abs() < 1e-8 && x[0] == 0.5, "{value} {x:?}");
    }

    #[test]
    fn it_never_gets_worse_and_keeps_to_its_evaluations() {
        for evaluations in 0..40 {
            let (mut x, mut count) = (vec![-1.2, 1.0], 0);
            let start = rosenbrock(&x, &mut [0.0; 2]);
            let value =
                minimize(&mut x, &[-2.0; 2], &[2.0; 2], (evaluations, 0.0), |x, gradient| {
                    count += 1;
                    rosenbrock(x, gradient)
                });
            assert!(value <= start && count <= evaluations.max(1));
        }
    }

    #[test]
    fn values_that_are_not_finite_end_nothing_but_the_step() {
        let wall = |x: &[f64], gradient: &mut [f64]| {
            gradient[0] = if x[0] > 0.3 { f64::NAN } else { 2.0 * (x[0] - 0.25) };
            if x[0] > 0.3 { f64::NAN } else { (x[0] - 0.25) * (x[0] - 0.25) }
        };
        let mut x = vec![-5.0];
        assert!(minimize(&mut x, &[-9.0], &[9.0], (100, 1e-12), wall) < 1e-6);
        let mut x = vec![1.0];
        assert!(minimize(&mut x, &[-9.0], &[9.0], (100, 1e-12), wall).is_nan());
    }
}
