use super::{PlanTable, Sizes, layout};
use crate::compile::compile;
use crate::ir::parse;
use proptest::prelude::*;
use std::collections::BTreeSet;

const LINEAR: &str = "\
model LinearRegression f32
x = input csr f32 [n, d]
y = label dense f32 [n, 1]
w = param row_sparse f32 [d, 1] \"Zeros\"
b = param dense f32 [1] \"Zeros\"
s = dot(x, w)
pred = add(s, b)
l = squared_error(pred, y)
loss l
output pred = pred
";

const MACHINE: &str = "\
model FactorizationMachine f64 fallback = warn
x = input csr f64 [n, d]
y = label dense f64 [n, 1]
w = param row_sparse f64 [d, 1] \"\"
v = param row_sparse f64 [d, k] \"\"
c = param(frozen) dense f64 [1] \"\"
s = dot(x, w)
linear = add(s, c)
xv = dot(x, v)
square_of_sum = square(xv)
x2 = square(x)
v2 = square(v)
sum_of_squares = dot(x2, v2)
difference = subtract(square_of_sum, sum_of_squares)
total = sum(difference, axis = 1, keepdims = true)
pairs = multiply(total, 0.5)
logit = add(linear, pairs)
p = sigmoid(logit)
l = logistic(logit, y)
loss l
output p = p
";

const FALLBACK: &str = "\
model Fallback f32 fallback = warn
b = input csr f32 [n, d]
c = input row_sparse f32 [n, d]
sum = add(b, c)
logarithm = log(b)
output sum = sum
output logarithm = logarithm
";

fn plan<R>(text: &str, read: impl FnOnce(&PlanTable<'_>) -> R) -> R {
    let compiled = compile(parse(text).unwrap());
    assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
    compiled.inspect(read)
}

fn batch() -> Sizes {
    let mut sizes = Sizes::default();
    sizes.dim("d", 1_000_000);
    sizes.dim("k", 10);
    sizes.input("x", &[32, 1_000_000], Some(1000), Some((0..900).collect()));
    sizes
}

#[test]
fn a_linear_model_has_its_table() {
    let expected = "\
LinearRegression (f32)
value   shape   storage     gradient    bytes               written to  computed by
x       [n, d]  csr                     8·nnz(x) + 8·n + 8              input
y       [n, 1]  dense                   4·n                             label
w       [d, 1]  row_sparse  row_sparse  4·d                             parameter, decays
b       [1]     dense       dense       4                               parameter, no decay
s       [n, 1]  dense                   4·n                 buffer 0    dot_csr_row_sparse(x, w) *
pred    [n, 1]  dense                   4·n                 output      add_dense_dense(s, b) *
l       []      dense                   4                   buffer 0    squared_error_dense_dense
                                                                          (pred, y) *
%7      [n, 1]  dense                   4·n                 buffer 1    squared_error_gradient
                                                                          _dense_dense(pred, y) *
grad b  [1]     dense                   4                   gradient    reduce_to_dense_dense
                                                                          (%7, b) *
grad w  [d, 1]  row_sparse              12·columns(x)       gradient    dot_csr_transposed_dense
                                                                          (x, %7) *
rows of w: a batch reads the columns of x, writes the columns of x
rows of b: a batch reads all rows, writes all rows
on a GPU: binary for pred; mean_loss for l; loss_gradient for %7; the others by the same names
step: one loop over the rows of x (product, l, update of w), marked *
";
    plan(LINEAR, |plan| assert_eq!(plan.to_string(), expected, "{plan}"));
}

#[test]
fn a_plan_says_what_a_gpu_launches() {
    let last = |text: &str, start: &str| {
        let text = plan(text, |plan| plan.to_string());
        text.lines().find(|line| line.starts_with(start)).map(str::to_owned)
    };
    let machine = last(MACHINE, "on a GPU: ").unwrap();
    assert!(machine.starts_with("on a GPU: binary for linear, difference, pairs, "), "{machine}");
    // A kernel of its own has the same name; a copy is one of those.
    let product = "model M f32\nx = input csr f32 [n, d]\nr = input dense f32 [d, 2]\ny = dot(x, r)\noutput y = y\n";
    assert_eq!(last(product, "on a GPU").as_deref(), Some("on a GPU: kernels of the same names"));
    let function = "model M f32\nx = input csr f32 [n, d]\ny = tanh(x)\noutput y = y\n";
    assert_eq!(last(function, "on a GPU").as_deref(), Some("on a GPU: unary for y"));
    let nothing = "model M f32\nx = input csr f32 [n, d]\n";
    let says_nothing = |plan: &PlanTable<'_>| !plan.to_string().contains("GPU");
    assert!(compile(parse(nothing).unwrap()).inspect(says_nothing));
}

/// A value that no kernel of a GPU computes is named, and the model is said to stay on the host.
#[test]
fn a_plan_names_what_a_gpu_has_not() {
    plan("model M f32\nx = input csr f32 [n, d]\ny = tanh(x)\noutput y = y\n", |plan| {
        let mut values = plan.values.to_vec();
        let how = values[1].computed.as_mut().unwrap();
        assert_eq!((how.kernel, how.on_gpu), ("tanh_csr", Some("unary")));
        how.on_gpu = None;
        let text = PlanTable { values: &values, ..*plan }.to_string();
        assert!(
            text.contains("on a GPU: no kernel for tanh_csr of y: the model stays on the host\n"),
            "{text}"
        );
    });
}

#[test]
fn the_table_of_a_batch_has_numbers() {
    let expected = "\
LinearRegression (f32)
value   shape          storage     gradient        bytes  written to  computed by
x       [32, 1000000]  csr                         8_264              input
y       [32, 1]        dense                         128              label
w       [1000000, 1]   row_sparse  row_sparse  4_000_000              parameter, decays
b       [1]            dense       dense               4              parameter, no decay
s       [32, 1]        dense                         128  buffer 0    dot_csr_row_sparse(x, w) *
pred    [32, 1]        dense                         128  output      add_dense_dense(s, b) *
l       []             dense                           4  buffer 0    squared_error_dense_dense
                                                                        (pred, y) *
%7      [32, 1]        dense                         128  buffer 1    squared_error_gradient
                                                                        _dense_dense(pred, y) *
grad b  [1]            dense                           4  gradient    reduce_to_dense_dense(%7, b) *
grad w  [1000000, 1]   row_sparse                 10_800  gradient    dot_csr_transposed_dense
                                                                        (x, %7) *
rows of w: a batch reads the columns of x, writes the columns of x
rows of b: a batch reads all rows, writes all rows
on a GPU: binary for pred; mean_loss for l; loss_gradient for %7; the others by the same names
step: one loop over the rows of x (product, l, update of w), marked *
memory: parameters 4_000_004, gradients 10_804, outputs 128, batch 8_392, workspace 256 bytes
";
    plan(LINEAR, |plan| assert_eq!(plan.bind(batch()).to_string(), expected));
}

#[test]
fn conversions_of_a_fallback_are_marked() {
    let expected = "\
Fallback (f32)
value      shape   storage     bytes               written to  computed by
b          [n, d]  csr         8·nnz(b) + 8·n + 8              input
c          [n, d]  row_sparse  (4·d + 8)·rows(c)               input
%2         [n, d]  dense       4·n·d               buffer 0    fallback: dense_row_sparse(c)
sum        [n, d]  dense       4·n·d               output      add_csr_dense(b, %2)
%4         [n, d]  dense       4·n·d               buffer 0    fallback: dense_csr(b)
logarithm  [n, d]  dense       4·n·d               output      log_dense(%4)
on a GPU: binary for sum; unary for logarithm; the others by the same names
";
    plan(FALLBACK, |plan| {
        assert_eq!(plan.to_string(), expected, "{plan}");
        assert!(plan.warns);
        let notes: Vec<_> = plan.positions().filter_map(|value| plan.fallback(value)).collect();
        let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes,
            [
                "fallback: `add` converts `c` from row_sparse to dense [n, d]: 4·n·d bytes instead of (4·d + 8)·rows(c)",
                "fallback: `log` converts `b` from csr to dense [n, d]: 4·n·d bytes instead of 8·nnz(b) + 8·n + 8",
            ]
        );
    });
    let spelled =
        "model M f32 fallback = warn\nb = input csr f32 [n, d]\ne = dense(b)\noutput e = e";
    plan(spelled, |plan| assert_eq!(plan.fallbacks().count(), 0));
}

#[test]
fn bytes_follow_the_pattern_of_an_operand() {
    plan(MACHINE, |plan| {
        let bound = plan.bind(Sizes::default());
        let bytes = |name| bound.bytes(name).unwrap().to_string();
        assert_eq!(bytes("x2"), "12·nnz(x) + 8·n + 8");
        assert_eq!(bytes("v"), "8·d·k");
        // A function of a table that is read by rows stores these, with their ids.
        assert_eq!(bytes("v2"), "(8·k + 8)·columns(x)");
        let gradient = plan.value("v").unwrap().gradient.unwrap();
        assert!(plan.line(gradient).contains("(8·k + 8)·columns(x)"), "{}", plan.line(gradient));
        let memory = plan.bind(batch()).memory();
        assert_eq!(memory.parameters.number(), Some(8 * (10 + 1) * 1_000_000 + 8));
        assert_eq!(memory.gradients.number(), Some(900 * (8 + 8) + 900 * (8 + 80)));
    });
    let text = "model M f32\nx = input csr f32 [n, d]\nz = input csr f32 [n, d]\nr = input csr f32 [1, d]\n\
                g = input dense f32 [n, d]\ns = square(x)\nt = multiply(x, s)\nu = add(x, z)\nv = multiply(r, g)\n\
                output s = s\noutput t = t\noutput u = u\noutput v = v";
    plan(text, |plan| {
        let bound = plan.bind(Sizes::default());
        let bytes = |name| bound.bytes(name).unwrap().to_string();
        assert_eq!(bytes("t"), "8·nnz(x) + 8·n + 8");
        // What the operators do not say is a size of its own.
        assert_eq!(bytes("u"), "8·nnz(u) + 8·n + 8");
        assert_eq!(bytes("v"), "8·nnz(v) + 8·n + 8");
    });
    let wide = "model M f32\nx = input csr f32 [n, 4294967297]\ny = tanh(x)\noutput y = y";
    plan(wide, |plan| {
        let bytes = plan.bind(Sizes::default()).bytes("y").unwrap();
        assert_eq!(bytes.to_string(), "12·nnz(x) + 8·n + 8");
    });
}

/// A pattern has no values to take memory; where they are written out, the plan says what that
/// takes.
#[test]
fn patterns_take_their_columns_only() {
    let text = MACHINE.replace("input csr f64", "input csr unit");
    plan(&text, |plan| {
        let bytes = |name: &str| {
            let position = plan.values.iter().position(|value| plan.label(value.number) == name);
            super::bytes::bytes(plan, position.unwrap() as u32, &Sizes::default()).to_string()
        };
        assert_eq!(bytes("x"), "4·nnz(x) + 8·n + 8");
        let line = |end: &str| {
            let lines = (0..plan.values.len() as u32).map(|position| plan.line(position));
            lines.into_iter().find(|line| line.trim_end().ends_with(end)).unwrap()
        };
        assert!(line("input").contains("csr<unit>"), "{}", line("input"));
        assert!(line("dot_unit_row_sparse(x, v)").contains("xv "));
        let ones = line(" csr_unit(x)");
        assert!(ones.contains(" 12·nnz(x) + 8·n + 8 "), "{ones}");
    });
}

#[test]
fn the_rows_of_two_inputs_are_counted_once() {
    let text = "model M f32\nx = input csr f32 [n, d]\nz = input csr f32 [n, d]\ny = label dense f32 [n, 2]\n\
                w = param row_sparse f32 [d, 2] \"\"\ns = dot(x, w)\nt = dot(z, w)\nu = add(s, t)\n\
                l = squared_error(u, y)\nloss l";
    plan(text, |plan| {
        let gradient = plan.value("w").unwrap().gradient.unwrap();
        assert!(plan.line(gradient).contains(" 16·columns(x, z) "), "{}", plan.line(gradient));
        let mut sizes = Sizes::default();
        sizes.input("x", &[2, 9], Some(3), Some(vec![0, 4, 5]));
        sizes.input("z", &[2, 9], Some(2), Some(vec![4, 8]));
        let memory = plan.bind(sizes).memory();
        assert_eq!(memory.gradients.number(), Some(4 * 16));
        assert_eq!(memory.parameters.number(), Some(4 * 9 * 2));
    });
}

#[test]
fn a_line_has_its_head() {
    plan(LINEAR, |plan| {
        assert_eq!(
            plan.line(2),
            "value  shape   storage     gradient    bytes  computed by\n\
             w      [d, 1]  row_sparse  row_sparse  4·d    parameter, decays\n"
        );
    });
}

#[test]
fn no_line_is_wider_than_a_page() {
    for text in [LINEAR, MACHINE, FALLBACK] {
        plan(text, |plan| {
            for text in [plan.to_string(), plan.bind(batch()).to_string()] {
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(100), "{text}");
                assert!(text.lines().all(|line| line.trim_end() == line));
            }
        });
    }
}

#[test]
fn graphviz_is_well_formed() {
    for text in [LINEAR, MACHINE, FALLBACK] {
        let dot = plan(text, |plan| plan.to_dot());
        let mut nodes = BTreeSet::new();
        let mut edges = Vec::new();
        let lines: Vec<&str> = dot.lines().collect();
        let (first, last) = (lines[0], lines[lines.len() - 1]);
        assert!(first.starts_with("digraph ") && first.ends_with('{') && last == "}", "{dot}");
        for line in &lines[2..lines.len() - 1] {
            assert!(line.ends_with("];"), "{line}");
            assert_eq!(line.matches('"').count() % 2, 0, "{line}");
            let (ends, _) = line.trim().split_once(" [").unwrap();
            match ends.split_once(" -> ") {
                Some((from, to)) => edges.push((from, to)),
                None => assert!(nodes.insert(ends), "{ends} twice"),
            }
        }
        assert!(edges.iter().all(|(a, b)| nodes.contains(a) && nodes.contains(b)), "{dot}");
        plan(text, |plan| assert_eq!(nodes.len(), plan.values.len()));
    }
    let dashed = plan(FALLBACK, |plan| plan.to_dot()).matches("dashed").count();
    assert_eq!(dashed, 2);
}

/// Left, top, right, bottom.
type Rectangle = [f64; 4];

fn boxes(svg: &roxmltree::Document<'_>) -> Vec<Rectangle> {
    svg.descendants()
        .filter(|node| node.attribute("class") == Some("value"))
        .map(|node| {
            let [x, y, width, height] = ["x", "y", "width", "height"]
                .map(|name| node.attribute(name).unwrap().parse::<f64>().unwrap());
            [x, y, x + width, y + height]
        })
        .collect()
}

fn overlap(a: &Rectangle, b: &Rectangle) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[test]
fn the_picture_is_xml_and_its_boxes_are_apart() {
    for text in [LINEAR, MACHINE, FALLBACK] {
        let svg = plan(text, |plan| plan.to_svg());
        let document = roxmltree::Document::parse(&svg).unwrap();
        let boxes = boxes(&document);
        plan(text, |plan| assert_eq!(boxes.len(), plan.values.len()));
        for (index, a) in boxes.iter().enumerate() {
            assert!(a[0] >= 0.0 && a[1] >= 0.0, "{a:?}");
            assert!(boxes[..index].iter().all(|b| !overlap(a, b)), "{svg}");
        }
        let size = |name| document.root_element().attribute(name).unwrap().parse::<f64>().unwrap();
        assert!(boxes.iter().all(|a| a[2] <= size("width") && a[3] <= size("height")));
    }
    // Two boxes and the legend.
    assert_eq!(plan(FALLBACK, |plan| plan.to_svg()).matches("stroke-dasharray").count(), 3);
}

#[test]
fn names_are_escaped() {
    let table = PlanTable::empty("A<B> & \"C\"");
    assert!(table.to_dot().starts_with("digraph \"A<B> & \\\"C\\\"\" {"));
    let svg = table.to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    assert!(document.descendants().any(|node| node.text() == Some("A<B> & \"C\"")));
}

proptest! {
    /// Any graph: boxes are apart, lines go down and touch no box but those at their ends.
    #[test]
    fn any_graph_is_laid_out(
        widths in prop::collection::vec(20.0..200.0f64, 1..30),
        operands in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 30),
    ) {
        let mut edges = BTreeSet::new();
        for (to, (first, second, _)) in operands.iter().enumerate().take(widths.len()).skip(1) {
            edges.insert((first.index(to), to));
            edges.insert((second.index(to), to));
        }
        let diagram = layout::Diagram {
            height: 40.0,
            right: operands.iter().map(|(_, _, right)| *right).take(widths.len()).collect(),
            edges: edges.into_iter().collect(),
            widths,
        };
        let placed = layout::layout(&diagram);
        let boxes: Vec<Rectangle> = placed.boxes.iter().zip(&diagram.widths)
            .map(|(p, w)| [p.x - w / 2.0, p.y - 20.0, p.x + w / 2.0, p.y + 20.0])
            .collect();
        for (index, a) in boxes.iter().enumerate() {
            prop_assert!(a[0] >= -1e-6 && a[2] <= placed.size.x + 1e-6 && a[3] <= placed.size.y + 1e-6);
            prop_assert!(boxes[..index].iter().all(|b| !overlap(a, b)));
        }
        for (from, to) in &diagram.edges {
            prop_assert!(boxes[*from][3] < boxes[*to][1], "{from} is not above {to}");
        }
        for line in &placed.lines {
            prop_assert!(line.from.y < line.to.y);
            if let Some(bottom) = line.through {
                let through = [line.to.x, line.to.y, line.to.x, bottom];
                prop_assert!(boxes.iter().all(|a| !overlap(a, &through)));
            }
        }
    }
}
