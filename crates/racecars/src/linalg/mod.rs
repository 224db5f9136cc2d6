//! The dense linear algebra that the optimizers need. The files by role:
//!
//! - `product`: inner products, single and in tiles, which everything else uses
//! - `triangular`: lower triangular matrices, their products and solves
//! - `cholesky`: the factor of a symmetric positive definite matrix, its extension by rows, its extreme
//!   singular values, and the inverse of the matrix
//!
//! Matrices are stored by rows, so every product is one of contiguous rows: A B^T, never A B. Loops
//! are plain Rust with a fixed number of partial sums, which the compiler vectorizes for the baseline
//! instruction set. The order of every sum depends on the sizes only, so results are equal bit for bit
//! on all machines. No loop iterates until convergence: a NaN results in an error or a NaN, never in an
//! endless loop.

pub(crate) mod cholesky;
pub(crate) mod product;
pub(crate) mod triangular;
