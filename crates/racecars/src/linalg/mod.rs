//! Dense linear algebra, as much of it as the optimizers use. The files by role:
//!
//! - `product`: inner products, alone and in tiles, on which everything else is built
//! - `triangular`: lower triangular matrices, their products and solves
//! - `cholesky`: the factor of a symmetric positive definite matrix, and its extreme singular values
//!
//! Matrices are stored by rows, so every product is one of contiguous rows: A B^T, never A B. Loops
//! are plain Rust with a fixed number of partial sums, which the compiler turns into the vectors
//! that every machine has. The order of every sum follows from the sizes alone, so results are the
//! same to the bit on every machine, whatever instructions it has. No loop runs until something
//! converges: a NaN is an error or a NaN, and never a hang.

pub(crate) mod cholesky;
pub(crate) mod product;
pub(crate) mod triangular;
