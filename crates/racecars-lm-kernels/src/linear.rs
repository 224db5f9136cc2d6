//! Matrix products with constant weights.
//!
//! The weights are packed once, into panels of as many outputs as two vectors hold. A panel is multiplied
//! with tiles of up to twelve rows (six with 16 registers), whose sums stay in registers. The order of every sum is the same for
//! any number of rows and threads.

use pulp::bytemuck::cast_slice;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// A linear map.
#[derive(Debug)]
pub struct Linear {
    /// The panels, concatenated. Each has, for every input, the weights of its outputs.
    panels: Vec<f32>,
    /// The number of outputs of a panel. Those beyond `outputs` have weights of zero.
    width: usize,
    inputs: usize,
    outputs: usize,
    /// A number per output, or empty.
    bias: Vec<f32>,
}

/// The maximum number of rows of a tile with 32 registers. Sums of a row take two of them.
const MAX_TILE_ROWS: usize = 12;
/// The same with 16 registers: 12 for sums, 2 for weights, 1 for an input.
const MAX_SMALL_TILE_ROWS: usize = 6;

impl Linear {
    /// From a weight matrix of outputs times inputs, and a bias per output or none.
    pub fn new(weight: &[f32], inputs: usize, bias: Vec<f32>) -> Self {
        let outputs = weight.len() / inputs;
        let width = Arch::new().dispatch(PanelWidth);
        let mut panels = vec![0.0; outputs.next_multiple_of(width) * inputs];
        for (output, row) in weight.chunks_exact(inputs).enumerate() {
            let panel = &mut panels[output / width * width * inputs..][..width * inputs];
            for (weights, x) in panel.chunks_exact_mut(width).zip(row) {
                weights[output % width] = *x;
            }
        }
        Linear { panels, width, inputs, outputs, bias }
    }

    /// The outputs for packed rows of inputs. Threads share the rows.
    pub fn apply(&self, rows: &[f32]) -> Vec<f32> {
        let count = rows.len() / self.inputs;
        let mut out = vec![0.0; count * self.outputs];
        let share = count.div_ceil(rayon::current_num_threads()).next_multiple_of(4).max(4);
        let arch = Arch::new();
        (rows.par_chunks(share * self.inputs).zip(out.par_chunks_mut(share * self.outputs)))
            .for_each(|(rows, out)| arch.dispatch(Product { linear: self, rows, out }));
        out
    }
}

struct PanelWidth;

impl WithSimd for PanelWidth {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        2 * S::F32_LANES
    }
}

struct Product<'a> {
    linear: &'a Linear,
    rows: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Linear { panels, width, inputs, outputs, bias } = self.linear;
        let tiles = tiles(self.rows, *inputs, S::REGISTER_COUNT);
        for (i, panel) in panels.chunks_exact(width * inputs).enumerate() {
            let columns = i * width..((i + 1) * width).min(*outputs);
            for tile in &tiles {
                let mut write = |row: usize, sums: &[f32]| {
                    let row = &mut self.out[(tile.from + row) * outputs..][..*outputs];
                    let row = &mut row[columns.clone()];
                    row.copy_from_slice(&sums[..row.len()]);
                    if !bias.is_empty() {
                        row.iter_mut().zip(&bias[columns.clone()]).for_each(|(x, b)| *x += b);
                    }
                };
                match tile.size {
                    4 => multiply::<S, 4>(simd, tile, panel, &mut write),
                    5 => multiply::<S, 5>(simd, tile, panel, &mut write),
                    6 => multiply::<S, 6>(simd, tile, panel, &mut write),
                    8 => multiply::<S, 8>(simd, tile, panel, &mut write),
                    _ => multiply::<S, MAX_TILE_ROWS>(simd, tile, panel, &mut write),
                }
            }
        }
    }
}

/// Rows, transposed: for every input the numbers of all rows. Zeros fill up to the tile's size.
struct Tile {
    x: Vec<f32>,
    size: usize,
    /// The index of its first row.
    from: usize,
    count: usize,
}

/// Tiles of about the same number of rows, since sums of few rows wait for one another.
fn tiles(rows: &[f32], inputs: usize, registers: usize) -> Vec<Tile> {
    let is_small = registers < 32;
    let most = if is_small { MAX_SMALL_TILE_ROWS } else { MAX_TILE_ROWS };
    let count = rows.len() / inputs;
    let tiles = count.div_ceil(most);
    let start = |i: usize| i * count / tiles;
    (0..tiles)
        .map(|i| {
            let rows = &rows[start(i) * inputs..start(i + 1) * inputs];
            let count = rows.len() / inputs;
            let size = if is_small { count.max(4) } else { count.next_multiple_of(4) };
            Tile::new(start(i), rows, inputs, size)
        })
        .collect()
}

impl Tile {
    fn new(from: usize, rows: &[f32], inputs: usize, size: usize) -> Self {
        let count = rows.len() / inputs;
        let mut x = vec![0.0; size * inputs];
        for (i, row) in rows.chunks_exact(inputs).enumerate() {
            for (place, number) in x[i..].iter_mut().step_by(size).zip(row) {
                *place = *number;
            }
        }
        Tile { x, size, from, count }
    }
}

/// A tile times a panel; `write` gets the sums of each row.
#[inline(always)]
fn multiply<S: Simd, const ROWS: usize>(
    simd: S,
    tile: &Tile,
    panel: &[f32],
    write: &mut impl FnMut(usize, &[f32]),
) {
    let weights: &[S::f32s] = cast_slice(panel);
    let mut sums = [[simd.splat_f32s(0.0); 2]; ROWS];
    let (weights, x) = (weights.as_chunks::<2>().0, tile.x.as_chunks::<ROWS>().0);
    for ([left, right], x) in weights.iter().zip(x) {
        for (sums, x) in sums.iter_mut().zip(x) {
            let x = simd.splat_f32s(*x);
            sums[0] = simd.mul_add_f32s(x, *left, sums[0]);
            sums[1] = simd.mul_add_f32s(x, *right, sums[1]);
        }
    }
    for (row, sums) in sums.iter().take(tile.count).enumerate() {
        write(row, cast_slice(sums));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_numbers;

    #[test]
    fn products_match_the_formula_for_all_shapes() {
        let mut numbers = random_numbers(1);
        for (count, inputs, outputs) in
            [(1, 1, 1), (3, 7, 33), (5, 16, 32), (12, 40, 31), (29, 5, 70), (64, 33, 100)]
        {
            let (weight, bias, x) =
                (numbers(outputs * inputs), numbers(outputs), numbers(count * inputs));
            let out = Linear::new(&weight, inputs, bias.clone()).apply(&x);
            assert_eq!(out.len(), count * outputs);
            for (i, out) in out.iter().enumerate() {
                let (row, output) = (i / outputs, i % outputs);
                let x = &x[row * inputs..][..inputs];
                let products = x.iter().zip(&weight[output * inputs..]).map(|(x, w)| x * w);
                let exact = products.map(f64::from).sum::<f64>() + f64::from(bias[output]);
                assert!((f64::from(*out) - exact).abs() < 1e-4, "{out} {exact}");
            }
        }
    }

    #[test]
    fn a_row_has_the_same_product_among_any_others() {
        let mut numbers = random_numbers(2);
        let (linear, x) = (Linear::new(&numbers(50 * 20), 20, vec![]), numbers(31 * 20));
        let all = linear.apply(&x);
        for (row, all) in x.chunks(20).zip(all.chunks(50)) {
            assert_eq!(linear.apply(row), all);
        }
    }

    /// The billions of operations per second of processor time, with the shapes of Gemma 3 270M's layers and
    /// more weights than caches hold: a line for each number of rows. `peers/lm/products.py` runs it beside
    /// NumPy's products.
    #[test]
    #[ignore = "a measurement"]
    fn operations_per_second() {
        let on_cpu = || {
            let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            times.split(' ').next().unwrap().parse::<f64>().unwrap()
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        let pool = pool.build().unwrap();
        let shapes = [(640, 1536), (1024, 640), (640, 4096), (2048, 640)];
        let layers: Vec<_> = std::iter::repeat_n(shapes, 6).flatten().collect();
        let linears = layers.iter().map(|(inputs, outputs)| {
            let weight = (0..inputs * outputs).map(|i| (i % 17) as f32).collect::<Vec<_>>();
            Linear::new(&weight, *inputs, vec![])
        });
        let linears: Vec<_> = linears.collect();
        for rows in [32, 64, 96, 512] {
            let (x, mut operations) = (vec![0.5; rows * 2048], 0.0);
            let start = on_cpu();
            for _ in 0..(2048 / rows).max(6) {
                for linear in &linears {
                    operations += 2.0 * (rows * linear.inputs * linear.outputs) as f64;
                    pool.install(|| std::hint::black_box(linear.apply(&x[..rows * linear.inputs])));
                }
            }
            println!("rows {rows}: {:.1}", operations / (on_cpu() - start));
        }
    }
}
