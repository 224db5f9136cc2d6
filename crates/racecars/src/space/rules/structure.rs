//! Arrays whose coordinates belong together: orders, selections, shares of a whole.

use super::super::Value;
use crate::random::Random;

/// What the coordinates of an array are together.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Structure {
    /// An order of items: coordinate i is the item at position i.
    Permutation,
    /// A selection of items: coordinate i says whether item i is selected.
    Subset {
        /// The items.
        items: Vec<Value>,
        /// The least number of items.
        least: usize,
        /// The greatest number of items.
        most: usize,
    },
    /// Numbers from 0 that add up to 1.
    Simplex,
}

/// How far the sum of a simplex may be from 1.
const SUM_TOLERANCE: f64 = 1e-9;

impl Structure {
    /// The name of this kind of structure in the file format.
    pub fn kind(&self) -> &'static str {
        match self {
            Structure::Permutation => "permutation",
            Structure::Subset { .. } => "subset",
            Structure::Simplex => "simplex",
        }
    }

    /// The error says why an array of this length cannot have this structure.
    pub(in crate::space) fn check(&self, count: usize) -> Result<(), String> {
        match self {
            Structure::Permutation | Structure::Simplex if count < 2 => {
                Err(format!("{count} coordinates; at least 2 are needed"))
            }
            Structure::Subset { least, most, .. } if least > most || *most > count => {
                Err(format!("{least} to {most} of {count} items cannot be selected"))
            }
            Structure::Subset { items, .. } => {
                let mut seen = std::collections::HashSet::with_capacity(items.len());
                match items.iter().find(|item| !seen.insert(item.identity())) {
                    None => Ok(()),
                    Some(item) => Err(format!("{item} is repeated among the items")),
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether these codes belong together.
    pub(super) fn admits(&self, codes: &[f64]) -> bool {
        match self {
            Structure::Permutation => {
                let mut is_used = vec![false; codes.len()];
                codes.iter().all(|&code| !std::mem::replace(&mut is_used[code as usize], true))
            }
            Structure::Subset { least, most, .. } => (*least..=*most).contains(&selected(codes)),
            Structure::Simplex => (codes.iter().sum::<f64>() - 1.0).abs() <= SUM_TOLERANCE,
        }
    }

    /// Changes codes as little as needed so that they belong together.
    pub(super) fn mend(&self, codes: &mut [f64], random: &mut Random) {
        match self {
            Structure::Permutation => {
                let mut is_used = vec![false; codes.len()];
                let mut repeated = Vec::new();
                for (i, &code) in codes.iter().enumerate() {
                    if std::mem::replace(&mut is_used[code as usize], true) {
                        repeated.push(i);
                    }
                }
                let unused = is_used.iter().enumerate().filter(|(_, is_used)| !**is_used);
                let mut missing: Vec<usize> = unused.map(|(item, _)| item).collect();
                random.shuffle(&mut missing);
                repeated.iter().zip(missing).for_each(|(&i, item)| codes[i] = item as f64);
            }
            Structure::Subset { least, most, .. } => {
                let count = selected(codes);
                let wanted = count.clamp(*least, *most);
                let is_too_many = count > wanted;
                let old = if is_too_many { 1.0 } else { 0.0 };
                let mut places: Vec<usize> =
                    (0..codes.len()).filter(|&i| codes[i] == old).collect();
                random.shuffle(&mut places);
                places.iter().take(count.abs_diff(wanted)).for_each(|&i| codes[i] = 1.0 - old);
            }
            Structure::Simplex => {
                let sum: f64 = codes.iter().sum();
                let count = codes.len() as f64;
                let is_positive = sum > 0.0;
                codes
                    .iter_mut()
                    .for_each(|x| *x = if is_positive { *x / sum } else { 1.0 / count });
            }
        }
    }

    /// Fills codes with a draw: every order and every selection of the same size is equally likely, and
    /// shares are uniform on the simplex.
    pub(super) fn draw(&self, codes: &mut [f64], random: &mut Random) {
        match self {
            Structure::Permutation => {
                codes.iter_mut().enumerate().for_each(|(i, code)| *code = i as f64);
                random.shuffle(codes);
            }
            Structure::Subset { least, most, .. } => {
                let count = least + random.below((most - least) as u64 + 1) as usize;
                codes.iter_mut().enumerate().for_each(|(i, x)| *x = f64::from(u8::from(i < count)));
                random.shuffle(codes);
            }
            Structure::Simplex => {
                // Normalized exponential numbers are uniform.
                codes.iter_mut().for_each(|x| *x = -(1.0 - random.unit()).ln());
                self.mend(codes, random);
            }
        }
    }

    /// A move to a neighbour. Orders: two items are swapped, up to three are inserted elsewhere, or a part is
    /// reversed. Selections: an item is exchanged, added or left out. Shares: a part of one is transferred,
    /// of decreasing size.
    pub(super) fn step(&self, size: StepSize, codes: &mut [f64], random: &mut Random) {
        let count = codes.len() as u64;
        if count < 2 {
            return;
        }
        let first = random.below(count) as usize;
        let other = random.below(count - 1) as usize;
        let second = if other >= first { other + 1 } else { other };
        let (low, high) = (first.min(second), first.max(second));
        match (self, size) {
            (Structure::Permutation, StepSize::Large) => codes.swap(first, second),
            (Structure::Permutation, StepSize::Middle) => {
                let length = 1 + random.below(3.min((high - low) as u64)) as usize;
                match first < second {
                    true => codes[low..=high].rotate_left(length),
                    false => codes[low..=high].rotate_right(length),
                }
            }
            (Structure::Permutation, StepSize::Small) => codes[low..=high].reverse(),
            (Structure::Subset { least, most, .. }, _) => {
                let size = selected(codes);
                let resized = if codes[first] == 0.0 { size + 1 } else { size.wrapping_sub(1) };
                if (*least..=*most).contains(&resized) && random.below(2) == 0 {
                    codes[first] = 1.0 - codes[first];
                    return;
                }
                // A random item of each kind trades places.
                let mut place = |is_in: f64| {
                    let kind: Vec<usize> =
                        (0..codes.len()).filter(|&i| codes[i] == is_in).collect();
                    (!kind.is_empty()).then(|| kind[random.below(kind.len() as u64) as usize])
                };
                if let (Some(one), Some(zero)) = (place(1.0), place(0.0)) {
                    codes.swap(one, zero);
                }
            }
            (Structure::Simplex, size) => {
                let part = codes[first] * random.unit() * size.share();
                codes[first] -= part;
                codes[second] = (codes[second] + part).min(1.0);
                self.mend(codes, random);
            }
        }
    }
}

/// The size of a step: how far numbers move, and which move a structure makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum StepSize {
    Large,
    Middle,
    Small,
}

impl StepSize {
    pub(crate) const ALL: [StepSize; 3] = [StepSize::Large, StepSize::Middle, StepSize::Small];

    /// The part of an axis or of a share that a step stays within.
    pub(in crate::space) fn share(self) -> f64 {
        match self {
            StepSize::Large => 1.0,
            StepSize::Middle => 0.1,
            StepSize::Small => 0.01,
        }
    }

    pub(super) fn draw(random: &mut Random) -> StepSize {
        StepSize::ALL[random.index(StepSize::ALL.len())]
    }
}

fn selected(codes: &[f64]) -> usize {
    codes.iter().filter(|&&code| code != 0.0).count()
}
