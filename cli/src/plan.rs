//! `nnz plan`: what the compiler decided about a model.
//!
//! ```text
//! cargo run --release -p nnz-cli -- plan factorization-machine
//! cargo run --release -p nnz-cli -- plan model.safetensors --format svg > plan.svg
//! ```

use crate::models::saved::SavedModel;
use crate::models::{ModelKind, ModelVisitor};
use crate::report::written;
use crate::{Failure, Program};
use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};
use nnz::core::inspect::Sizes;
use nnz::prelude::*;
use std::io::{self, Write};
use std::path::Path;

/// Prints the plan of a model: for each value its shape, its storage and the kernel that computes
/// it, the buffers, and the training step.
#[derive(Debug, Parser)]
#[command(name = "plan")]
struct Arguments {
    /// The name of a model, as `train --model` takes it, or a model's file, whose sizes are filled
    /// in.
    model: String,
    /// Text, or a picture: a graph for Graphviz, or an SVG.
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Dot,
    Svg,
}

pub(crate) fn program() -> Program {
    let run = |matches: &_| run(&Arguments::from_arg_matches(matches)?);
    Program { command: Arguments::command(), run }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = Path::new(&arguments.model);
    let (kind, dims) = match ModelKind::from_str(&arguments.model, false) {
        Ok(kind) => (kind, None),
        Err(_) if path.exists() => {
            let saved = SavedModel::open(path)?;
            (saved.kind, Some(saved.metadata.dims))
        }
        Err(_) => {
            let names = ModelKind::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
            return Err(format!(
                "`{}` is neither a file nor a model: the models are {}",
                arguments.model,
                names.join(", ")
            )
            .into());
        }
    };
    let text = kind.with(Plan { form: arguments.format, dims });
    written(writeln!(io::stdout(), "{}", text.trim_end()))
}

struct Plan {
    form: Form,
    /// The extents of the parameters, if there is a model of the kind.
    dims: Option<Dims>,
}

impl ModelVisitor for Plan {
    type Output = String;

    fn visit<M: Model<Element = f32>>(self, _: fn(Dims, Seed) -> Result<M>) -> String {
        let Some(dims) = self.dims else {
            return match self.form {
                Form::Text => M::PLAN.to_string(),
                Form::Dot => M::PLAN.to_dot(),
                Form::Svg => M::PLAN.to_svg(),
            };
        };
        let mut sizes = Sizes::default();
        for (name, extent) in dims.iter() {
            sizes.dim(name, extent);
        }
        let plan = M::PLAN.bind(sizes);
        match self.form {
            Form::Text => plan.to_string(),
            Form::Dot => plan.to_dot(),
            Form::Svg => plan.to_svg(),
        }
    }
}
