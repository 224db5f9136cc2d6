//! The experiments: their names, what they are, and what the paper says about their results.

/// An experiment of the paper, or one of ours in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Experiment {
    /// Four functions at n = 50.
    FigN50,
    /// Four functions at n = 500.
    FigN500,
    /// Ours: the functions at n = 50 with the optimum away from the centre.
    Shifted,
    /// Functions with jumps: the paper's, which no run ever meets, and ours, which runs do meet.
    Discontinuous,
    /// Half of the coordinates integer.
    Mixed,
    /// Ackley by shrinking frequency and dimension.
    Table1,
    /// Ackley by shrinking factor and dimension.
    AblationDimension,
    /// Ackley by shrinking factor and size of the domain.
    AblationRadius,
}

impl Experiment {
    /// All of them, in the order of the report.
    pub const ALL: [Experiment; 8] = [
        Experiment::FigN50,
        Experiment::FigN500,
        Experiment::Shifted,
        Experiment::Discontinuous,
        Experiment::Mixed,
        Experiment::Table1,
        Experiment::AblationDimension,
        Experiment::AblationRadius,
    ];

    /// The name, as the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::FigN50 => "fig-n50",
            Experiment::FigN500 => "fig-n500",
            Experiment::Shifted => "shifted",
            Experiment::Discontinuous => "discontinuous",
            Experiment::Mixed => "mixed",
            Experiment::Table1 => "table1",
            Experiment::AblationDimension => "ablation-dimension",
            Experiment::AblationRadius => "ablation-radius",
        }
    }

    /// The experiment of this name.
    pub fn named(name: &str) -> Option<Experiment> {
        Experiment::ALL.into_iter().find(|experiment| experiment.name() == name)
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Experiment::FigN50 => "Synthetic functions, n = 50",
            Experiment::FigN500 => "Synthetic functions in many dimensions (n = 500 in the paper)",
            Experiment::Shifted => "Synthetic functions with the optimum shifted, n = 50",
            Experiment::Discontinuous => "Discontinuous functions, n = 50",
            Experiment::Mixed => "Mixed-integer problems",
            Experiment::Table1 => "Table 1: shrinking frequency and dimension",
            Experiment::AblationDimension => "Ablation: shrinking factor and dimension",
            Experiment::AblationRadius => "Ablation: shrinking factor and radius of the domain",
        }
    }

    /// What the paper says, in our words. Part of the page.
    pub(super) fn says(self) -> &'static str {
        match self {
            Experiment::FigN50 | Experiment::FigN500 => {
                "RACE-CARS is best in both speed of convergence and final value on Ackley, Levy, \
                 Rastrigin and Sphere, but for a slight edge of CMA-ES on Sphere; it needs only a \
                 fraction of the budget."
            }
            Experiment::Shifted => {
                "Nothing: this experiment is ours. All four optima of the paper lie at or near the \
                 centre of the domain, which flatters what starts or stays there. Here each trial \
                 has its optimum at a random point of [-5, 5]^n; everything else is as at n = 50."
            }
            Experiment::Discontinuous => {
                "With 5n random balls of radius 0.5 and heights up to 1 added to the functions, \
                 RACE-CARS still accelerates SRACOS and is best of all; the two are almost \
                 impervious to the jumps, from which ZO-Adam, DE and CMA-ES suffer."
            }
            Experiment::Mixed => {
                "On Ackley of n1 reals plus L'|y| of n2 integers, RACE-CARS keeps its acceleration \
                 of SRACOS."
            }
            Experiment::Table1 => {
                "On Ackley with gamma = 0.95 and T = 30n, the best frequency rho is in inverse \
                 proportion to n, so that n rho should be kept constant; 510 means and standard \
                 deviations are printed."
            }
            Experiment::AblationDimension => {
                "On Ackley over [-r, r]^n, the best shrinking factor gamma^(n rho) is insensitive to \
                 the dimension."
            }
            Experiment::AblationRadius => {
                "On Ackley over [-r, r]^n, the best shrinking factor gamma^(n rho) decreases as the \
                 radius r increases."
            }
        }
    }
}
