//! Descriptions of the problems and prefixes of [`Problem::named`], for lists and help.
//!
//! [`Problem::named`]: crate::Problem::named

/// A problem or a prefix with its description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Whether it takes prefixes; always false for a prefix.
    pub takes_prefixes: bool,
}

const fn function(name: &'static str, about: &'static str) -> Listed {
    Listed { name, about, takes_prefixes: true }
}

const fn fixed(name: &'static str, about: &'static str) -> Listed {
    Listed { name, about, takes_prefixes: false }
}

/// Every problem, without prefixes.
pub const PROBLEMS: [Listed; 12] = [
    function("ackley", "many shallow minima around one deep funnel; optimum at 0.2"),
    function("levy", "wavy valleys in every coordinate; optimum at 1"),
    function("rastrigin", "a bowl with a minimum near every whole number; optimum at 0"),
    function("sphere", "a bowl; optimum at 0.2"),
    function("rosenbrock", "a curved valley that couples neighbouring coordinates; optimum at 1"),
    function("griewank", "a bowl with ripples that couple all coordinates; optimum at 0"),
    function("schwefel", "deep minima far from each other; optimum at 8.42, near a corner"),
    function("ellipsoid", "a bowl a million times steeper one way than another; optimum at 0"),
    fixed("mixed-ackley", "Ackley on n/2 reals plus weighted sizes of n/2 integers (the paper's)"),
    fixed("shifted-mixed-ackley", "the same with its optimum at a random point around the centre"),
    fixed("integer-sphere", "a bowl on n integers; optimum at 3"),
    fixed("mixed-categorical", "a bowl on n/2 reals plus the number of n/2 wrong categories"),
];

/// The prefixes of a function's name, all optional, in this order; at most one of the first two, and at
/// most one of the last two.
pub const PREFIXES: [Listed; 5] = [
    fixed(
        "discontinuous-",
        "the paper's 5n balls of radius 0.5, raised by up to 1; hardly ever met",
    ),
    fixed("stepped-", "as many jumps that are met: slabs of single coordinates"),
    fixed("shifted-", "the optimum at a random point of [-5, 5]^n"),
    fixed("rotated-", "turned about the optimum by a random orthogonal matrix"),
    fixed("turned-", "the same by turns of pairs of coordinates, cheaper in many dimensions"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;

    #[test]
    fn the_list_is_complete_and_true() {
        assert!(Problem::names().eq(PROBLEMS.iter().map(|listed| listed.name)));
        for problem in PROBLEMS {
            assert!(Problem::named(problem.name, 4, 0).is_ok());
            for prefix in PREFIXES {
                let name = format!("{}{}", prefix.name, problem.name);
                let is_known =
                    problem.takes_prefixes || Problem::names().any(|known| known == name);
                assert_eq!(Problem::named(&name, 4, 0).is_ok(), is_known, "{name}");
            }
        }
    }
}
