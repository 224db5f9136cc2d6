//! The functions of the suite, and its two halves.

/// The largest dimension at which a rotation is a dense matrix. Above it, n² operations per evaluation
/// would take most of the suite's time (23 hours of two cores at n = 1000), so the problems are `turned-`
/// instead: 3/2 n log2 n rotations of pairs of coordinates.
const MAX_MATRIX_DIM: usize = 200;

/// Half of the functions: settings are chosen on one half, and results reported on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// The half on which settings are chosen.
    Choose,
    /// The half on which results are reported.
    Report,
}

/// A function of the suite. Its optimum is 0; the seed determines the minimizer and the rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuiteFunction {
    /// Its name in the tables.
    pub name: &'static str,
    /// The half it belongs to.
    pub half: Half,
}

impl SuiteFunction {
    /// All functions. Each continuous one appears rotated in one half and not rotated in the other, so
    /// that both halves have separable and rotated, unimodal and multimodal functions. A rotated sphere
    /// is the same function, so Sphere is in both halves.
    ///
    /// Discontinuous Ackley is the one with steps: in 20 dimensions no run ever enters the paper's balls,
    /// so that version would be Ackley a second time.
    pub const ALL: [SuiteFunction; 17] = [
        choose("ackley"),
        report("rotated-ackley"),
        report("levy"),
        choose("rotated-levy"),
        report("rastrigin"),
        choose("rotated-rastrigin"),
        choose("sphere"),
        report("rotated-sphere"),
        choose("ellipsoid"),
        report("rotated-ellipsoid"),
        report("rosenbrock"),
        choose("rotated-rosenbrock"),
        choose("griewank"),
        report("rotated-griewank"),
        report("stepped-ackley"),
        choose("stepped-rotated-ackley"),
        report("mixed-ackley"),
    ];

    /// The functions of a half, or all functions.
    pub fn of(half: Option<Half>) -> Vec<SuiteFunction> {
        let is_in = |function: &SuiteFunction| half.is_none_or(|half| function.half == half);
        SuiteFunction::ALL.into_iter().filter(is_in).collect()
    }

    /// The function of this name.
    pub fn named(name: &str) -> Option<SuiteFunction> {
        SuiteFunction::ALL.into_iter().find(|function| function.name == name)
    }

    /// The name of its problem in this dimension.
    pub(super) fn problem(self, dim: usize) -> String {
        let (steps, name) = match self.name.strip_prefix("stepped-") {
            Some(name) => ("stepped-", name),
            None => ("", self.name),
        };
        let (turn, name) = match name.strip_prefix("rotated-") {
            Some(name) if dim <= MAX_MATRIX_DIM => ("rotated-", name),
            Some(name) => ("turned-", name),
            None => ("", name),
        };
        format!("{steps}shifted-{turn}{name}")
    }
}

const fn choose(name: &'static str) -> SuiteFunction {
    SuiteFunction { name, half: Half::Choose }
}

const fn report(name: &'static str) -> SuiteFunction {
    SuiteFunction { name, half: Half::Report }
}

#[cfg(test)]
mod tests {
    use super::*;
    use racecars_problems::Problem;

    #[test]
    fn every_function_is_a_problem_with_optimum_0_that_is_rotated_if_it_says_so() {
        for function in SuiteFunction::ALL {
            for dim in [4, MAX_MATRIX_DIM + 1] {
                let problem = Problem::named(&function.problem(dim), dim, 1).unwrap();
                assert_eq!(problem.optimum(), 0.0);
                let is_rotated = problem.transformation().is_some_and(|t| t.rotation.is_some());
                assert_eq!(is_rotated, function.name.contains("rotated-"), "{}", function.name);
                let is_stepped = problem.transformation().is_some_and(|t| t.has_jumps);
                assert_eq!(is_stepped, function.name.starts_with("stepped-"));
            }
        }
    }

    #[test]
    fn the_halves_make_the_whole_and_each_function_is_rotated_in_one_of_them() {
        let (choose, report) =
            (SuiteFunction::of(Some(Half::Choose)), SuiteFunction::of(Some(Half::Report)));
        assert_eq!((choose.len(), report.len()), (8, 9));
        assert_eq!(SuiteFunction::of(None).len(), 17);
        for function in
            SuiteFunction::ALL.iter().filter(|function| function.name.contains("rotated-"))
        {
            let plain = SuiteFunction::named(&function.name.replace("rotated-", "")).unwrap();
            assert_ne!(plain.half, function.half, "{}", function.name);
        }
        for half in [choose, report] {
            let is_rotated = |function: &&SuiteFunction| function.name.contains("rotated-");
            assert_eq!(half.iter().filter(is_rotated).count(), 4);
        }
    }
}
