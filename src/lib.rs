#![doc = include_str!("../docs/front.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod blocks;
pub mod coming_from;
pub mod tutorial;

/// The compiler's middle, and the update rules of the library.
pub mod core {
    pub use nnz_optim as update_rules;
    pub use sparse_core::*;
}
pub use sparse_macros::graph;
#[doc(inline)]
pub use sparse_runtime::*;

/// Everything that a model's source and its training need.
pub mod prelude {
    pub use crate::data::libsvm::{self, IndexBase};
    pub use crate::data::{Dataset, InSequence, LastBatch};
    pub use crate::formats::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
    pub use crate::initializer::{Initializer, Seed};
    pub use crate::kernels::Parallel;
    pub use crate::metric::{Accuracy, Auc, LogLoss, Metric, Mse, Rmse};
    pub use crate::model::{Dims, Model};
    pub use crate::schedule::{Schedule, ScheduleUnit};
    pub use crate::training::{
        BestModel, Checkpoints, EarlyStopping, Hogwild, Progress, Trainer, Watch, checkpoint,
    };
    pub use crate::{Error, Result, dims, graph};
    pub use nnz_optim::{
        AdaGrad, Adam, AdamW, Ftrl, GroupAdaGrad, LazyUpdate, RmsProp, Saga, Sgd, Svrg,
    };
}

/// What code emitted by [`graph!`] names. Not part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::Result as OuterResult;
    pub use crate::device::Cpu;
    pub use crate::engine;
    pub use crate::formats::{
        Csr, CsrView, Dense, DenseView, IdsView, RowSparse, RowSparseView, Shape,
    };
    pub use crate::initializer::{Initializer, Seed, Stream};
    pub use crate::interaction;
    pub use crate::kernels::{self, Context, Kernels, Parallel, ScalarFunctions};
    pub use crate::linear;
    pub use crate::lookups;
    pub use crate::macro_support::{
        check_at_zero, check_batch_size, check_extent, check_features, check_ids, check_label,
        check_rank, check_result, check_rows_stored, debug_model, log_plan, measure_csr,
        measure_dense, measure_ids, measure_row_sparse, plan, same_parameter, scalar_of, shape_of,
        typed_ids, warn_of_fallbacks,
    };
    pub use crate::model::gradient::clip as clip_gradients;
    pub use crate::model::{
        BatchSource, Dims, Extent, GradientMut, InputInfo, InputRole, InputView, LabelKind,
        MakeTable, Model, ModelError, OutputInfo, Parameter, ParameterInfo, ParameterMut,
        ParameterRef, Plan, RowSet, RowSteps, Scores,
    };
    pub use crate::model::{Error, Result};
    pub use crate::optimizer::{Samples, Updater};
    pub use crate::read_rows;
    pub use crate::scatter_gradient;
    pub use sparse_core::shapes::Span;
    // What a module has of the standard library unless it has names of its own for these.
    pub use core::clone::Clone;
    pub use core::default::Default;
    pub use core::fmt::Debug;
    pub use core::marker::Copy;
    pub use core::option::Option::{self, None, Some};
    pub use core::primitive::{
        bool, f32, f64, i8, i16, i32, i64, i128, isize, str, u8, u16, u32, u64, usize,
    };
    pub use core::result::Result::{Err, Ok};
    pub use nnz_optim::UpdateRule;
    pub use sparse_core::element::{Float, Id, Unit};
    #[cfg(feature = "half")]
    pub use sparse_core::element::{bf16, f16};
    pub use sparse_core::inspect;
    pub use sparse_core::ir::{Axes, List};
    pub use sparse_core::operators::Link;
    pub use sparse_core::storage::{ElementType, Storage};
}

/// The examples of the page on data run.
#[cfg(doctest)]
#[doc = include_str!("../docs/data.md")]
#[doc = include_str!("../docs/training.md")]
pub struct DataPage;

/// The example of the page on variance reduction runs.
#[cfg(doctest)]
#[doc = include_str!("../docs/variance_reduction.md")]
pub struct VarianceReductionPage;

/// The example of the page on several workers runs.
#[cfg(doctest)]
#[doc = include_str!("../docs/distributed.md")]
pub struct DistributedPage;

/// The programs on the page of the language run.
#[cfg(doctest)]
#[doc = include_str!("../docs/language.md")]
pub struct LanguagePage;

/// The README's model compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
