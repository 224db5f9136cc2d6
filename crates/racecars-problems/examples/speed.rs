//! Prints the time of one evaluation of each test function, next to a naive implementation: `cargo run --release -p racecars-problems --example speed`.

mod naive;

use racecars_problems::functions;
use racecars_problems::rotation::Rotation;
use std::hint::black_box;
use std::time::{Duration, Instant};

type Function = fn(&[f64]) -> f64;

const PAIRS: [(&str, Function, Function); 8] = [
    ("ackley", functions::ackley, naive::ackley),
    ("levy", functions::levy, naive::levy),
    ("rastrigin", functions::rastrigin, naive::rastrigin),
    ("sphere", functions::sphere, naive::sphere),
    ("rosenbrock", functions::rosenbrock, naive::rosenbrock),
    ("griewank", functions::griewank, naive::griewank),
    ("schwefel", functions::schwefel, naive::schwefel),
    ("ellipsoid", functions::ellipsoid, naive::ellipsoid),
];

fn main() {
    println!("{:<12}{:>6}{:>12}{:>12}{:>8}", "function", "n", "ours, ns", "plain, ns", "ratio");
    for n in [50, 500] {
        let x = sample_point(n);
        for (name, ours, plain) in PAIRS {
            let ours = nanoseconds(|| ours(black_box(&x)));
            let plain = nanoseconds(|| plain(black_box(&x)));
            println!("{name:<12}{n:>6}{ours:>12.1}{plain:>12.1}{:>8.1}", plain / ours);
        }
    }
    for n in [50, 500, 1000] {
        let start = Instant::now();
        let rotation = Rotation::random(n, 1);
        let construction = start.elapsed();
        let (x, mut out) = (sample_point(n), vec![0.0; n]);
        let application = nanoseconds(|| {
            rotation.apply(black_box(&x), &mut out);
            out[0]
        });
        println!("rotation, n = {n}: made in {construction:.1?}, applied in {application:.0} ns");
    }
}

/// An arbitrary point in [-10, 10]^n.
fn sample_point(n: usize) -> Vec<f64> {
    (1..=n).map(|i| 20.0 * (i as f64 * 0.618_033_988_75).fract() - 10.0).collect()
}

/// The time of one call: the minimum of several rounds.
fn nanoseconds(mut call: impl FnMut() -> f64) -> f64 {
    let round = Duration::from_millis(20);
    let mut least = f64::INFINITY;
    for _ in 0..7 {
        let (start, mut calls) = (Instant::now(), 0u32);
        while start.elapsed() < round {
            for _ in 0..16 {
                black_box(call());
            }
            calls += 16;
        }
        least = least.min(start.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    least
}
