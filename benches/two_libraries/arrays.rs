//! Kernels on arrays, called by models without parameters, which keep their results' memory.

use crate::Row;
use crate::models::{Data, FEATURES, SAMPLES};
use nnz::prelude::*;
use std::error::Error;

graph! {
    /// Each entry adds a row of `w`.
    pub model Product {
        input x: csr[n, d];
        input w: dense[d, 16];
        output product = dot(x, w);
    }

    /// A product of one column.
    pub model Scores {
        input x: csr[n, d];
        input w: dense[d, 1];
        output scores = dot(x, w);
    }

    /// Each entry adds to the table row of its column.
    pub model Gradient {
        input x: csr[n, d];
        input g: dense[n, 16];
        output gradient = dot(x, g, transpose_lhs = true);
    }

    /// A union of entries.
    pub model Sum {
        input x: csr[n, d];
        input z: csr[n, d];
        output sum = x + z;
    }

    /// An intersection of entries.
    pub model Multiplied {
        input x: csr[n, d];
        input z: csr[n, d];
        output product = x * z;
    }

    /// A function of each entry.
    pub model Chain {
        input x: csr[n, d];
        output values = 2.0 * tanh(x) * x;
    }

    /// Reductions of each sample.
    pub model Reductions {
        input x: csr[n, d];
        output sums = sum(x, axis = 1);
        output maxima = max(x, axis = 1);
        output all = norm(x);
    }

    /// A reduction of each column.
    pub model Columns {
        input x: csr[n, d];
        output sums = sum(x, axis = 0);
    }

    /// Dense classes.
    pub model Classes {
        input g: dense[n, 16];
        output probabilities = softmax(g);
    }
}

/// A row: a model, and a batch of static arrays.
macro_rules! add {
    ($rows:ident, $name:literal, $model:ident, $batch:expr) => {
        $rows.push((
            $name.into(),
            Box::new(move || {
                let mut model = $model::new(dims! {}, Seed(0))?;
                Ok(Box::new(move || {
                    model.forward(&$batch)?;
                    Ok(())
                }))
            }),
        ));
    };
}

/// Adds the rows, on the samples of the log of clicks.
pub fn add(rows: &mut Vec<Row>, data: &'static Data) -> Result<(), Box<dyn Error>> {
    let x = data.clicks.features().ok_or("the log is csr")?;
    let z: &'static Csr =
        Box::leak(Box::new(Csr::random(SAMPLES, FEATURES, 39.0 / FEATURES as f64, Seed(7))?));
    let w = numbers([FEATURES, 16])?;
    let one = numbers([FEATURES, 1])?;
    let g = numbers([SAMPLES, 16])?;
    add!(rows, "csr · dense 16", Product, ProductBatch { x: x.view(), w: w.view() });
    add!(rows, "csr · dense 1", Scores, ScoresBatch { x: x.view(), w: one.view() });
    add!(rows, "csr' · dense 16", Gradient, GradientBatch { x: x.view(), g: g.view() });
    add!(rows, "csr + csr", Sum, SumBatch { x: x.view(), z: z.view() });
    add!(rows, "csr * csr", Multiplied, MultipliedBatch { x: x.view(), z: z.view() });
    add!(rows, "element-wise chain of a csr", Chain, ChainBatch { x: z.view() });
    add!(rows, "reductions of samples", Reductions, ReductionsBatch { x: z.view() });
    add!(rows, "sums of columns", Columns, ColumnsBatch { x: z.view() });
    add!(rows, "softmax of 16 classes", Classes, ClassesBatch { g: g.view() });
    Ok(())
}

fn numbers(shape: [usize; 2]) -> Result<&'static Dense, Box<dyn Error>> {
    let values = (0..shape[0] * shape[1]).map(|place| (place * 7 % 13) as f32 / 6.0 - 1.0);
    Ok(Box::leak(Box::new(Dense::new(shape, values.collect())?)))
}
