//! A custom ask/tell loop that saves its state to a file. Run it several times to resume:
//! `cargo run --release --example ask_tell -p racecars`.

use racecars::{Algorithm, Outcome, Space, load};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::temp_dir().join("racecars-ask-tell.state");
    let mut optimizer = match std::fs::read(&file) {
        Ok(bytes) => load(&bytes)?,
        Err(_) => {
            let space =
                Space::builder().reals("x", 20, -5.0, 5.0).integers("k", 5, 0, 100).build()?;
            Algorithm::race_cars().optimizer(&space, Some(2000), 1)?
        }
    };
    for _ in 0..500 {
        let Some(candidate) = optimizer.ask() else { break };
        let point = optimizer.space().view(candidate.point());
        let value = point.reals("x")?.iter().map(|x| x.abs()).sum::<f64>()
            + point.reals("k")?.iter().map(|k| (k - 42.0).abs()).sum::<f64>();
        optimizer.tell(candidate, Outcome::from(value))?;
    }
    if let Some(best) = optimizer.best() {
        let point = optimizer.space().view(best.point);
        println!("{} told, best {:?} at {point}", optimizer.told(), best.rank.value());
    }
    std::fs::write(&file, optimizer.save())?;
    println!("saved to {}", file.display());
    Ok(())
}
