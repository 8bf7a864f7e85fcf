//! Predictors: trained models for scoring alone.

use crate::error::Result;
use crate::training::checkpoint;
use nnz_arrays::formats::{CsrView, DenseView, FormatError, IdsView, Shape};
use nnz_arrays::parameter_memory::Table;
use nnz_step::model::{BatchSource, Dims, Extent, InputRole, Model, ModelError, ParameterInfo};
use sparse_core::element::Float;
use sparse_core::storage::{ElementType, Storage};
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

/// A trained model for scoring: its parameters without the state of an optimizer, shared by any
/// number of threads.
///
/// [`open`](Predictor::open) maps the file (on Linux; elsewhere it is read): parameters take memory
/// as rows are read, once for all processes. Each thread has its own [`Scorer`], which holds the
/// buffers of a forward pass and shares the parameters.
///
/// For a table of 16 bits declare the model again with `dtype = f16;` (feature `half`).
/// [`rounded`](Predictor::rounded) makes its predictor, and [`save`](Predictor::save) keeps it for
/// others to open. Arithmetic stays in `f32`.
///
/// ```
/// use nnz::Result;
/// use nnz::model::Model;
/// use nnz::predictor::Predictor;
///
/// /// The outputs for samples of entries, by as many threads as there are samples.
/// fn score<M: Model<Element = f32>>(path: &str, rows: &[(&[u32], &[f32])]) -> Result<Vec<f32>> {
///     let predictor = Predictor::<M>::open(path)?;
///     std::thread::scope(|scope| {
///         let scores = rows.iter().map(|&(columns, values)| {
///             let predictor = &predictor;
///             scope.spawn(move || Ok(predictor.scorer()?.score_row(columns, values)?[0]))
///         });
///         let scores: Vec<_> = scores.collect();
///         scores.into_iter().map(|score| score.join().expect("it does not panic")).collect()
///     })
/// }
/// ```
pub struct Predictor<M: Model> {
    dims: Dims,
    /// Shared with the scorers, in the order of declaration.
    tables: Vec<Table<M::Element>>,
    model: PhantomData<fn() -> M>,
}

impl<M: Model> Predictor<M> {
    /// Maps the file of a model. Everything is checked as by [`checkpoint::load`], for which the
    /// file is read once.
    ///
    /// The file must not be written while it is mapped. [`checkpoint::save`] does not write it: it
    /// puts a new file in its place, and processes that have mapped the old one keep it.
    ///
    /// # Errors
    ///
    /// As [`checkpoint::load`], and [`ModelError::NotFromTables`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let (dims, tables) = checkpoint::map::<M>(path.as_ref())?;
        Ok(Predictor { dims, tables, model: PhantomData })
    }

    /// Freezes a model. States that an updater keeps beside its weights are dropped. O(1), after a
    /// step that wrote such states O(values).
    pub fn new(mut model: M) -> Self {
        let parameters = model.parameters_mut().into_iter();
        let tables = parameters.map(|parameter| parameter.table.take_shared()).collect();
        Predictor { dims: model.dims().clone(), tables, model: PhantomData }
    }

    /// The parameters of a model of the same declarations in another element type, each weight
    /// rounded to the nearest. O(values).
    ///
    /// # Errors
    ///
    /// [`FormatError::Mismatch`] for a parameter that the other model lacks, or has in another
    /// shape.
    pub fn rounded<N: Model>(model: &N) -> Result<Self> {
        let parameters = model.parameters();
        let names = |parameters: &[ParameterInfo]| -> Vec<_> {
            parameters.iter().map(|parameter| parameter.name).collect()
        };
        if names(M::PARAMETERS) != names(N::PARAMETERS) {
            let message = format!("`{}` and `{}` have other parameters", M::NAME, N::NAME);
            return Err(FormatError::Mismatch { operation: "rounding a model", message }.into());
        }
        let tables = parameters.iter().map(|parameter| {
            let size = parameter.shape.row_size();
            let values: Vec<M::Element> =
                parameter.values().iter().map(|w| M::Element::of(w.as_f64())).collect();
            Table::from_values(size, &values).take_shared()
        });
        let predictor =
            Predictor { dims: model.dims().clone(), tables: tables.collect(), model: PhantomData };
        predictor.scorer()?;
        Ok(predictor)
    }

    /// Writes the parameters to a file that [`open`](Predictor::open) maps, like
    /// [`checkpoint::save`] for a model. A [rounded](Predictor::rounded) predictor is written in
    /// its rounded type.
    ///
    /// # Errors
    ///
    /// As [`checkpoint::save`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        checkpoint::save(&self.scorer()?.model, path)
    }

    /// A scorer for one thread. It shares the parameters: O(parameters), not O(values).
    ///
    /// # Errors
    ///
    /// [`ModelError::NotFromTables`].
    pub fn scorer(&self) -> Result<Scorer<M>> {
        let mut tables = self.tables.iter();
        let mut next = |_: &'static str, shape: Shape| {
            // There is one for each parameter, in the order of declaration.
            let table = tables.next().cloned();
            Ok(table.unwrap_or_else(|| Table::zeros(shape.n_rows(), shape.row_size())))
        };
        let model = M::from_tables(self.dims.clone(), &mut next)?;
        let mut inputs = M::INPUTS.iter().filter(|input| input.role == InputRole::Input);
        let width = match (inputs.next(), inputs.next()) {
            (Some(input), None) if input.storage == Storage::Csr => match input.shape.get(1) {
                Some(Extent::Constant(extent)) => Some(*extent),
                Some(Extent::Named(name)) => self.dims.get(name),
                None => None,
            },
            _ => None,
        };
        let empty = M::INPUTS.iter().map(|input| (input.without_rows(), input.element));
        Ok(Scorer { model, width, empty: empty.collect() })
    }
}

/// A model that scores with the parameters of a [`Predictor`]. Allocates nothing after the largest
/// batch.
pub struct Scorer<M: Model> {
    model: M,
    /// The columns of its one input, if it has one and that is csr.
    width: Option<usize>,
    /// The shape without rows of each input and label.
    empty: Vec<(Shape, ElementType)>,
}

impl<M: Model> fmt::Debug for Scorer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scorer")
            .field("model", &M::NAME)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl<M: Model> fmt::Debug for Predictor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predictor")
            .field("model", &M::NAME)
            .field("dims", &self.dims)
            .finish_non_exhaustive()
    }
}

impl<M: Model> Scorer<M> {
    /// The outputs for a batch. States of the model stay as they are.
    ///
    /// # Errors
    ///
    /// As [`Model::forward`].
    #[inline]
    pub fn forward(&mut self, batch: &M::Batch<'_>) -> Result<&M::Outputs> {
        Ok(self.model.forward(batch)?)
    }

    /// The outputs for a batch. Then the states of the model are updated by the batch, for this
    /// scorer alone: each scorer has its own sequence, which begins with the states of the
    /// predictor.
    ///
    /// # Errors
    ///
    /// As [`Model::forward_carrying`].
    #[inline]
    pub fn forward_carrying(&mut self, batch: &M::Batch<'_>) -> Result<&M::Outputs> {
        Ok(self.model.forward_carrying(batch)?)
    }

    /// The first output for one sample of entries, for a model whose one input is csr: ascending
    /// columns, and their values.
    ///
    /// # Errors
    ///
    /// A [`FormatError`] for columns that do not ascend or are not below the model's width, and for
    /// another number of values; [`ModelError::NotARow`] if the model does not read a sample of
    /// entries, or its first output is not dense.
    pub fn score_row(&mut self, columns: &[u32], values: &[M::Element]) -> Result<&[M::Element]> {
        let Scorer { model, width, empty } = self;
        let no_row = ModelError::NotARow { model: M::NAME };
        let Some(width) = *width else { return Err(no_row.into()) };
        let bounds = [0, columns.len() as u64];
        let row = Row { x: CsrView::new(width, &bounds, columns, values)?, empty };
        let batch = model.bind(&row)?;
        model.forward(&batch)?;
        match model.dense_output(0) {
            Some(output) => Ok(output.values()),
            None => Err(no_row.into()),
        }
    }

    /// The model itself, for [`predict`](crate::training::predict),
    /// [`score`](crate::training::score()) and the like. Writing a parameter copies it first, for
    /// this scorer alone.
    pub fn model(&mut self) -> &mut M {
        &mut self.model
    }
}

/// One sample of a csr input, without labels.
struct Row<'a, T: Float> {
    x: CsrView<'a, T>,
    /// The shape without rows of each input and label.
    empty: &'a [(Shape, ElementType)],
}

impl<T: Float> Row<'_, T> {
    fn label(&self, index: usize) -> (Shape, ElementType) {
        // Models ask for what they have declared.
        self.empty.get(index).copied().unwrap_or((Shape::default(), T::TYPE))
    }
}

impl<'a, T: Float> BatchSource<'a, T> for Row<'a, T> {
    fn n_rows(&self) -> usize {
        1
    }

    #[inline]
    fn csr(&self, _: usize) -> nnz_step::Result<CsrView<'a, T>> {
        Ok(self.x)
    }

    #[inline]
    fn dense(&self, index: usize) -> nnz_step::Result<DenseView<'a, T>> {
        let (shape, _) = self.label(index);
        Ok(DenseView::new(shape, &[])?)
    }

    #[inline]
    fn ids(&self, index: usize) -> nnz_step::Result<IdsView<'a>> {
        let (shape, element) = self.label(index);
        Ok(IdsView::none(shape, element)?)
    }
}
