//! The operations of a transformer between its matrix products, on packed rows of `f32`. The loops are written
//! so that the compiler vectorizes them, and compiled for every kind of vector instruction (`pulp`). For
//! that they must be inlined where they are dispatched, which closures are not always: hence the structs.

use pulp::{Arch, NullaryFnOnce};
use rayon::prelude::*;

/// Root mean square norm of each row of `width` numbers, times `weight`.
pub fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    Arch::new().dispatch(RmsNormKernel { x, weight, epsilon, out: &mut out });
    out
}

struct RmsNormKernel<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    epsilon: f32,
    out: &'a mut [f32],
}

impl NullaryFnOnce for RmsNormKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let width = self.weight.len();
        for (row, out) in self.x.chunks_exact(width).zip(self.out.chunks_exact_mut(width)) {
            let scale = 1.0 / (dot(row, row) / width as f32 + self.epsilon).sqrt();
            for ((out, x), weight) in out.iter_mut().zip(row).zip(self.weight) {
                *out = x * scale * weight;
            }
        }
    }
}

/// Each row minus its mean, divided by its standard deviation, times `weight`, plus `bias`.
pub fn layer_norm(x: &[f32], weight: &[f32], bias: &[f32], epsilon: f32) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    Arch::new().dispatch(LayerNormKernel { x, weight, bias, epsilon, out: &mut out });
    out
}

struct LayerNormKernel<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    bias: &'a [f32],
    epsilon: f32,
    out: &'a mut [f32],
}

impl NullaryFnOnce for LayerNormKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let width = self.weight.len();
        for (row, out) in self.x.chunks_exact(width).zip(self.out.chunks_exact_mut(width)) {
            let mean = row.iter().sum::<f32>() / width as f32;
            for (out, x) in out.iter_mut().zip(row) {
                *out = x - mean;
            }
            let scale = 1.0 / (dot(out, out) / width as f32 + self.epsilon).sqrt();
            for ((out, weight), bias) in out.iter_mut().zip(self.weight).zip(self.bias) {
                *out = (*out * scale).mul_add(*weight, *bias);
            }
        }
    }
}

/// x times the standard normal distribution function at x.
pub fn gelu(x: &[f32]) -> Vec<f32> {
    const CHUNK: usize = 1 << 12;
    let mut out = vec![0.0; x.len()];
    let arch = Arch::new();
    (x.par_chunks(CHUNK).zip(out.par_chunks_mut(CHUNK)))
        .for_each(|(x, out)| arch.dispatch(GeluKernel { x, out }));
    out
}

struct GeluKernel<'a> {
    x: &'a [f32],
    out: &'a mut [f32],
}

impl NullaryFnOnce for GeluKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (out, x) in self.out.iter_mut().zip(self.x) {
            *out = 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2));
        }
    }
}

/// The activation of gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// x times the logistic function of x.
    Silu,
    /// The approximation of [`gelu`] with a hyperbolic tangent (Hendrycks and Gimpel 2016).
    TanhGelu,
}

/// `activation(gate) * up`, where each row has its `width` gates first and then as many ups.
pub fn gated(x: &[f32], width: usize, activation: Activation) -> Vec<f32> {
    let mut out = vec![0.0; x.len() / 2];
    let arch = Arch::new();
    (x.par_chunks_exact(2 * width).zip(out.par_chunks_exact_mut(width)))
        .for_each(|(row, out)| arch.dispatch(GatedKernel { row, activation, out }));
    out
}

struct GatedKernel<'a> {
    row: &'a [f32],
    activation: Activation,
    out: &'a mut [f32],
}

impl NullaryFnOnce for GatedKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let (gates, ups) = self.row.split_at(self.out.len());
        let numbers = self.out.iter_mut().zip(gates).zip(ups);
        match self.activation {
            Activation::Silu => numbers.for_each(|((out, gate), up)| {
                *out = gate / (1.0 + exp(-gate)) * up;
            }),
            // 0.5 x (1 + tanh y) = x / (1 + exp(-2 y)), with y = sqrt(2 / pi) (x + 0.044715 x^3).
            Activation::TanhGelu => numbers.for_each(|((out, gate), up)| {
                let y = 0.797_884_6 * gate * 0.044_715_f32.mul_add(gate * gate, 1.0);
                *out = gate / (1.0 + exp(-2.0 * y)) * up;
            }),
        }
    }
}

/// `x += y`.
pub fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// Angles of rotary position embeddings (Su et al. 2021): cosine and sine per position and pair of coordinates.
#[derive(Debug)]
pub struct RotaryAngles {
    pairs: usize,
    order: PairOrder,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

/// Which coordinates of a head are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairOrder {
    /// Neighbours.
    Neighbours,
    /// One of the first half and one of the second.
    Halves,
}

impl RotaryAngles {
    /// For positions up to `context`; `frequencies` has the angle of a step for each pair.
    pub fn new(context: usize, order: PairOrder, frequencies: &[f64]) -> Self {
        let angles = (0..context).flat_map(|position| {
            frequencies.iter().map(move |frequency| position as f64 * frequency)
        });
        let (cos, sin) = angles.map(|angle| (angle.cos() as f32, angle.sin() as f32)).unzip();
        RotaryAngles { pairs: frequencies.len(), order, cos, sin }
    }

    /// Rotates the pairs of one head at a position.
    #[inline(always)]
    fn rotate_head(&self, head: &mut [f32], position: usize) {
        let angles = position * self.pairs..(position + 1) * self.pairs;
        let (cos, sin) = (&self.cos[angles.clone()], &self.sin[angles]);
        let turn = |x: &mut f32, y: &mut f32, cos: f32, sin: f32| {
            (*x, *y) = (*x * cos - *y * sin, *x * sin + *y * cos);
        };
        match self.order {
            PairOrder::Neighbours => {
                for (([x, y], cos), sin) in head.as_chunks_mut().0.iter_mut().zip(cos).zip(sin) {
                    turn(x, y, *cos, *sin);
                }
            }
            PairOrder::Halves => {
                let (left, right) = head.split_at_mut(self.pairs);
                for (((x, y), cos), sin) in left.iter_mut().zip(right).zip(cos).zip(sin) {
                    turn(x, y, *cos, *sin);
                }
            }
        }
    }
}

/// The numbers of heads and their width.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    /// Heads of queries.
    pub queries: usize,
    /// Heads of keys and values, each shared by the same number of query heads.
    pub keys: usize,
    /// The numbers of a head.
    pub width: usize,
}

impl Heads {
    /// The width of a row of queries, keys and values.
    pub fn row(&self) -> usize {
        (self.queries + 2 * self.keys) * self.width
    }

    /// The width of a row of queries.
    pub fn query_row(&self) -> usize {
        self.queries * self.width
    }

    /// The width of a row of keys, or of values.
    pub fn key_row(&self) -> usize {
        self.keys * self.width
    }
}

/// Keys and values of earlier tokens in one layer: a row per token.
#[derive(Debug, Clone, Default)]
pub struct LayerCache {
    /// The keys.
    pub keys: Vec<f32>,
    /// The values.
    pub values: Vec<f32>,
}

/// A piece of a sequence among packed rows.
#[derive(Debug, Clone)]
pub struct SequencePiece {
    /// The position of its first token in the sequence.
    pub position: usize,
    /// The number of its tokens.
    pub length: usize,
    /// The rows of the cache with the tokens before it.
    pub past: std::ops::Range<usize>,
}

/// Rotates queries and keys to their positions, in place.
pub fn rotate(rows: &mut [f32], pieces: &[SequencePiece], heads: Heads, rotation: &RotaryAngles) {
    let turned = heads.query_row() + heads.key_row();
    let positions = pieces.iter().flat_map(|piece| (0..piece.length).map(|i| piece.position + i));
    for (row, position) in rows.chunks_exact_mut(heads.row()).zip(positions) {
        for head in row[..turned].chunks_exact_mut(heads.width) {
            rotation.rotate_head(head, position);
        }
    }
}

/// Which tokens of its piece a token attends to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionMask {
    /// Itself and the tokens before it.
    Causal,
    /// Itself and the tokens before it, this many in total.
    Window(usize),
    /// All tokens.
    Full,
}

/// Attention: each token of a piece attends to the tokens before the piece, and within it to those that
/// `mask` allows.
/// `rows` has queries, keys and values side by side. `scale` multiplies their products.
pub fn attend(
    rows: &[f32],
    pieces: &[SequencePiece],
    heads: Heads,
    past: &LayerCache,
    mask: AttentionMask,
    scale: f32,
) -> Vec<f32> {
    let (row, out_row) = (heads.row(), heads.query_row());
    let mut out = vec![0.0; rows.len() / row * out_row];
    let mut jobs = Vec::with_capacity(pieces.len());
    let (mut rows, mut rest) = (rows, &mut out[..]);
    for piece in pieces {
        let (now, later) = rows.split_at(piece.length * row);
        let (mine, others) = std::mem::take(&mut rest).split_at_mut(piece.length * out_row);
        jobs.push((piece, now, mine));
        (rows, rest) = (later, others);
    }
    let arch = Arch::new();
    jobs.into_par_iter().for_each(|(piece, rows, out)| {
        arch.dispatch(AttentionKernel { rows, piece, heads, past, mask, scale, out });
    });
    out
}

struct AttentionKernel<'a> {
    rows: &'a [f32],
    piece: &'a SequencePiece,
    heads: Heads,
    past: &'a LayerCache,
    mask: AttentionMask,
    scale: f32,
    out: &'a mut [f32],
}

impl NullaryFnOnce for AttentionKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        attend_piece(self);
    }
}

#[inline(always)]
fn attend_piece(attention: AttentionKernel<'_>) {
    let AttentionKernel { rows, piece, heads, past, mask, scale, out } = attention;
    let Heads { queries, keys, width } = heads;
    let past_row = heads.key_row();
    let past_rows = piece.past.start * past_row..piece.past.end * past_row;
    let (past_keys, past_values) = (&past.keys[past_rows.clone()], &past.values[past_rows]);
    let mut weights = Vec::with_capacity(piece.past.len() + piece.length);
    for (i, out) in out.chunks_exact_mut(heads.query_row()).enumerate() {
        let visible = piece.past.len() + i + 1;
        let (end, hidden) = match mask {
            AttentionMask::Causal => (i + 1, 0),
            AttentionMask::Window(size) => (i + 1, visible.saturating_sub(size)),
            AttentionMask::Full => (piece.length, 0),
        };
        let hidden_past = hidden.min(piece.past.len());
        let own = &rows[(hidden - hidden_past) * heads.row()..end * heads.row()];
        let past_keys = &past_keys[hidden_past * past_row..];
        let past_values = &past_values[hidden_past * past_row..];
        let query_row = &rows[i * heads.row()..];
        for head in 0..queries {
            let shared = head / (queries / keys) * width;
            let query = &query_row[head * width..(head + 1) * width];
            let (key_at, value_at) =
                (heads.query_row() + shared, heads.query_row() + past_row + shared);
            weights.clear();
            for row in past_keys.chunks_exact(past_row) {
                weights.push(scale * dot(query, &row[shared..shared + width]));
            }
            for row in own.chunks_exact(heads.row()) {
                weights.push(scale * dot(query, &row[key_at..key_at + width]));
            }
            softmax(&mut weights);
            let out = &mut out[head * width..(head + 1) * width];
            let (before, now) = weights.split_at(piece.past.len() - hidden_past);
            for (weight, row) in before.iter().zip(past_values.chunks_exact(past_row)) {
                add_weighted(out, *weight, &row[shared..shared + width]);
            }
            for (weight, row) in now.iter().zip(own.chunks_exact(heads.row())) {
                add_weighted(out, *weight, &row[value_at..value_at + width]);
            }
        }
    }
}

/// `out += weight * x`.
#[inline(always)]
fn add_weighted(out: &mut [f32], weight: f32, x: &[f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = x.mul_add(weight, *out);
    }
}

#[inline(always)]
fn softmax(x: &mut [f32]) {
    let most = x.iter().fold(f32::NEG_INFINITY, |most, &x| most.max(x));
    let mut sum = 0.0;
    for x in x.iter_mut() {
        *x = exp(*x - most);
        sum += *x;
    }
    x.iter_mut().for_each(|x| *x /= sum);
}

/// The scalar product, in sixteen partial sums.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (mut a_chunks, mut b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (a, b) in (&mut a_chunks).zip(&mut b_chunks) {
        for lane in 0..LANES {
            sums[lane] = a[lane].mul_add(b[lane], sums[lane]);
        }
    }
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b);
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

/// The scalar products of a row with others.
pub fn dots<'a>(row: &[f32], others: impl Iterator<Item = &'a [f32]>) -> Vec<f32> {
    others.map(|other| row.iter().zip(other).map(|(a, b)| a * b).sum()).collect()
}

/// The exponential to within two units in the last place (the polynomial of Cephes' `expf`). Arguments are
/// clamped to ±87. NaN stays NaN.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding 1.5 * 2^23 rounds to an integer, which the low bits then hold.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 87.0);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(2.121_944_4e-4, n.mul_add(-0.693_359_4, x));
    let p = 1.987_569_1e-4_f32
        .mul_add(r, 1.398_199_9e-3)
        .mul_add(r, 8.333_452e-3)
        .mul_add(r, 4.166_579_6e-2)
        .mul_add(r, 1.666_666_5e-1)
        .mul_add(r, 0.5);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    (p * r * r + r + 1.0) * power
}

/// The error function to within 2e-7 (Abramowitz and Stegun 1964, formula 7.1.26).
#[inline(always)]
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let t = 1.0 / 0.327_591_1_f32.mul_add(size, 1.0);
    let p = 1.061_405_4_f32
        .mul_add(t, -1.453_152_1)
        .mul_add(t, 1.421_413_8)
        .mul_add(t, -0.284_496_74)
        .mul_add(t, 0.254_829_6);
    (1.0 - p * t * exp(-size * size)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_two_units_in_the_last_place() {
        for i in -8700..=8700 {
            let x = i as f32 / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 2.5e-7, "{x}: {error}");
        }
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(exp(-1e30), exp(-87.0));
    }

    /// Compared with the formula of attention in `f64`, for one head.
    #[test]
    fn a_piece_with_its_past_attends_as_the_whole_does() {
        let heads = Heads { queries: 4, keys: 2, width: 6 };
        let mut rows = crate::random_numbers(1)(7 * heads.row());
        let rotation = RotaryAngles::new(16, PairOrder::Neighbours, &[1.0, 0.05, 0.002]);
        let scale = 1.0 / 6_f32.sqrt();
        let whole = [SequencePiece { position: 0, length: 7, past: 0..0 }];
        rotate(&mut rows, &whole, heads, &rotation);
        let nothing = LayerCache::default();
        let out = attend(&rows, &whole, heads, &nothing, AttentionMask::Causal, scale);

        let keys = |row: &[f32]| row[24..36].to_vec();
        let values = |row: &[f32]| row[36..48].to_vec();
        let past = LayerCache {
            keys: rows.chunks(48).take(4).flat_map(keys).collect(),
            values: rows.chunks(48).take(4).flat_map(values).collect(),
        };
        let later = [SequencePiece { position: 4, length: 3, past: 0..4 }];
        assert_eq!(
            attend(&rows[4 * 48..], &later, heads, &past, AttentionMask::Causal, scale),
            out[4 * 24..]
        );
        // With a window, what is out of it might as well not be there.
        for size in 1..=8 {
            let mask = AttentionMask::Window(size);
            let windowed = attend(&rows, &whole, heads, &nothing, mask, scale);
            assert_eq!(
                attend(&rows[4 * 48..], &later, heads, &past, mask, scale),
                windowed[4 * 24..]
            );
            for i in 0..7_usize {
                let first = (i + 1).saturating_sub(size);
                let alone = [SequencePiece { position: first, length: i + 1 - first, past: 0..0 }];
                let rows = &rows[first * 48..(i + 1) * 48];
                let alone = attend(rows, &alone, heads, &nothing, AttentionMask::Causal, scale);
                assert_eq!(alone[alone.len() - 24..], windowed[i * 24..(i + 1) * 24]);
            }
        }
        // The last token attends to all tokens in both cases; the others, with a full mask, also to later ones.
        let all = attend(&rows, &whole, heads, &nothing, AttentionMask::Full, scale);
        assert_eq!(all[6 * 24..], out[6 * 24..]);
        assert_ne!(all[5 * 24..6 * 24], out[5 * 24..6 * 24]);

        // Head 3 of token 5, which shares the keys of head 1.
        let query = &rows[5 * 48 + 18..5 * 48 + 24];
        let product = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let weights: Vec<f64> = (0..=5)
            .map(|t| (product(query, &rows[t * 48 + 30..t * 48 + 36]) / 6f64.sqrt()).exp())
            .collect();
        let sum: f64 = weights.iter().sum();
        for i in 0..6 {
            let value = (0..=5).map(|t| weights[t] * f64::from(rows[t * 48 + 42 + i]) / sum);
            let error = value.sum::<f64>() - f64::from(out[5 * 24 + 18 + i]);
            assert!(error.abs() < 1e-5, "{error}");
        }
    }

    /// A rotation of halves is that of neighbours with the coordinates in another order.
    #[test]
    fn pairs_are_neighbours_or_halves() {
        let rotation = |order| RotaryAngles::new(8, order, &[1.0, 0.1]);
        let head = [1.0, 2.0, 3.0, 4.0, 5.0];
        let (mut neighbours, mut halves) = (head, [1.0, 3.0, 2.0, 4.0, 5.0]);
        rotation(PairOrder::Neighbours).rotate_head(&mut neighbours, 3);
        rotation(PairOrder::Halves).rotate_head(&mut halves, 3);
        let [a, b, c, d, e] = neighbours;
        assert_eq!(halves, [a, c, b, d, e]);
        assert!((a - (3_f32.cos() - 2.0 * 3_f32.sin())).abs() < 1e-6);
    }

    #[test]
    fn norms_and_gates_match_their_formulas() {
        let x: Vec<f32> = (0..40).map(|i| (i as f32 - 17.0) / 5.0).collect();
        let weight: Vec<f32> = (0..20).map(|i| 1.0 + i as f32 / 10.0).collect();
        let normed = rms_norm(&x, &weight, 1e-5);
        let square: f32 = x[20..].iter().map(|x| x * x).sum::<f32>() / 20.0;
        assert!((normed[23] - x[23] / (square + 1e-5).sqrt() * weight[3]).abs() < 1e-6);
        let bias = vec![0.25; 20];
        let normed = layer_norm(&x, &weight, &bias, 1e-5);
        let mean: f32 = x[20..].iter().sum::<f32>() / 20.0;
        let variance: f32 = x[20..].iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 20.0;
        let expected = (x[23] - mean) / (variance + 1e-5).sqrt() * weight[3] + 0.25;
        assert!((normed[23] - expected).abs() < 1e-5);
        // From a table of the normal distribution.
        for (x, below) in [(0.0, 0.5), (1.0, 0.841_344_7), (-0.5, 0.308_537_5), (2.5, 0.993_790_3)]
        {
            assert!((gelu(&[x])[0] - x * below).abs() < 1e-6, "{x}");
        }
        let out = gated(&x, 10, Activation::Silu);
        assert!((out[13] - x[23] / (1.0 + (-x[23]).exp()) * x[33]).abs() < 1e-5);
        let out = gated(&x, 10, Activation::TanhGelu);
        let tanh =
            ((2.0 / std::f32::consts::PI).sqrt() * (x[23] + 0.044_715 * x[23].powi(3))).tanh();
        assert!((out[13] - 0.5 * x[23] * (1.0 + tanh) * x[33]).abs() < 1e-5);
    }
}
