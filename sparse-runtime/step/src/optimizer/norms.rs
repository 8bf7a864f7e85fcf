//! The end of a step that depends on norms of a whole parameter.

use super::update_kind::on_weight;
use nnz_optim::Step;
use sparse_core::element::Float;

/// Moves the weights of a parameter along their directions, as far as norms of all of them say: the
/// end of a step of a rule [by norms](Step::BY_NORMS), of others nothing. `each` visits every
/// weight with its state, in the same order each time, so that the sums, which are in `f64`, are
/// the same in every run. O(weights).
#[inline(always)]
pub(super) fn end_by_norms<T: Float, S: Step<T::Accumulator>>(
    step: &S,
    mut each: impl FnMut(&mut dyn FnMut(&mut T, &S::State)),
) {
    if !S::BY_NORMS {
        return;
    }
    let (mut weights, mut directions) = (0.0, 0.0);
    each(&mut |weight, state| {
        let weight = weight.widen();
        weights += weight.as_f64() * weight.as_f64();
        let direction = step.direction(weight, state).as_f64();
        directions += direction * direction;
    });
    let rate = step.rate_by_norms(weights.sqrt(), directions.sqrt());
    each(&mut |weight, state| {
        on_weight(weight, |weight| *weight -= rate * step.direction(*weight, state));
    });
}

#[cfg(test)]
mod tests {
    use crate::error::Result;
    use crate::optimizer::{ParameterSpec, Updater};
    use nnz_arrays::formats::RowSparse;
    use nnz_arrays::parameter_memory::Table;
    use nnz_optim::{Lamb, LazyUpdate};
    use sparse_core::storage::Storage;

    const ROWS: usize = 5;
    const SIZE: usize = 3;

    /// Six steps by gradients of two rows each, over all weights at once and in `f64`.
    fn by_hand(rule: &Lamb, grads: &[[f64; ROWS * SIZE]]) -> Vec<f64> {
        let mut w: Vec<f64> = (0..ROWS * SIZE).map(|i| (i as f64).cos()).collect();
        let (mut m, mut v) = ([0.0; ROWS * SIZE], [0.0; ROWS * SIZE]);
        for (t, grad) in grads.iter().enumerate() {
            let mut along = [0.0; ROWS * SIZE];
            for i in 0..ROWS * SIZE {
                m[i] = rule.beta1 * m[i] + (1.0 - rule.beta1) * grad[i];
                v[i] = rule.beta2 * v[i] + (1.0 - rule.beta2) * grad[i] * grad[i];
                let steps = t as i32 + 1;
                let (mean, square) =
                    (m[i] / (1.0 - rule.beta1.powi(steps)), v[i] / (1.0 - rule.beta2.powi(steps)));
                along[i] = mean / (square.sqrt() + rule.epsilon) + rule.weight_decay * w[i];
            }
            let norm = |of: &[f64]| of.iter().map(|x| x * x).sum::<f64>().sqrt();
            let rate = rule.learning_rate * norm(&w) / norm(&along);
            w.iter_mut().zip(along).for_each(|(w, along)| *w -= rate * along);
        }
        w
    }

    fn grads() -> Vec<[f64; ROWS * SIZE]> {
        let grad = |step: usize| {
            std::array::from_fn(|i| {
                if i / SIZE == step % ROWS || i / SIZE == 3 {
                    ((step * 31 + i) as f64).sin()
                } else {
                    0.0
                }
            })
        };
        (0..6).map(grad).collect()
    }

    fn near(found: &[f64], expected: &[f64]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    /// A dense gradient, one of rows, and rows updated by hand, in an array or in a table with the
    /// states beside them.
    #[test]
    fn each_way_of_a_step_ends_by_the_norms_of_all_rows() -> Result<()> {
        let rule = Lamb {
            learning_rate: 0.125,
            weight_decay: 0.25,
            lazy_update: LazyUpdate::Dense,
            ..Lamb::default()
        };
        let (grads, expected) = (grads(), by_hand(&rule, &grads()));
        let start: Vec<f64> = (0..ROWS * SIZE).map(|i| (i as f64).cos()).collect();
        let spec = |storage| vec![ParameterSpec::new("w", ROWS, SIZE, Some(storage))];
        let updater = |storage| Updater::<Lamb, f64>::new(rule.clone(), spec(storage));
        let (mut dense, mut few, mut fixed) = (start.clone(), start.clone(), start.clone());
        let (mut of_rows, mut table) = (start.clone(), Table::from_values(SIZE, &start));
        let (mut a, mut b, mut c) =
            (updater(Storage::Dense)?, updater(Storage::Dense)?, updater(Storage::Dense)?);
        let (mut d, mut e) = (updater(Storage::RowSparse)?, updater(Storage::RowSparse)?);
        for grad in &grads {
            a.begin_step()?;
            a.apply_dense(0, &mut dense, grad)?;
            a.end_step()?;
            assert_eq!(b.begin_steps(9)?, 1);
            let mut steps = b.take_few::<{ ROWS * SIZE }>(0, &mut few)?;
            steps.update(grad);
            b.put_few(0, &mut few, &steps);
            b.end_steps(1)?;
            c.begin_steps(1)?;
            let mut steps = c.take_states(0, &mut fixed)?;
            steps.update(&mut fixed, grad);
            c.put_states(0, steps)?;
            c.end_steps(1)?;
            let stored: Vec<u64> = (0..ROWS as u64)
                .filter(|row| grad[*row as usize * SIZE..][..SIZE].iter().any(|g| *g != 0.0))
                .collect();
            let of_row = |row: u64| &grad[row as usize * SIZE..][..SIZE];
            let values = stored.iter().flat_map(|row| of_row(*row).to_vec()).collect();
            let sparse = RowSparse::new([ROWS, SIZE], stored.clone(), values)?;
            d.begin_step()?;
            d.apply_row_sparse(0, &mut of_rows, sparse.view())?;
            d.end_step()?;
            e.begin_step()?;
            crate::with_rows!(Lamb, f64; e, [0 => &mut table], |[rows]| {
                for row in &stored {
                    rows.settle(*row as usize);
                    rows.update_row(*row as usize, of_row(*row));
                }
                rows.finish();
            });
            e.end_step()?;
        }
        for found in [&dense, &few, &fixed, &of_rows, &table.values().to_vec()] {
            near(found, &expected);
        }
        Ok(())
    }

    /// The rows of a matrix have one norm, also where they are updated one after the other.
    #[test]
    fn an_outer_product_is_a_gradient_of_all_rows() -> Result<()> {
        let rule = Lamb { lazy_update: LazyUpdate::Dense, ..Lamb::default() };
        let spec = vec![ParameterSpec::new("h", 2, 3, Some(Storage::Dense))];
        let mut a = Updater::<Lamb, f64>::new(rule.clone(), spec.clone())?;
        let mut b = Updater::<Lamb, f64>::new(rule, spec)?;
        let mut found = [0.5, -0.25, 1.0, 0.0, -1.0, 2.0];
        let mut expected = found;
        for step in 0..4u8 {
            let (left, right) = ([1.0, -0.5], [0.25, 2.0 - f64::from(step), 1.0]);
            let grad: [f64; 6] = std::array::from_fn(|i| left[i / 3] * right[i % 3]);
            a.begin_steps(1)?;
            let mut steps = a.take_states(0, &mut found)?;
            steps.update_outer(&mut found, &left, &right);
            a.put_states(0, steps)?;
            a.end_steps(1)?;
            b.begin_step()?;
            b.apply_dense(0, &mut expected, &grad)?;
            b.end_step()?;
        }
        near(&found, &expected);
        Ok(())
    }
}
