//! Minimizes a multimodal function of 500 coordinates:
//! `cargo run --release --example many_dimensions -p racecars`.

use racecars::{Flow, Space, minimize};

fn main() -> racecars::Result<()> {
    let space = Space::cube(500, -10.0, 10.0)?;
    let solution = minimize(&space)
        .budget(50_000)
        .seed(1)
        .observe(|seen| {
            if seen.evaluations % 10_000 == 0 {
                println!(
                    "{:>6} evaluations, best {:.3}",
                    seen.evaluations,
                    seen.best.unwrap_or(f64::NAN)
                );
            }
            Flow::Continue
        })
        .run(|p| {
            p.coordinates().iter().map(|x| x * x + 5.0 * (3.0 * x).sin().powi(2)).sum::<f64>()
        })?;
    println!("{solution}");
    Ok(())
}
