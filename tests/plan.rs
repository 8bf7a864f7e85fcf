//! What the compiler decided, seen from a program: the table of a model and a batch, the log,
//! run-time warnings.
use crate::own_process;
use nnz::core::inspect::{Part, Written};
use nnz::prelude::*;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

graph! {
    /// Logistic regression.
    pub model Logistic {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let logit = dot(x, w) + b;
        loss logistic(logit, y);
        output p = sigmoid(logit);
    }

    /// Least-squares regression on sparse features, as in the README.
    pub model LinearRegression {
        input x: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.01 };
        param b: dense[1] = Zeros;

        let pred = dot(x, w) + b;

        loss squared_error(pred, y);
        output pred;
    }

    /// One product, stored as each annotation asks for it.
    pub model Annotated {
        input x: csr[n, d];
        input r: dense[n, 2];
        let rows: row_sparse[d, 2] = dot(x, r, transpose_lhs = true);
        let table: dense[d, 2] = dot(x, r, transpose_lhs = true);
        let claimed = dot(x, -r, transpose_lhs = true);
        output rows;
        output table;
        output claimed: dense[d, 2];
    }

    pub model Silent {
        fallback = allow;
        input b: csr[n, d];
        output logarithm = log(b);
    }
}

/// A warning of the compiler, too: here it is expected.
#[allow(deprecated)]
mod warned {
    nnz::graph! {
        pub model Warned {
            fallback = warn;
            input b: csr[n, d];
            input c: row_sparse[n, d];
            output sum = b + c;
            output logarithm = log(b);
        }
    }
}

fn three_rows() -> (Csr, Dense) {
    let rows = [vec![(0, 1.0), (4, 2.0)], vec![(4, 1.0), (7, 3.0), (9, 1.0)], vec![]];
    (Csr::from_rows(10, rows).unwrap(), Dense::new([3, 1], vec![1.0, 0.0, 1.0]).unwrap())
}

#[test]
fn an_annotation_chooses_the_kernel() {
    let r = Dense::new([3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let (x, _) = three_rows();
    let mut model = Annotated::new(dims! {}, Seed(0)).unwrap();
    let batch = AnnotatedBatch { x: x.view(), r: r.view() };
    let outputs = model.forward(&batch).unwrap();
    let (rows, table, claimed): (&RowSparse, &Dense, &Dense) =
        (&outputs.rows, &outputs.table, &outputs.claimed);
    assert_eq!((rows.indices(), rows.row(4)), (&[0, 4, 7, 9][..], Some(&[5.0, 8.0][..])));
    assert_eq!(rows.to_dense().unwrap().values(), table.values());
    assert!(table.values().iter().zip(claimed.values()).all(|(table, claimed)| *table == -claimed));
    let computed = Annotated::PLAN.values.iter().filter_map(|value| value.computed);
    let kernels: Vec<&str> = computed.map(|how| how.kernel).collect();
    assert_eq!(
        kernels,
        [
            "dot_csr_transposed_dense",
            "dot_csr_transposed_dense_into_dense",
            "negative_dense",
            "dot_csr_transposed_dense_into_dense"
        ]
    );
}

#[test]
fn numbers_of_a_batch_are_those_of_its_arrays() {
    let (x, y) = three_rows();
    let mut model = Logistic::new(dims! { d: 10 }, Seed(1)).unwrap();
    let batch = LogisticBatch { x: x.view(), y: y.view() };
    model.loss_and_grads(&batch).unwrap();
    let plan = model.plan();
    assert_eq!(plan.bytes("w").unwrap().number(), Some(40));
    assert_eq!(plan.bytes("x").unwrap().number(), None);
    let plan = plan.bind(&batch);
    let csr = 4 * x.values().len() + 4 * x.nnz() + 8 * (x.n_rows() + 1);
    assert_eq!(plan.bytes("x").unwrap().number(), Some(csr as u128));
    let memory = plan.memory();
    let gradients = model.gradients();
    let w = 8 * gradients.w.indices().len() + 4 * gradients.w.values().len();
    assert_eq!(memory.gradients.number(), Some((w + 4 * gradients.b.values().len()) as u128));
    assert_eq!(memory.outputs.number(), Some(4 * model.outputs().p.values().len() as u128));
    assert_eq!(memory.parameters.number(), Some(44));
    let text = plan.to_string();
    assert!(text.contains("x       [3, 10]  csr "), "{text}");
    assert!(text.contains("memory: parameters 44, gradients 52, "), "{text}");
    assert!(plan.to_svg().contains(">row_sparse [10, 1]<"));
}

#[test]
fn a_plan_is_data() {
    let plan = Logistic::PLAN;
    assert!(plan.is_fused());
    let w = plan.value("w").unwrap();
    assert_eq!(w.part, Part::Parameter);
    let gradient = &plan.values[w.gradient.unwrap() as usize];
    assert_eq!(gradient.storage.name(), "row_sparse");
    assert_eq!(gradient.written, Some(Written::Gradient(2)));
    assert_eq!(gradient.computed.unwrap().kernel, "dot_csr_transposed_dense");
    assert!(plan.to_string().contains("p       [n, 1]  dense "), "{plan}");
    assert!(plan.to_dot().contains("p = sigmoid"));
}

/// Compares a committed file with what it should be, or writes it under `NNZ_BLESS=1`.
fn check_file(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os("NNZ_BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} is stale: run `NNZ_BLESS=1 cargo test --test plan`",
        path.display()
    );
}

#[test]
fn the_readme_shows_the_plan() {
    let readme = include_str!("../README.md");
    let (before, rest) = readme.split_once("<!-- plan -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of plan -->").unwrap();
    let plan = LinearRegression::PLAN;
    let expected =
        format!("{before}<!-- plan -->\n```text\n{plan}```\n<!-- end of plan -->{after}");
    check_file("README.md", &expected);
    check_file("docs/plan.svg", &plan.to_svg());
}

/// Remembers what is logged, with its fields.
#[derive(Clone, Default)]
struct Collect(Arc<Mutex<Vec<String>>>);

impl Collect {
    fn during(body: impl FnOnce()) -> Vec<String> {
        let collect = Collect::default();
        tracing::subscriber::with_default(collect.clone(), body);
        let lines = collect.0.lock().unwrap();
        lines.clone()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Collect {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("nnz::")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}:", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn each_conversion_warns_once_in_a_process() {
    let make = || drop(warned::Warned::new(dims! {}, Seed(0)).unwrap());
    let first = Collect::during(|| {
        make();
        make();
    });
    assert_eq!(first.len(), warned::Warned::PLAN.fallbacks().count());
    assert_eq!(first.len(), 2);
    for part in [
        &format!("{} nnz::fallback:", Level::WARN),
        "model=\"Warned\"",
        "operator=\"add\"",
        "operand=\"c\"",
        "from=row_sparse",
        "to=dense",
        "bytes=4·n·d",
        "`add` converts `c` from row_sparse to dense [n, d]: 4·n·d bytes instead of (4·d + 8)·rows(c)",
    ] {
        assert!(first[0].contains(part), "no `{part}` in {}", first[0]);
    }
    assert!(first[1].contains("`log` converts `b`"));
    assert!(Collect::during(make).is_empty());
}

#[test]
fn an_allowed_fallback_says_nothing_but_in_the_plan() {
    let lines = Collect::during(|| drop(Silent::new(dims! {}, Seed(0)).unwrap()));
    assert!(lines.is_empty(), "{lines:?}");
    assert_eq!(Silent::PLAN.fallbacks().count(), 1);
    assert!(Silent::PLAN.to_string().contains("fallback: dense_csr(b)"), "{}", Silent::PLAN);
}

/// Runs one test of this file by itself, with `NNZ_LOG` set.
fn run_alone(test: &str, log: &str) -> Output {
    own_process::command(&format!("plan::{test}")).env("NNZ_LOG", log).output().unwrap()
}

#[test]
fn a_model_is_made() {
    Logistic::new(dims! { d: 1000 }, Seed(1)).unwrap();
}

#[test]
fn a_model_is_made_under_a_subscriber() {
    let lines = Collect::during(a_model_is_made);
    println!("{}", lines.join("\n"));
}

#[test]
fn the_environment_asks_for_the_plan() {
    let row = "w       [1000, 1]  row_sparse  row_sparse  4_000";
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();

    // Without a subscriber: standard error.
    let output = run_alone("a_model_is_made", "plan");
    assert!(output.status.success());
    assert!(text(&output.stderr).contains(row), "{}", text(&output.stderr));

    // With one: a single event, and nothing else.
    let output = run_alone("a_model_is_made_under_a_subscriber", "other, plan");
    assert_eq!(text(&output.stdout).matches(row).count(), 1, "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("INFO nnz::plan:"));
    assert!(text(&output.stdout).contains("model=\"Logistic\""));
    assert!(!text(&output.stderr).contains(row));

    // Not asked.
    let output = run_alone("a_model_is_made", "planes");
    assert!(!text(&output.stderr).contains(row));
}
