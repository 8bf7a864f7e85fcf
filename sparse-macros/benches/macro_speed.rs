//! What `graph!` costs the compiler: models of growing size through the whole front and back end,
//! tokens in, tokens out.
//!
//! ```sh
//! cargo bench -p sparse-macros --bench macro_speed
//! ```
//!
//! A proc-macro crate exports macros only, so that its modules are compiled into this program as
//! they are.
#![allow(dead_code, missing_docs, unreachable_pub, unused_imports)]

#[path = "../src/arithmetic.rs"]
mod arithmetic;
#[path = "../src/ast.rs"]
mod ast;
#[path = "../src/emit/mod.rs"]
mod emit;
#[path = "../src/expand.rs"]
mod expand;
#[path = "../src/parse/mod.rs"]
mod parse;
#[path = "../src/paths.rs"]
mod paths;
#[path = "../src/report.rs"]
mod report;
#[path = "../src/resolve/mod.rs"]
mod resolve;
#[path = "../src/scalar.rs"]
mod scalar;

#[path = "../src/table/mod.rs"]
mod table;

use proc_macro2::TokenStream;
use std::fmt::Write;
use std::time::Instant;

const ROUNDS: usize = 15;

fn main() {
    println!("| operators | deep, ms | µs an operator | wide, ms | µs an operator |");
    println!("|---|---|---|---|---|");
    for n_operators in [20, 50, 100, 200, 400] {
        let [deep, wide] = [deep(n_operators), wide(n_operators)].map(|model| least(&model));
        let each = |seconds: f64| 1e6 * seconds / n_operators as f64;
        println!(
            "| {n_operators} | {:.2} | {:.0} | {:.2} | {:.0} |",
            1e3 * deep,
            each(deep),
            1e3 * wide,
            each(wide)
        );
    }
}

/// Layers one after the other: each value is read by the next two lines, a parameter in every
/// fourth.
fn deep(n_operators: usize) -> String {
    let mut lines = String::from(
        "input x: csr[n, d]; label y: dense[n, 8]; param w: row_sparse[d, 8] = Zeros; let h0 = dot(x, w);",
    );
    // The first product and the loss are two operators, each line is two.
    let n_lines = (n_operators - 2) / 2;
    for line in 1..=n_lines {
        let before = line - 1;
        let written = match line % 4 {
            0 => write!(
                lines,
                "param b{line}: dense[8] = Zeros; let h{line} = tanh(h{before} + b{line});"
            ),
            _ => write!(lines, "let h{line} = h{before} * sigmoid(h{before});"),
        };
        written.expect("a string takes what is written");
    }
    format!("pub model Deep {{ {lines} loss squared_error(h{n_lines}, y); output h{n_lines}; }}")
}

/// A sum of products, each with an input and a parameter of its own.
fn wide(n_operators: usize) -> String {
    let mut lines = String::from("label y: dense[n, 1]; param bias: dense[1] = Zeros;");
    let mut sum = String::from("bias");
    // Each product is an addition as well; the loss is one operator.
    for term in 0..(n_operators - 1) / 2 {
        write!(
            lines,
            "input x{term}: csr[n, d{term}]; param w{term}: row_sparse[d{term}, 1] = Zeros;"
        )
        .and_then(|()| write!(sum, " + dot(x{term}, w{term})"))
        .expect("a string takes what is written");
    }
    format!(
        "pub model Wide {{ {lines} let score = {sum}; loss logistic(score, y); output score; }}"
    )
}

/// The least time of an expansion, in seconds: what else the machine does only adds to it.
fn least(model: &str) -> f64 {
    let tokens: TokenStream = model.parse().expect("the models of this program are tokens");
    let times = (0..ROUNDS).map(|_| {
        let (start, tokens) = (Instant::now(), tokens.clone());
        let (expanded, report) = expand::front(tokens, |_| String::new());
        let seconds = start.elapsed().as_secs_f64();
        assert!(report.n_errors() == 0 && !expanded.is_empty(), "a model has errors");
        seconds
    });
    times.fold(f64::INFINITY, f64::min)
}
