//! Tests of row programs: what has one, and why others have none.

use super::*;
use crate::compile::compile;
use crate::ir::parse;
use crate::passes::Fusion;

fn run(text: &str) -> Fusion {
    let compiled = compile(parse(text).unwrap());
    assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
    compiled.fusion
}

const LAYERS: &str = "\
model M f32
x = input csr f32 [n, d]
u = input dense u32 [n]
y = label dense f32 [n, 1]
w = param row_sparse f32 [d, 1] \"\"
t = param row_sparse f32 [d, 4] \"\"
e = param row_sparse f32 [m, 2] \"\"
h = param dense f32 [6, 3] \"\"
b = param dense f32 [3] \"\"
g = param dense f32 [3, 1] \"\"
bags = embedding_bag(x, t)
of_user = take(e, u)
both = concat(bags, of_user, axis = 1)
in = dot(both, h)
biased = add(in, b)
hidden = relu(biased)
deep = dot(hidden, g)
wide = dot(x, w)
score = add(wide, deep)
";

fn program_of(text: &str) -> Result<RowProgram, String> {
    match run(text) {
        Fusion::Scattered { program, .. } => program.map(|program| *program),
        fusion => panic!("{fusion:?}"),
    }
}

#[test]
fn dense_layers_over_rows_are_one_loop_for_a_row() {
    let program =
        program_of(&format!("{LAYERS}l = logistic(score, y)\nloss l\noutput score = score"));
    let program = program.unwrap();
    assert_eq!(program.reads.len(), 3);
    let gradients: Vec<_> = program.dense.iter().flat_map(|(_, terms)| terms).collect();
    assert!(
        matches!(
            gradients[..],
            [DenseGradient::Outer(..), DenseGradient::Row(_), DenseGradient::Outer(..)]
        ),
        "{gradients:?}"
    );
    let count = |is: fn(&RowComputed) -> bool| {
        program.values.iter().filter(|value| is(&value.computed)).count()
    };
    assert_eq!(count(|it| matches!(it, RowComputed::Product { transposed: false, .. })), 2);
    assert_eq!(count(|it| matches!(it, RowComputed::Product { transposed: true, .. })), 2);
    assert_eq!(count(|it| matches!(it, RowComputed::Joined { .. })), 1);
    assert_eq!(count(|it| matches!(it, RowComputed::Part { .. })), 2);
    assert_eq!(count(|it| matches!(it, RowComputed::LossGradient(_))), 1);
}

#[test]
fn connected_layers_and_vectors_are_one_loop_for_a_row() {
    let text = LAYERS
        .replace("[n, 1]", "[n]")
        .replace("w = param row_sparse f32 [d, 1]", "w = param row_sparse f32 [d]")
        .replace("h = param dense f32 [6, 3]", "h = param dense f32 [3, 6]")
        .replace("g = param dense f32 [3, 1]", "g = param dense f32 [3]")
        .replace("in = dot(both, h)\nbiased = add(in, b)", "biased = fully_connected(both, h, b)");
    let program = program_of(&format!("{text}l = logistic(score, y)\nloss l")).unwrap();
    let gradients: Vec<_> = program.dense.iter().flat_map(|(_, terms)| terms).collect();
    assert!(
        matches!(
            gradients[..],
            [DenseGradient::Outer(..), DenseGradient::Row(_), DenseGradient::Outer(..)]
        ),
        "{gradients:?}"
    );
    let products = program.values.iter().filter_map(|value| match value.computed {
        RowComputed::Product { transposed, bias, .. } => Some((transposed, bias.is_some())),
        _ => None,
    });
    // The layer, the product with a vector, and back.
    let expected = [(true, true), (false, false), (true, false), (false, false)];
    assert_eq!(products.collect::<Vec<_>>(), expected);
}

#[test]
fn layers_that_are_no_loop_say_why() {
    let loss = "l = logistic(score, y)\nloss l";
    let because = |text: &str| program_of(text).unwrap_err();
    let wide = LAYERS.replace(", 3]", ", k]").replace("[3", "[k");
    assert!(program_of(&format!("{wide}{loss}")).is_ok(), "known once the model is made");
    let long = LAYERS.replace(", 3]", ", 3000]").replace("[3", "[3000");
    assert!(program_of(&format!("{long}{loss}")).is_ok());
    let twice = LAYERS
        .replace("add(wide, deep)", "add(once, wide)\nz = dot(x, w)")
        .replace("score = add", "again = square(wide)\nonce = add(again, deep)\nscore = add");
    assert!(program_of(&format!("{twice}{loss}")).is_ok(), "read once, used twice");
    let twice = LAYERS.replace("add(wide, deep)", "add(wide, other)").replace(
        "score = add",
        "v = input csr f32 [n, d]\nmore = dot(v, w)\nother = add(more, deep)\nscore = add",
    );
    let program = program_of(&format!("{twice}{loss}")).unwrap();
    assert_eq!(program.reads_by_table().map(<[_]>::len).collect::<Vec<_>>(), [2, 1, 1]);
    let stopped = twice
        .replace("add(wide, other)", "add(kept, other)")
        .replace("score = add", "kept = stop_gradient(wide)\nscore = add");
    let program = program_of(&format!("{stopped}{loss}")).unwrap();
    let of_w = program.reads_by_table().next().unwrap();
    let has_gradient: Vec<bool> = of_w.iter().map(|read| read.gradient.is_some()).collect();
    assert_eq!(has_gradient, [false, true]);
    for axis in [0, -2] {
        let normed = LAYERS.replace("relu(biased)", &format!("softmax(biased, axis = {axis})"));
        let reason = because(&format!("{normed}{loss}"));
        assert!(reason.starts_with("`hidden` (`softmax`) is not computed from rows"), "{reason}");
    }
}

#[test]
fn rows_of_frozen_parameters_are_read_by_the_loop() {
    let text = LAYERS
        .replace("e = param row_sparse f32 [m, 2]", "e = param(frozen) row_sparse f32 [m, 2]");
    let program = program_of(&format!("{text}l = logistic(score, y)\nloss l")).unwrap();
    assert_eq!((program.reads.len(), program.frozen.len()), (2, 1));
    let computed =
        text.replace("of_user = take(e, u)", "v = argmax(x, axis = 1)\nof_user = take(e, v)");
    let because = program_of(&format!("{computed}l = logistic(score, y)\nloss l")).unwrap_err();
    assert_eq!(because, "rows of `v` are not dense numbers");
}

#[test]
fn a_program_trains_as_many_parameters_as_the_engine_lends() {
    let products = |n: usize| {
        let mut text =
            String::from("model M f32\nx = input csr f32 [n, d]\ny = label dense f32 [n, 1]\n");
        for place in 0..n {
            text += &format!("w{place} = param row_sparse f32 [d, 1] \"\"\n");
        }
        text += "s0 = dot(x, w0)\n";
        for place in 1..n {
            text += &format!("p{place} = dot(x, w{place})\n");
            text += &format!("s{place} = add(s{}, p{place})\n", place - 1);
        }
        program_of(&format!("{text}l = squared_error(s{}, y)\nloss l", n - 1))
    };
    assert_eq!(products(128).unwrap().reads.len(), 128);
    assert_eq!(
        products(129).unwrap_err(),
        "the step trains 129 parameters of one kind, which are more than 128"
    );
}
