//! What moves entries: csr + csr, dense → csr, rows of a csr.

use super::hand;
use super::peers;
use crate::data::{Arrays, Data, Matrix, Random, other};
use crate::workload::{Error, Named, Workload, fingerprint};
use nalgebra::DMatrix;
use ndarray::ArrayView2;
use nnz::formats::{Csr, Dense, IdsView};
use nnz::kernels::{Context, Parallel, binary, csr, retain};

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let mut list = Vec::new();
    for matrix in Matrix::ALL {
        let name = |what: &str| format!("{what}, {}", matrix.name());
        list.push(Named::new(name("csr + csr"), move || sum(data.matrix(matrix)?)));
        let both = move || threads(data.matrix(matrix)?);
        list.push(Named::new(format!("2 threads, {}", name("csr + csr")), both));
        list.push(Named::new(name("dense → csr"), move || from_dense(data.matrix(matrix)?)));
        list.push(Named::new(name("retain"), move || retained(data.matrix(matrix)?)));
    }
    list
}

fn of_csr(out: &Csr) -> f64 {
    let columns = fingerprint(out.columns().iter().map(|column| column as f32));
    let rows = fingerprint(out.indptr().iter().map(|&end| end as f32));
    columns + rows + fingerprint(out.values().iter().copied())
}

fn of_hand(out: &hand::Matrix) -> f64 {
    let columns = fingerprint(out.columns.iter().map(|&column| column as f32));
    let rows = fingerprint(out.indptr.iter().map(|&end| end as f32));
    columns + rows + fingerprint(out.values.iter().copied())
}

/// M entries of both operands.
fn sum(x: &Csr) -> Result<Workload<'_>, Error> {
    let y = other(x)?;
    let work = 1e-6 * (x.nnz() + y.nnz()) as f64;
    let (left, right) = (Arrays::of(x)?, y.clone());
    let mut workload = Workload::per_second("M entries/s", work).contestant(
        "ours",
        (Csr::default(), Context::default()),
        move |(out, context)| {
            binary::cpu::union_csr_csr(out, x.view(), right.view(), |x, y| x + y, context);
        },
        |(out, _)| of_csr(out),
    );
    let arrays = Arrays::of(&y)?;
    let [matrix, other] = [left, arrays].map(peers::sprs);
    let sprs = move || &matrix + &other;
    let [matrix, other] = [left, arrays].map(peers::faer);
    let faer = move || matrix.as_ref() + other.as_ref();
    let (matrix, other) = (peers::nalgebra(left)?, peers::nalgebra(arrays)?);
    let nalgebra = move || &matrix + &other;
    workload = workload.contestant(
        "hand",
        hand::Matrix::default(),
        move |out| {
            if let Ok(right) = Arrays::of(&y) {
                hand::add(out, left, right);
            }
        },
        of_hand,
    );
    // Others give a new matrix each time, and keep sums of 0, of which there are none here.
    workload = workload.contestant(
        "sprs",
        None,
        move |out| *out = Some(sprs()),
        |out| {
            out.as_ref().map_or(0.0, |out| {
                let columns = fingerprint(out.indices().iter().map(|&column| column as f32));
                let ends = out.indptr();
                let rows = ends.raw_storage().iter().map(|&end| end as f32);
                columns + fingerprint(rows) + fingerprint(out.data().iter().copied())
            })
        },
    );
    workload = workload.contestant(
        "faer",
        None,
        move |out| *out = Some(faer()),
        |out| {
            out.as_ref().map_or(0.0, |out| {
                let columns = fingerprint(out.col_idx().iter().map(|&column| column as f32));
                let rows = fingerprint(out.row_ptr().iter().map(|&end| end as f32));
                columns + rows + fingerprint(out.val().iter().copied())
            })
        },
    );
    Ok(workload.contestant(
        "nalgebra-sparse",
        None,
        move |out| *out = Some(nalgebra()),
        |out| {
            out.as_ref().map_or(0.0, |out| {
                let columns = fingerprint(out.col_indices().iter().map(|&column| column as f32));
                let rows = fingerprint(out.row_offsets().iter().map(|&end| end as f32));
                columns + rows + fingerprint(out.values().iter().copied())
            })
        },
    ))
}

/// Ours with two threads against ours with one.
fn threads(x: &Csr) -> Result<Workload<'_>, Error> {
    let y = other(x)?;
    let work = 1e-6 * (x.nnz() + y.nnz()) as f64;
    let mut workload = Workload::per_second("M entries/s", work).wall().tolerance(0.0);
    for (name, parallel) in [("ours", Parallel::Threads(2)), ("one thread", Parallel::Sequential)] {
        let y = y.clone();
        let mut context = Context::default();
        context.parallel = parallel;
        workload = workload.contestant(
            name,
            (Csr::default(), context),
            move |(out, context)| {
                binary::cpu::union_csr_csr(out, x.view(), y.view(), |x, y| x + y, context);
            },
            |(out, _)| of_csr(out),
        );
    }
    Ok(workload)
}

/// GB of the first rows as dense, about 200 MB.
fn from_dense(x: &Csr) -> Result<Workload<'_>, Error> {
    let n_rows = (50_000_000 / x.n_cols()).min(x.n_rows());
    let n_cols = x.n_cols();
    let dense = x.view().rows(0..n_rows)?.to_dense()?;
    let matrix = DMatrix::from_row_slice(n_rows, n_cols, dense.values());
    let (ours, rows): (Dense, Dense) = (dense.clone(), dense.clone());
    let work = 1e-9 * size_of_val(dense.values()) as f64;
    Ok(Workload::per_second("GB/s", work)
        .contestant(
            "ours",
            (Csr::default(), Context::default()),
            move |(out, context)| csr::cpu::dense(out, ours.view(), context),
            |(out, _)| of_csr(out),
        )
        .contestant(
            "hand",
            hand::Matrix::default(),
            move |out| hand::from_dense(out, rows.values(), n_cols),
            of_hand,
        )
        .contestant(
            "sprs",
            None,
            move |out| {
                if let Ok(rows) = ArrayView2::from_shape((n_rows, n_cols), dense.values()) {
                    *out = Some(sprs::CsMatI::<f32, u32, usize>::csr_from_dense(rows, 0.0));
                }
            },
            |out| {
                out.as_ref().map_or(0.0, |out| {
                    let columns = fingerprint(out.indices().iter().map(|&column| column as f32));
                    let ends = out.indptr();
                    let rows = ends.raw_storage().iter().map(|&end| end as f32);
                    columns + fingerprint(rows) + fingerprint(out.data().iter().copied())
                })
            },
        )
        .contestant(
            "nalgebra-sparse",
            None,
            move |out| *out = Some(nalgebra_sparse::CsrMatrix::from(&matrix)),
            |out| {
                out.as_ref().map_or(0.0, |out: &nalgebra_sparse::CsrMatrix<f32>| {
                    let columns =
                        fingerprint(out.col_indices().iter().map(|&column| column as f32));
                    let rows = fingerprint(out.row_offsets().iter().map(|&end| end as f32));
                    columns + rows + fingerprint(out.values().iter().copied())
                })
            },
        ))
}

/// M entries kept: those of half of the rows. Others do not offer it.
fn retained(x: &Csr) -> Result<Workload<'_>, Error> {
    let arrays = Arrays::of(x)?;
    let mut random = Random(3);
    let rows: Vec<u64> = (0..x.n_rows() as u64).filter(|_| random.bits() & 1 == 0).collect();
    let kept: u64 =
        rows.iter().map(|&row| x.indptr()[row as usize + 1] - x.indptr()[row as usize]).sum();
    let ids = Dense::new([rows.len()], rows.clone())?;
    Ok(Workload::per_second("M entries/s", 1e-6 * kept as f64)
        .contestant(
            "ours",
            (Csr::default(), Context::default()),
            move |(out, context)| {
                retain::cpu::csr_ids(out, x.view(), IdsView::U64(ids.view()), context);
            },
            |(out, _)| of_csr(out),
        )
        .contestant(
            "hand",
            hand::Matrix::default(),
            move |out| hand::retain(out, arrays, &rows),
            of_hand,
        ))
}
