//! A space of reals, integers and categories from TOML, with an objective that sometimes fails, evaluated
//! on threads: `cargo run --release --example mixed_space -p racecars`.

use racecars::{Outcome, Point, Space, Workers, minimize};

const SPACE: &str = r#"
[[coordinates]]
name = "rate"
type = "real"
low = 1e-5
high = 1e-1
scale = "log"

[[coordinates]]
name = "layers"
type = "integer"
low = 1
high = 8

[[coordinates]]
name = "activation"
type = "categorical"
choices = ["relu", "tanh", "gelu"]
"#;

/// A stand-in for training a network.
fn loss(point: Point<'_>) -> racecars::Result<Outcome> {
    let (rate, layers) = (point.real("rate")?, point.integer("layers")?);
    if rate > 0.05 && layers > 6 {
        return Ok(Outcome::failed("the training diverged"));
    }
    let activation = if point.text("activation")? == "gelu" { 0.0 } else { 0.1 };
    Ok(Outcome::from((rate.log10() + 3.0).powi(2) + (layers - 4).pow(2) as f64 * 0.05 + activation))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let space: Space = toml::from_str(SPACE)?;
    let solution = minimize(&space)
        .budget(300)
        .run_on(Workers::Asynchronous(4), |point| loss(point).unwrap_or_else(Outcome::failed))?;
    println!("{solution}");
    Ok(())
}
