//! The shortest tour through 52 places in Berlin, as a permutation (`berlin52` of TSPLIB, by M. Grötschel).
//!
//! `cargo run --release -p racecars --example tour` prints lengths and writes picture.svg; `-- --short` is what
//! the tests run.

use std::fmt::Write as _;

use racecars::{Algorithm, Space, minimize};

/// The shortest tour is known.
const SHORTEST: f64 = 7544.37;

#[rustfmt::skip]
const PLACES: [(f64, f64); 52] = [
    (565., 575.), (25., 185.), (345., 750.), (945., 685.), (845., 655.), (880., 660.), (25., 230.), (525., 1000.),
    (580., 1175.), (650., 1130.), (1605., 620.), (1220., 580.), (1465., 200.), (1530., 5.), (845., 680.), (725., 370.),
    (145., 665.), (415., 635.), (510., 875.), (560., 365.), (300., 465.), (520., 585.), (480., 415.), (835., 625.),
    (975., 580.), (1215., 245.), (1320., 315.), (1250., 400.), (660., 180.), (410., 250.), (420., 555.), (575., 665.),
    (1150., 1160.), (700., 580.), (685., 595.), (685., 610.), (770., 610.), (795., 645.), (720., 635.), (760., 650.),
    (475., 960.), (95., 260.), (875., 920.), (700., 500.), (555., 815.), (830., 485.), (1170., 65.), (830., 610.),
    (605., 625.), (595., 360.), (1340., 725.), (1740., 245.),
];

fn between(a: usize, b: usize) -> f64 {
    let ((x, y), (u, v)) = (PLACES[a], PLACES[b]);
    (x - u).hypot(y - v)
}

fn length(order: &[usize]) -> f64 {
    let next = order.iter().cycle().skip(1);
    order.iter().zip(next).map(|(&a, &b)| between(a, b)).sum()
}

/// Always to the nearest place that is left.
fn nearest_first() -> Vec<usize> {
    let (mut order, mut left) = (vec![0], (1..PLACES.len()).collect::<Vec<_>>());
    while let Some(next) = (0..left.len()).min_by(|&i, &k| {
        let here = order[order.len() - 1];
        between(here, left[i]).total_cmp(&between(here, left[k]))
    }) {
        order.push(left.remove(next));
    }
    order
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_short = std::env::args().any(|word| word == "--short");
    let budgets: &[u64] = if is_short { &[300] } else { &[1000, 10_000, 100_000] };
    let seeds = if is_short { 1 } else { 5 };

    let space = Space::builder().permutation("order", PLACES.len()).build()?;
    let run = |algorithm: Algorithm, budget, seed| -> racecars::Result<(f64, Vec<usize>)> {
        let solution =
            minimize(&space).algorithm(algorithm).budget(budget).seed(seed).run(
                |point| -> racecars::Result<f64> { Ok(length(&order(point.coordinates()))) },
            )?;
        let best = solution.point().map(|point| order(point.coordinates()));
        Ok((solution.value().unwrap_or(f64::INFINITY), best.unwrap_or_default()))
    };

    println!("shortest tour known           {SHORTEST:8.1}");
    println!("always to the nearest place   {:8.1}", length(&nearest_first()));
    let mut drawn = Vec::new();
    for &budget in budgets {
        for name in ["auto", "random"] {
            let mut found = Vec::new();
            for seed in 1..=seeds {
                found.push(run(name.parse()?, budget, seed)?);
            }
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (median, worst) = (found[found.len() / 2].0, found[found.len() - 1].0);
            println!(
                "{name:7} {budget:6} evaluations    {median:8.1}, median of {seeds} seeds (worst {worst:.1})"
            );
            if name == "auto" || budget == budgets[budgets.len() - 1] {
                let [first, ..] = found.as_slice() else { continue };
                drawn.push((format!("{name}, {budget}: {:.0}", first.0), first.1.clone()));
            }
        }
    }
    std::fs::write("picture.svg", picture(&drawn)?)?;
    Ok(())
}

/// Codes of a permutation are the items themselves.
fn order(codes: &[f64]) -> Vec<usize> {
    codes.iter().map(|&code| code as usize).collect()
}

fn picture(tours: &[(String, Vec<usize>)]) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let width = 440 * tours.len().min(2);
    let height = 330 * tours.len().div_ceil(2);
    writeln!(
        text,
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' font-family='sans-serif'>"
    )?;
    writeln!(text, "<rect width='100%' height='100%' fill='white'/>")?;
    for (i, (title, tour)) in tours.iter().enumerate() {
        let (left, top) = (440 * (i % 2), 330 * (i / 2));
        writeln!(
            text,
            "<g transform='translate({left} {top})'><text x='220' y='20' text-anchor='middle'>{title}</text>"
        )?;
        let place = |&i: &usize| {
            format!("{:.1},{:.1}", 12.0 + PLACES[i].0 * 0.235, 315.0 - PLACES[i].1 * 0.235)
        };
        let points: Vec<_> = tour.iter().map(place).collect();
        writeln!(
            text,
            "<polygon points='{}' fill='none' stroke='#1f77b4' stroke-width='1.5'/>",
            points.join(" ")
        )?;
        for point in points {
            let (x, y) = point.split_once(',').unwrap_or_default();
            writeln!(text, "<circle cx='{x}' cy='{y}' r='3'/>")?;
        }
        writeln!(text, "</g>")?;
    }
    writeln!(text, "</svg>")?;
    Ok(text)
}
