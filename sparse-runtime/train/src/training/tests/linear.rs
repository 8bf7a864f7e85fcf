//! Linear regression written by hand as `graph!` would emit it, but plainly: what trainers are
//! tested on.

use nnz_arrays::formats::{CsrView, Dense, DenseView, RowSparse};
use nnz_arrays::initializer::{Initializer, Seed};
use nnz_optim::UpdateRule;
use nnz_step::Result;
use nnz_step::model::{
    BatchSource, Dims, Extent, GradientMut, InputInfo, InputRole, InputView, LabelKind, MakeTable,
    Model, OutputInfo, Parameter, ParameterInfo, ParameterMut, ParameterRef, Plan, RowSet,
};
use nnz_step::optimizer::{RowAccumulator, Updater};
use sparse_core::element::Float;
use sparse_core::storage::Storage;

/// `pred = dot(x, w) + b`, loss the mean over rows of `(pred - y)² / 2`. `GRAPH` stands for the
/// graph.
#[derive(Clone)]
pub(crate) struct Linear<T: Float = f64, const GRAPH: u64 = 1> {
    pub(crate) w: Parameter<RowSparse<T>, RowSparse<T>>,
    pub(crate) b: Parameter<Dense<T>, Dense<T>>,
    dims: Dims,
    pred: Dense<T>,
    gradients: (RowSparse<T>, Dense<T>),
    sums: RowAccumulator,
}

/// The `GRAPH` that does not give its gradients.
pub(crate) const WITHOUT_GRADIENTS: u64 = 98;

/// The `GRAPH` whose output cannot be read as a dense array.
pub(crate) const WITHOUT_OUTPUT: u64 = 99;

#[derive(Clone, Copy)]
pub(crate) struct Batch<'a, T: Float> {
    x: CsrView<'a, T>,
    y: DenseView<'a, T>,
}

impl<T: Float, const GRAPH: u64> Linear<T, GRAPH> {
    pub(crate) fn new(d: usize) -> Self {
        let parameter = Seed(1).stream(0);
        Linear {
            w: Parameter::new("w", [d, 1], &Initializer::Zeros, parameter).unwrap(),
            b: Parameter::new("b", [1], &Initializer::Zeros, parameter).unwrap(),
            dims: Dims::new().with("d", d),
            pred: Dense::zeros([0, 1]),
            gradients: (RowSparse::zeros([d, 1]), Dense::zeros([1])),
            sums: RowAccumulator::new(d, 1),
        }
    }

    fn run(&mut self, x: &CsrView<'_, T>) {
        self.pred.reset([x.n_rows(), 1]);
        for (row, pred) in x.iter_rows().zip(self.pred.values_mut()) {
            *pred = self.b.values()[0];
            for (column, value) in row {
                *pred += value * self.w.values()[column];
            }
        }
    }

    fn mean_loss(&self, y: &DenseView<'_, T>) -> f64 {
        let errors = self.pred.values().iter().zip(y.values());
        let sum: f64 = errors.map(|(p, y)| (*p - *y).as_f64().powi(2) / 2.0).sum();
        sum / y.values().len() as f64
    }
}

impl<T: Float, const GRAPH: u64> Model for Linear<T, GRAPH> {
    type Element = T;
    type Batch<'a> = Batch<'a, T>;
    type Outputs = Dense<T>;
    type Gradients = (RowSparse<T>, Dense<T>);

    const NAME: &'static str = "Linear";
    const PLAN: Plan = Plan::empty("Linear");
    const FINGERPRINT: u64 = GRAPH;
    const INPUTS: &'static [InputInfo] = &[
        InputInfo {
            name: "x",
            role: InputRole::Input,
            storage: Storage::Csr,
            element: T::TYPE,
            shape: &[Extent::Named("n"), Extent::Named("d")],
            label: LabelKind::Real,
        },
        InputInfo {
            name: "y",
            role: InputRole::Label,
            storage: Storage::Dense,
            element: T::TYPE,
            shape: &[Extent::Named("n"), Extent::Constant(1)],
            label: LabelKind::Real,
        },
    ];
    const PARAMETERS: &'static [ParameterInfo] = &[
        ParameterInfo {
            name: "w",
            storage: Storage::RowSparse,
            gradient: Some(Storage::RowSparse),
            shape: &[Extent::Named("d"), Extent::Constant(1)],
            reads: RowSet::Of(&[0]),
            writes: RowSet::Of(&[0]),
            decays: true,
            is_state: false,
        },
        ParameterInfo {
            name: "b",
            storage: Storage::Dense,
            gradient: Some(Storage::Dense),
            shape: &[Extent::Constant(1)],
            reads: RowSet::All,
            writes: RowSet::All,
            decays: false,
            is_state: false,
        },
    ];
    const ROW_DIMENSIONS: &'static [&'static str] = &["d"];
    const OUTPUTS: &'static [OutputInfo] =
        &[OutputInfo { name: "pred", storage: Storage::Dense, element: T::TYPE }];

    fn from_tables(dims: Dims, table: &mut MakeTable<'_, T>) -> Result<Self> {
        let d = dims.get("d").unwrap_or_default();
        let mut model = Linear::new(0);
        (model.gradients.0, model.sums) = (RowSparse::zeros([d, 1]), RowAccumulator::new(d, 1));
        model.w = Parameter::from_table("w", [d, 1], table("w", [d, 1].into())?)?;
        model.b = Parameter::from_table("b", [1], table("b", [1].into())?)?;
        Ok(Linear { dims, ..model })
    }

    fn dims(&self) -> &Dims {
        &self.dims
    }

    fn bind<'a, S: BatchSource<'a, T>>(&self, source: &S) -> Result<Batch<'a, T>> {
        Ok(Batch { x: source.csr(0)?, y: source.dense(1)? })
    }

    fn input<'a>(batch: &Self::Batch<'a>, index: usize) -> Option<InputView<'a, T>> {
        match index {
            0 => Some(InputView::Csr(batch.x)),
            1 => Some(InputView::Dense(batch.y)),
            _ => None,
        }
    }

    fn forward(&mut self, batch: &Batch<'_, T>) -> Result<&Dense<T>> {
        self.run(&batch.x);
        Ok(&self.pred)
    }

    fn loss(&mut self, batch: &Batch<'_, T>) -> Result<f64> {
        self.run(&batch.x);
        Ok(self.mean_loss(&batch.y))
    }

    fn loss_and_grads(&mut self, batch: &Batch<'_, T>) -> Result<f64> {
        let loss = self.loss(batch)?;
        let mean = T::of(1.0 / batch.x.n_rows() as f64);
        let errors =
            (self.pred.values().iter().zip(batch.y.values())).map(|(p, y)| (*p - *y) * mean);
        let mut total = T::zero();
        self.sums.clear();
        for (row, error) in batch.x.iter_rows().zip(errors) {
            total += error;
            for (column, value) in row {
                self.sums.row_mut(column)[0] += (value * error).as_f64();
            }
        }
        let mut rows: Vec<_> = self.sums.rows().iter().zip(self.sums.values()).collect();
        rows.sort_by_key(|(row, _)| **row);
        let (indices, values) = rows.iter().map(|(row, sum)| (**row as u64, T::of(**sum))).unzip();
        self.gradients.0 = RowSparse::new(*self.w.shape(), indices, values)?;
        self.gradients.1 = Dense::new([1], vec![total])?;
        Ok(loss)
    }

    fn outputs(&self) -> &Dense<T> {
        &self.pred
    }

    fn gradients(&self) -> &(RowSparse<T>, Dense<T>) {
        &self.gradients
    }

    fn train_step<R: UpdateRule>(
        &mut self,
        batch: &Batch<'_, T>,
        updater: &mut Updater<R, T>,
    ) -> Result<f64> {
        self.adjusted_step(batch, updater, |_| Ok(()))
    }

    fn adjusted_step<R: UpdateRule>(
        &mut self,
        batch: &Batch<'_, T>,
        updater: &mut Updater<R, T>,
        adjust: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<f64> {
        updater.begin_step()?;
        updater.settle_read::<Self>(0, self.w.values_mut(), batch)?;
        let loss = self.loss_and_grads(batch)?;
        adjust(self)?;
        updater.apply_row_sparse(0, self.w.values_mut(), self.gradients.0.view())?;
        updater.apply_dense(1, self.b.values_mut(), self.gradients.1.values())?;
        updater.end_step()?;
        Ok(loss)
    }

    fn gradient_mut(&mut self, index: usize) -> Option<GradientMut<'_, T>> {
        match index {
            _ if GRAPH == WITHOUT_GRADIENTS => None,
            0 => Some((&mut self.gradients.0).into()),
            1 => Some((&mut self.gradients.1).into()),
            _ => None,
        }
    }

    fn dense_output(&self, index: usize) -> Option<DenseView<'_, T>> {
        (index == 0 && GRAPH != WITHOUT_OUTPUT).then(|| self.pred.view())
    }

    fn parameters(&self) -> Vec<ParameterRef<'_, T>> {
        vec![self.w.as_ref(), self.b.as_ref()]
    }

    fn parameters_mut(&mut self) -> Vec<ParameterMut<'_, T>> {
        vec![self.w.as_mut(), self.b.as_mut()]
    }
}
