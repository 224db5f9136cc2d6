//! Naive implementations of the test functions with the standard library's sines: the reference of the unit
//! tests and of `speed`.

use std::f64::consts::{E, PI};

pub(crate) fn ackley(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let square = x.iter().map(|x| (x - 0.2).powi(2)).sum::<f64>() / n;
    let cosine = x.iter().map(|x| (2.0 * PI * (x - 0.2)).cos()).sum::<f64>() / n;
    20.0 - 20.0 * (-0.2 * square.sqrt()).exp() + E - cosine.exp()
}

pub(crate) fn levy(x: &[f64]) -> f64 {
    let n = x.len();
    let w = |i: usize| 1.0 + (x[i] - 1.0) / 4.0;
    let middle = |i| (w(i) - 1.0).powi(2) * (1.0 + 10.0 * (PI * w(i) + 1.0).sin().powi(2));
    let last = (w(n - 1) - 1.0).powi(2) * (1.0 + (2.0 * PI * w(n - 1)).sin().powi(2));
    (PI * w(0)).sin().powi(2) + (0..n - 1).map(middle).sum::<f64>() + last
}

pub(crate) fn rastrigin(x: &[f64]) -> f64 {
    x.iter().map(|x| 10.0 + x * x - 10.0 * (2.0 * PI * x).cos()).sum()
}

pub(crate) fn sphere(x: &[f64]) -> f64 {
    x.iter().map(|x| (x - 0.2).powi(2)).sum()
}

pub(crate) fn rosenbrock(x: &[f64]) -> f64 {
    match x {
        [x] => (1.0 - x).powi(2),
        _ => {
            x.windows(2).map(|w| 100.0 * (w[1] - w[0] * w[0]).powi(2) + (1.0 - w[0]).powi(2)).sum()
        }
    }
}

pub(crate) fn griewank(x: &[f64]) -> f64 {
    let product: f64 = (1..).zip(x).map(|(i, x)| (x / f64::from(i).sqrt()).cos()).product();
    1.0 + x.iter().map(|x| x * x).sum::<f64>() / 4000.0 - product
}

pub(crate) fn schwefel(x: &[f64]) -> f64 {
    let term = |x: &f64| 50.0 * x * (50.0 * x).abs().sqrt().sin();
    418.982_887_272_433_7 * x.len() as f64 - x.iter().map(term).sum::<f64>()
}

pub(crate) fn ellipsoid(x: &[f64]) -> f64 {
    let gaps = x.len().max(2) as f64 - 1.0;
    (0..).zip(x).map(|(i, x)| 1e6f64.powf(f64::from(i) / gaps) * x * x).sum()
}
