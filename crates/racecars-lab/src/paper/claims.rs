//! Whether the paper's claims hold in these runs, with the numbers that decide it.

use super::contest::{ContestPanel, OURS, display_name};
use super::experiment::Experiment;
use racecars_figures::number;
use serde::Serialize;

/// A claim, whether it holds in these runs, and the numbers that decide it.
#[derive(Debug, Clone, Serialize)]
pub struct ClaimVerdict {
    /// The claim.
    pub claim: String,
    /// Whether it holds.
    pub judgement: Judgement,
    /// The numbers that decide it.
    pub detail: String,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// In all cases.
    Holds,
    /// In some cases, but not in all.
    HoldsInPart,
    /// In no case.
    DoesNotHold,
    /// There were no cases to decide it.
    Untested,
}

impl Judgement {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Judgement::Holds => "holds",
            Judgement::HoldsInPart => "holds in part",
            Judgement::DoesNotHold => "does not hold",
            Judgement::Untested => "not tested",
        }
    }

    /// The judgement of a claim that holds in `holding` of `all` cases.
    pub(super) fn of(holding: usize, all: usize) -> Judgement {
        match holding {
            _ if all == 0 => Judgement::Untested,
            0 => Judgement::DoesNotHold,
            _ if holding == all => Judgement::Holds,
            _ => Judgement::HoldsInPart,
        }
    }
}

pub(super) fn verdict(claim: &str, judgement: Judgement, detail: String) -> ClaimVerdict {
    ClaimVerdict { claim: claim.to_string(), judgement, detail }
}

/// The verdicts on an experiment that compares algorithms.
pub(super) fn of_contest(experiment: Experiment, panels: &[ContestPanel]) -> Vec<ClaimVerdict> {
    let of_kind = |prefix: &str| -> Vec<&ContestPanel> {
        panels.iter().filter(|panel| panel.problem.starts_with(prefix)).collect()
    };
    let all: Vec<&ContestPanel> = panels.iter().collect();
    match experiment {
        Experiment::Discontinuous => {
            let (balls, steps) = (of_kind("discontinuous-"), of_kind("stepped-"));
            let plain: Vec<&ContestPanel> =
                all.iter().copied().filter(|p| !p.problem.contains('-')).collect();
            let mut verdicts = vec![balls_are_met(&balls, &plain)];
            verdicts.extend([accelerates(&steps), leads(&steps)]);
            verdicts.extend(of_steps(&steps, &plain));
            verdicts
        }
        Experiment::Mixed => vec![accelerates(&all)],
        _ => {
            let mut verdicts = vec![leads(&all), accelerates(&all)];
            verdicts.extend(cma_leads_on_sphere(&all));
            verdicts
        }
    }
}

/// RACE-CARS has the best mean, except against CMA-ES on Sphere.
fn leads(panels: &[&ContestPanel]) -> ClaimVerdict {
    let (mut ahead, mut behind) = (0, Vec::new());
    for panel in panels {
        let Some(ours) = panel.entry(OURS) else { continue };
        for rival in panel.algorithms.iter().filter(|entry| entry.algorithm != OURS) {
            if rival.algorithm == "cma-es" && panel.problem.ends_with("sphere") {
                continue;
            }
            if ours.summary.mean < rival.summary.mean {
                ahead += 1;
            } else {
                behind.push(format!(
                    "{}: {} {} against {}",
                    panel.title(),
                    display_name(&rival.algorithm),
                    number(rival.summary.mean),
                    number(ours.summary.mean)
                ));
            }
        }
    }
    let all = ahead + behind.len();
    let mut detail = format!("RACE-CARS has the better mean in {ahead} of {all} comparisons");
    if !behind.is_empty() {
        detail += &format!("; not on {}", behind.join("; "));
    }
    let claim = "RACE-CARS reaches the best mean value (but for CMA-ES on Sphere)";
    verdict(claim, Judgement::of(ahead, all), detail + ".")
}

/// RACE-CARS has a better mean than SRACOS, and reaches the final mean of SRACOS earlier.
fn accelerates(panels: &[&ContestPanel]) -> ClaimVerdict {
    let (mut ahead, mut all, mut details) = (0, 0, Vec::new());
    for panel in panels {
        let (Some(ours), Some(sracos)) = (panel.entry(OURS), panel.entry("sracos")) else {
            continue;
        };
        all += 1;
        ahead += usize::from(ours.summary.mean < sracos.summary.mean);
        let reached = match sracos.reached_after {
            Some(after) => {
                format!("there after {:.0} % of the budget", 100.0 * share(after, panel))
            }
            None => "never there".to_string(),
        };
        details.push(format!(
            "{}: SRACOS ends at {}, RACE-CARS at {} ({reached})",
            panel.title(),
            number(sracos.summary.mean),
            number(ours.summary.mean)
        ));
    }
    verdict("RACE-CARS accelerates SRACOS", Judgement::of(ahead, all), details.join("; ") + ".")
}

fn share(evaluations: u64, panel: &ContestPanel) -> f64 {
    evaluations as f64 / panel.budget as f64
}

/// CMA-ES has an edge on Sphere; `None` if it did not run.
fn cma_leads_on_sphere(panels: &[&ContestPanel]) -> Option<ClaimVerdict> {
    let sphere = panels.iter().find(|panel| panel.problem.ends_with("sphere"))?;
    let (cma, ours) = (sphere.entry("cma-es")?, sphere.entry(OURS)?);
    let is_ahead = cma.summary.mean < ours.summary.mean;
    let detail = format!(
        "On Sphere CMA-ES ends at {}, RACE-CARS at {}.",
        number(cma.summary.mean),
        number(ours.summary.mean)
    );
    let claim = "CMA-ES has an edge on Sphere";
    Some(verdict(claim, Judgement::of(usize::from(is_ahead), 1), detail))
}

/// Whether any evaluation was inside one of the paper's balls.
fn balls_are_met(balls: &[&ContestPanel], plain: &[&ContestPanel]) -> ClaimVerdict {
    let (mut evaluations, mut inside, mut runs, mut equal) = (0u64, 0.0, 0, 0);
    for (panel, plain) in balls.iter().zip(plain) {
        for entry in &panel.algorithms {
            evaluations += entry.evaluations;
            inside += entry.perturbed * entry.evaluations as f64;
            let Some(same) = plain.entry(&entry.algorithm) else { continue };
            runs += entry.trials.len();
            let pairs = entry.trials.iter().zip(&same.trials);
            equal += pairs.filter(|(trial, plain)| trial.bests == plain.bests).count();
        }
    }
    let detail = format!(
        "{inside:.0} of {evaluations} evaluations were inside any ball, and {equal} of {runs} runs are \
         equal, value by value, to the runs of the same seeds on the functions without balls: the \
         balls' measure is nil. The printed experiment shows nothing about jumps; the stepped \
         functions, below, do."
    );
    let judgement = Judgement::of(usize::from(inside > 0.0), 1);
    verdict("The printed perturbation tests discontinuity", judgement, detail)
}

/// Whether steps make the results of other algorithms worse, but not those of RACE-CARS and SRACOS.
fn of_steps(steps: &[&ContestPanel], plain: &[&ContestPanel]) -> [ClaimVerdict; 2] {
    // The number of cases, the number of those that are worse with steps, and the numbers behind them.
    let mut family = (0, 0, Vec::new());
    let mut others = (0, 0, Vec::new());
    for (stepped, plain) in steps.iter().zip(plain) {
        for entry in &stepped.algorithms {
            let Some(without) = plain.entry(&entry.algorithm) else { continue };
            let (with, without) = (&entry.summary, &without.summary);
            let count = entry.finals.len() as f64;
            let error = ((with.std.powi(2) + without.std.powi(2)) / count).sqrt();
            let is_worse = with.mean - without.mean > 2.0 * error;
            let is_family = entry.algorithm == OURS || entry.algorithm == "sracos";
            let side = if is_family { &mut family } else { &mut others };
            side.0 += 1;
            side.1 += usize::from(is_worse);
            if is_worse {
                side.2.push(format!(
                    "{} on {}: {} to {}",
                    display_name(&entry.algorithm),
                    plain.title(),
                    number(without.mean),
                    number(with.mean)
                ));
            }
        }
    }
    let detail = |side: &(usize, usize, Vec<String>)| {
        let list =
            if side.2.is_empty() { String::new() } else { format!(": {}", side.2.join("; ")) };
        let (all, worse, _) = side;
        format!(
            "Worse with steps than without, by more than two standard errors, in {worse} of {all} pairs \
             of algorithm and function{list}."
        )
    };
    [
        verdict(
            "SRACOS and RACE-CARS are almost impervious to jumps",
            Judgement::of(family.0 - family.1, family.0),
            detail(&family),
        ),
        verdict(
            "ZO-Adam, DE and CMA-ES suffer from jumps",
            Judgement::of(others.1, others.0),
            detail(&others),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::Judgement;

    #[test]
    fn a_claim_holds_everywhere_somewhere_or_nowhere() {
        let judged =
            [(3, 3), (1, 3), (0, 3), (0, 0)].map(|(holding, all)| Judgement::of(holding, all));
        let right =
            [Judgement::Holds, Judgement::HoldsInPart, Judgement::DoesNotHold, Judgement::Untested];
        assert_eq!(judged, right);
    }
}
