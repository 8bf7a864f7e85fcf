//! Update rules, made of their recurrences, against the same on the CPU.

use crate::device::gpu;
use crate::near;
use nnz_optim::{Adam, Ftrl, LazyUpdate, NAMES, RuleVisitor, Sgd, UpdateRule, with_rule};
use sparse_core::storage::Storage;
use sparse_runtime::Result;
use sparse_runtime::formats::{Dense, RowSparse};
use sparse_runtime::kernels::cuda::CudaContext;
use sparse_runtime::optimizer::cuda::{CudaGradient, CudaTable};
use sparse_runtime::optimizer::{ParameterSpec, Updater};
use sparse_runtime::table::Table;

const N_ROWS: usize = 9;
const WIDTH: usize = 3;

/// Steps of a rule with gradients of some rows, then of none, at two rates, on both devices.
fn hold<R: UpdateRule>(rule: R, initial: f32) -> Result<()> {
    let gpu = gpu();
    let mut context = CudaContext::new(&gpu);
    let spec = ParameterSpec::new("w", N_ROWS, WIDTH, Some(Storage::RowSparse));
    let mut on_cpu = Updater::<R, f32>::new(rule, vec![spec])?;
    let mut on_gpu = on_cpu.clone();
    let mut host = Table::from_values(WIDTH, &[initial; N_ROWS * WIDTH]);
    let weights = Dense::full([N_ROWS, WIDTH], initial).to_gpu(&gpu)?;
    let mut there = CudaTable::new(weights);
    let before = Table::from_values(WIDTH, &[initial; N_ROWS * WIDTH]);
    for (step, rows) in [&[0, 3, 8][..], &[3], &[], &[1, 3, 5, 8]].into_iter().enumerate() {
        let values = (0..rows.len() * WIDTH).map(|at| (at * 7 % 5) as f32 - 2.25).collect();
        let gradient = RowSparse::new([N_ROWS, WIDTH], rows.to_vec(), values)?;
        for updater in [&mut on_cpu, &mut on_gpu] {
            updater.set_learning_rate(if step < 2 { 0.25 } else { 0.125 })?;
            updater.begin_step()?;
        }
        on_cpu.apply_row_sparse(0, &mut host, gradient.view())?;
        let gradient = gradient.to_gpu(&gpu)?;
        let gradient = CudaGradient::RowSparse(gradient.view());
        on_gpu.check_for_gpu()?;
        on_gpu.apply_on_gpu(0, &mut there, &before, gradient, &mut context)?;
        on_cpu.end_step()?;
        on_gpu.end_step()?;
    }
    on_cpu.flush(0, &mut host)?;
    let found = there.weights.to_cpu()?;
    near(R::NAME, found.values(), host.values(), 1e-5);
    Ok(())
}

/// In the mode that updates the rows of a gradient, or, where a rule has it not, all.
struct Touched;

impl RuleVisitor for Touched {
    type Output = Result<()>;

    fn visit<R: UpdateRule>(self, mut rule: R) -> Result<()> {
        rule.set_lazy_update(LazyUpdate::Touched);
        if rule.check().is_err() {
            rule.set_lazy_update(LazyUpdate::Dense);
        }
        for name in ["weight_decay", "l1", "l2"] {
            // A rule that has no such hyperparameter is tried without.
            let _ = rule.set(name, 0.125);
        }
        hold(rule, 0.5)
    }
}

#[test]
fn every_rule_updates_the_rows_of_a_gradient() -> Result<()> {
    NAMES.iter().try_for_each(|name| with_rule(name, Touched)?)
}

#[test]
fn the_modes_of_other_rows_are_kept() -> Result<()> {
    let sgd = Sgd { momentum: 0.5, lazy_update: LazyUpdate::Dense, ..Sgd::default() };
    hold(sgd, 0.5)?;
    hold(Adam { lazy_update: LazyUpdate::Dense, ..Adam::default() }, 0.5)?;
    // Initial weights are forgotten, by rows without a gradient too.
    hold(Ftrl { l1: 0.5, ..Ftrl::default() }, 0.5)?;
    hold(Sgd::default(), 0.5)
}
