//! What several threads compute has the bits of what one does. The work is as large as it must be
//! for kernels to use them.

use sparse_runtime::data::libsvm::{IndexBase, Reader};
use sparse_runtime::data::{ColumnValues, Dataset, OnError};
use sparse_runtime::formats::{Csr, Dense, RowSelection, RowSparse, RowSparseView};
use sparse_runtime::kernels::{Context, Parallel, binary, chain, dot};

const ROWS: usize = 4000;
const COLUMNS: usize = 5000;

/// Rows of 0 to 40 entries; the first columns occur in most rows.
fn matrix() -> Csr<f32> {
    let rows = (0..ROWS).map(|row| {
        let entries =
            (0..row * 7 % 41).map(|k| (k * k * 3 + row % 3, ((row + k) % 13) as f32 / 7.0));
        entries.collect::<Vec<_>>()
    });
    Csr::from_rows(COLUMNS, rows).unwrap()
}

fn numbers(n_rows: usize, width: usize) -> Dense<f32> {
    let values = (0..n_rows * width).map(|i| ((i * 7919 % 1009) as f32 - 500.0) / 300.0);
    Dense::new([n_rows, width], values.collect()).unwrap()
}

/// One thread, and more than there may be.
fn contexts() -> [Context; 2] {
    [Parallel::Sequential, Parallel::Threads(3)].map(|parallel| {
        let mut context = Context::default();
        context.parallel = parallel;
        context
    })
}

#[test]
fn products() {
    const WIDTH: usize = 1024;
    let x = matrix();
    let mut selection = RowSelection::new();
    let backwards: Vec<usize> = (0..ROWS).rev().collect();
    let right = numbers(COLUMNS, WIDTH);
    for view in [x.view(), selection.gather(&x, &backwards).unwrap()] {
        let [one, three] = contexts().map(|mut context| {
            let mut out = Dense::default();
            dot::cpu::csr_dense(&mut out, view, right.view(), false, &mut context);
            out
        });
        assert!(one == three);
    }
    let left = numbers(ROWS, WIDTH);
    let divided = x.view().divided_for(3).unwrap();
    let of_views = [x.view(), divided.view()].map(|view| {
        let [one, three] = contexts().map(|mut context| {
            let (mut rows, mut table) = (RowSparse::default(), Dense::default());
            dot::cpu::csr_transposed_dense(&mut rows, view, left.view(), false, &mut context);
            let table_of = dot::cpu::csr_transposed_dense_into_dense;
            table_of(&mut table, view, left.view(), false, &mut context);
            assert!(rows.to_dense().unwrap() == table);
            (rows, table)
        });
        assert!(one == three);
        three
    });
    assert!(of_views[0] == of_views[1]);
}

/// Runs of any length, and whole rows: one row more than parts of one length have.
#[test]
fn chains() {
    const WIDTH: usize = 1000;
    let (x, column) = (numbers(7_501, WIDTH), numbers(1, WIDTH));
    let [one, three] = contexts().map(|mut context| {
        let (mut runs, mut rows, mut stored) =
            (Dense::default(), Dense::default(), RowSparse::default());
        chain::dense(&mut runs, x.view(), &mut context, |at, x, out| {
            for (i, (x, out)) in x.iter().zip(out).enumerate() {
                *out = x * (at + i) as f32;
            }
        });
        chain::dense_rows(&mut rows, x.view(), &mut context, |row, x, out| {
            assert_eq!(out.len(), WIDTH);
            for ((x, column), out) in x.iter().zip(column.values()).zip(out) {
                *out = x * column + row as f32;
            }
        });
        let table = RowSparseView::all(*x.shape(), x.values()).unwrap();
        chain::row_sparse(&mut stored, table, &mut context, |at, x, out| {
            for (i, (x, out)) in x.iter().zip(out).enumerate() {
                *out = x * (at + i) as f32;
            }
        });
        assert_eq!(stored.values(), runs.values());
        (runs, rows)
    });
    assert!(one == three);
    let expected = x.values()[7_500 * WIDTH + 7] * column.values()[7] + 7_500.0;
    assert_eq!(one.1.values()[7_500 * WIDTH + 7], expected);
}

#[test]
fn sums() {
    let x = matrix();
    // As many rows as it takes.
    let mut selection = RowSelection::new();
    let rows: Vec<usize> = (0..80 * ROWS).map(|row| row * 31 % ROWS).collect();
    let x = selection.gather(&x, &rows).unwrap().to_owned();
    let negative = Csr::new(
        COLUMNS,
        x.indptr().to_vec(),
        x.columns().iter().map(|column| column as u32).collect::<Vec<_>>(),
        x.values()
            .iter()
            .enumerate()
            .map(|(i, value)| if i % 3 == 0 { -value } else { 1.0 })
            .collect(),
    );
    let negative = negative.unwrap();
    let [one, three] = contexts().map(|mut context| {
        let mut out = Csr::default();
        let add = |x, y| x + y;
        binary::cpu::union_csr_csr(&mut out, x.view(), negative.view(), add, &mut context);
        out
    });
    assert!(one == three);
    assert!(one.nnz() < x.nnz());
}

/// So many entries are enough for two threads.
const MANY: usize = 2_600_000;

/// Entries that do not divide well: all in one column, rows fewer than threads, rows of nothing
/// around one that has all, a row for each of two threads and one for neither.
fn patterns() -> Vec<Csr<f32>> {
    let value = |i: usize| (i % 17) as f32 - 8.5;
    let one_column = (0..MANY).map(|row| [(COLUMNS - 1, value(row))]);
    let long = |first: usize, n: usize| (0..n).map(|k| (first + k, value(k))).collect::<Vec<_>>();
    vec![
        Csr::from_rows(COLUMNS, one_column).unwrap(),
        Csr::from_rows(MANY, [long(0, MANY)]).unwrap(),
        Csr::from_rows(MANY, [vec![], vec![], long(0, MANY), vec![], vec![(0, 1.0)]]).unwrap(),
        Csr::from_rows(MANY, [long(0, MANY / 2), long(MANY / 2, MANY / 2)]).unwrap(),
    ]
}

#[test]
fn patterns_that_do_not_divide_well() {
    for x in patterns() {
        let right = numbers(x.n_cols(), 1);
        let [one, three] = contexts().map(|mut context| {
            let (mut scores, mut sums) = (Dense::default(), Csr::default());
            dot::cpu::csr_dense(&mut scores, x.view(), right.view(), false, &mut context);
            let add = |x, y| x + y;
            binary::cpu::union_csr_csr(&mut sums, x.view(), x.view(), add, &mut context);
            (scores, sums)
        });
        assert!(one == three);
        assert!(one.1.values().iter().zip(x.values()).all(|(sum, value)| *sum == 2.0 * value));
    }
}

fn labels(data: &Dataset) -> &[f32] {
    match data.labels() {
        Some(ColumnValues::Dense(labels)) => labels.values(),
        _ => panic!("labels are numbers"),
    }
}

/// Text of which the head promises other rows than there are, whose lines are longer than what a
/// thread reads at a time, that has comments and lines of nothing, and whose columns become wide in
/// the end; read from memory and from a stream of unknown length.
#[test]
fn text_that_does_not_divide_well() {
    let short: String = (0..600_000).map(|i| format!("{} {}:1\n", i % 2, i % 9 + 1)).collect();
    let bare = "1\n".repeat(800_000);
    let entries: String = (1..40_000).map(|k| format!(" {k}:0.5")).collect();
    let long = format!("1{entries}\n-1 qid:3 7:1 # 8:1\n\n# none: 1:1\n").repeat(8);
    let wide = "1 3:1 4294967299:1\n".repeat(90_000);
    for text in [
        short.clone() + &long,
        bare.clone() + &short,
        short.clone() + &bare,
        short.clone() + &wide + &short,
        wide + &short,
    ] {
        let reader = Reader::new().index_base(IndexBase::One);
        let one = reader.read_bytes("text", text.as_bytes()).unwrap();
        let reader = reader.parallel(Parallel::Threads(3));
        let three = reader.read_bytes("text", text.as_bytes()).unwrap();
        assert!(one.features() == three.features() && labels(&one) == labels(&three));
        let streamed = reader.read("text", text.as_bytes()).unwrap();
        assert!(one.features() == streamed.features() && labels(&one) == labels(&streamed));
    }
}

/// What is skipped and what is told of it are those of one thread.
#[test]
fn text_with_faults() {
    let line = |i: usize| match i % 1000 {
        7 => "1 5:1 4:1\n".to_owned(),
        500 => "x 1:1 2:2\n".to_owned(),
        _ => format!("1 {}:1\n", i % 77 + 1),
    };
    let text: String = (0..400_000).map(line).collect();
    let reader = Reader::new().index_base(IndexBase::One).on_error(OnError::Skip(1000));
    let [one, three] = [Parallel::Sequential, Parallel::Threads(3)].map(|parallel| {
        let reader = reader.clone().parallel(parallel);
        reader.read_bytes("text", text.as_bytes()).unwrap()
    });
    assert_eq!(one.report(), three.report());
    assert_eq!(three.n_rows(), 400_000 - 800);
    assert!(one.features() == three.features());
}

#[test]
fn text() {
    let line = |i: usize| format!("{} {}:1 {}:0.{}\n", i % 2, i % 50 + 1, 60 + i % 1000, i % 997);
    let mut text: String = (0..200_000).map(line).collect();
    let read = |text: &str, parallel| {
        let reader = Reader::new().index_base(IndexBase::One).parallel(parallel);
        reader.read_bytes("text", text.as_bytes())
    };
    let [one, three] =
        [Parallel::Sequential, Parallel::Threads(3)].map(|parallel| read(&text, parallel).unwrap());
    assert_eq!((three.n_rows(), three.n_features()), (200_000, 1059));
    assert!(one.features() == three.features());

    // The first of two faults is the one reported, where it is.
    text.push_str("1 3:x\n");
    text.insert_str(text.len() * 2 / 3, "\n1 5:1 4:1\n");
    let line = text[..text.len() * 2 / 3].matches('\n').count();
    let [one, three] = [Parallel::Sequential, Parallel::Threads(3)]
        .map(|parallel| read(&text, parallel).unwrap_err().to_string());
    assert_eq!(one, three);
    let placed: Vec<&str> = one.splitn(4, ':').collect();
    let found: usize = placed[1].parse().unwrap();
    assert!(found.abs_diff(line) < 4, "{one} for line {line}");
}
