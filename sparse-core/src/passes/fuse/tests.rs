//! Tests of fusion: which steps are one loop, and why others are not.

use super::*;
use crate::compile::compile;
use crate::ir::parse;

fn run(text: &str) -> Fusion {
    let compiled = compile(parse(text).unwrap());
    assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
    compiled.fusion
}

const LINEAR: &str = "\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 1]
w = param row_sparse f32 [d, 1] \"\"
b = param dense f32 [1] \"\"
s = dot(x, w)
pred = add(s, b)
";

#[test]
fn a_linear_model_is_one_loop() {
    let Fusion::RowLoop(parts) =
        run(&format!("{LINEAR}p = sigmoid(pred)\nl = logistic(pred, y)\nloss l\noutput p = p"))
    else {
        panic!("not fused")
    };
    assert_eq!(parts.forward.len(), 2);
    assert!(parts.backward.is_empty());
    assert_eq!(parts.terms.all()[0].gradient, parts.score_gradient);
    assert_eq!(parts.reductions.len(), 1);
}

#[test]
fn a_pattern_is_read_by_the_same_loop() {
    let text = LINEAR.replace("csr f32", "csr unit");
    let fusion = run(&format!("{text}l = logistic(pred, y)\nloss l\noutput pred = pred"));
    assert!(matches!(fusion, Fusion::RowLoop(_)), "{:?}", fusion.reason());
}

#[test]
fn element_wise_chains_are_part_of_the_loop() {
    let Fusion::RowLoop(parts) = run(&format!(
        "{LINEAR}h = tanh(pred)\ng = multiply(h, 2)\nl = squared_error(g, y)\nloss l\noutput g = g"
    )) else {
        panic!("not fused")
    };
    assert_eq!((parts.forward.len(), parts.backward.len()), (3, 2));
    assert!(parts.backward.contains(&parts.terms.all()[0].gradient));
}

#[test]
fn weights_of_rows_are_part_of_the_loop_where_they_are_data() {
    let head = LINEAR.replace("w = param", "v = label dense f32 [n]\nw = param");
    let Fusion::RowLoop(parts) = run(&format!("{head}l = hinge(pred, y, v)\nloss l")) else {
        panic!("not fused")
    };
    assert_eq!(parts.row_weight, Some(ValueId(2)));
    let unfused = run(&format!("{head}u = square(v)\nl = hinge(pred, y, u)\nloss l"));
    assert_eq!(unfused.reason(), Some("the weights of the rows are not data"));
    let csr = LINEAR.replace("label dense", "label csr");
    let unfused = run(&format!("{csr}l = poisson(pred, y)\nloss l"));
    assert_eq!(unfused.reason(), Some("the label is `csr`"));
}

#[test]
fn an_interaction_is_part_of_the_loop() {
    let text =
        LINEAR.replace("b = param", "v = param row_sparse f32 [d, 4] \"\"\nb = param").replace(
            "pred = add(s, b)",
            "q = pairwise_interaction(x, v)\nt = add(s, q)\npred = add(t, b)",
        );
    let Fusion::RowLoop(parts) = run(&format!("{text}l = logistic(pred, y)\nloss l")) else {
        panic!("not fused")
    };
    let Terms::Linear(Linear { interaction: Some(interaction), .. }) = &parts.terms else {
        panic!("no interaction")
    };
    assert_eq!(interaction.size, Dim::Size(4));
    assert_eq!(interaction.term.gradient, parts.score_gradient);
    assert_eq!((parts.forward.len(), parts.reductions.len()), (2, 1));
}

/// A row's interaction has a column, and the product with a vector none.
#[test]
fn an_interaction_beside_a_product_with_a_vector_is_not() {
    let text = "\
model M f32
x = input csr f32 [n, d]
y = label dense f32 [n, 1]
w = param row_sparse f32 [d] \"\"
v = param row_sparse f32 [d, 3] \"\"
s = dot(x, w)
q = pairwise_interaction(x, v)
c = expand_dims(s, axis = 1)
t = add(q, c)
l = squared_error(t, y)
loss l";
    assert!(matches!(run(text), Fusion::None { .. } | Fusion::Scattered { .. }));
}

#[test]
fn unfused_steps_say_why() {
    let text = format!("{LINEAR}l = squared_error(pred, y)\nm = mean(pred)\nt = add(l, m)\nloss t");
    let because = "the loss is computed by `add`, not by a loss of the table";
    assert_eq!(run(&text).reason(), Some(because));
    assert!(matches!(run(&text), Fusion::Scattered { .. }));
    let mut off = parse(&text).unwrap();
    off.no_fuse = true;
    assert_eq!(compile(off).fusion, Fusion::None { reason: "the model says `fuse = off`".into() });
}

const FACTORS: &str = "\
model M f32
u = input dense u32 [n]
i = input dense u32 [n]
y = label dense f32 [n]
p = param row_sparse f32 [users, 4] \"\"
q = param row_sparse f32 [items, 4] \"\"
c = param row_sparse f32 [items] \"\"
b = param dense f32 [1] \"\"
pu = take(p, u)
qi = take(q, i)
m = multiply(pu, qi)
";

#[test]
fn inner_products_and_numbers_of_rows_named_by_ids_are_one_loop() {
    let text = format!(
        "{FACTORS}s = sum(m, axis = 1)\nt = take(c, i)\nr = add(s, t)\nz = add(r, b)\n\
         l = squared_error(z, y)\nloss l\noutput z = z"
    );
    let Fusion::RowLoop(parts) = run(&text) else { panic!("{:?}", run(&text).reason()) };
    let Terms::Lookups(lookups) = &parts.terms else { panic!("no lookups") };
    let reads: Vec<usize> = lookups.iter().map(|lookup| lookup.read.rows().count()).collect();
    assert_eq!(reads, [2, 1]);
    assert!(parts.terms.all().iter().all(|term| term.gradient == parts.score_gradient));
    assert_eq!((parts.columns.clone(), parts.terms.tables().len()), (Dim::Size(1), 3));
    assert_eq!((parts.forward.len(), parts.backward.len(), parts.reductions.len()), (2, 0, 1));
}

#[test]
fn lookups_that_are_not_one_loop_say_why() {
    // All parameters are read.
    let tail = "d = take(c, i)\ne = add(s, d)\nz = add(e, b)\nl = squared_error(z, y)\nloss l";
    let because = |lines: &str| {
        let fusion = run(&format!("{FACTORS}{lines}\n{tail}"));
        fusion.reason().map(str::to_owned)
    };
    let inner = "s = sum(m, axis = 1)";
    assert_eq!(because(inner), None);
    let output = because(&format!("{inner}\noutput m = m"));
    assert_eq!(output.as_deref(), Some("the output `m` is not a number a row"));
    // A parameter in two places has a gradient of two terms.
    let twice = because("r = sum(m, axis = 1)\ng = sum(pu, axis = 1)\ns = add(r, g)");
    assert_eq!(twice.as_deref(), Some("`p` is read in other ways than as `r`"));
    assert_eq!(because("s = mean(m, axis = 1)"), None, "a mean is a sum");
    let largest = because("s = max(m, axis = 1)");
    assert_eq!(largest.as_deref(), Some("`pu` (`take`) is not element-wise over the rows"));
}
