//! The loops of `racecars-lm`'s models. They are a crate of their own so that they alone are compiled with all
//! optimizations, which takes most of the time of a build.

mod kernels;
mod linear;

pub use kernels::{
    Activation, AttentionMask, Heads, LayerCache, PairOrder, RotaryAngles, SequencePiece, add,
    attend, dots, gated, gelu, layer_norm, rms_norm, rotate,
};
pub use linear::Linear;

/// Makes vectors of numbers between -1 and 1 (a linear congruential generator with Knuth's constants).
#[cfg(test)]
fn random_numbers(seed: u64) -> impl FnMut(usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    move |count| (0..count).map(|_| next()).collect()
}
